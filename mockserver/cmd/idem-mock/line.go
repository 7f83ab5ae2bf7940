package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem/mockserver"
)

// line tells one request in one line.
func line(r mockserver.Request) string {
	var b strings.Builder
	what := r.Method + " " + printable(r.URL)
	if r.Method == "" {
		what = "no whole head"
	}
	fmt.Fprintf(&b, "%s #%d %s", r.Start.Format("15:04:05.000"), r.Seq, what)
	if r.Scope != "" {
		fmt.Fprintf(&b, " scope %s", printable(r.Scope))
	}
	if r.Key != "" {
		fmt.Fprintf(&b, " key %s attempt %d", printable(r.Key), r.Attempt)
	}
	if r.Send > 1 {
		fmt.Fprintf(&b, " send %d", r.Send)
	}
	if r.Copy {
		b.WriteString(" copy")
	}
	if r.Fault != "" {
		fmt.Fprintf(&b, " met %s", r.Fault)
	}
	switch {
	case r.Status != 0:
		fmt.Fprintf(&b, " answer %d %s", r.Status, r.Answer)
	default:
		b.WriteString(" no answer")
	}
	if r.Left {
		b.WriteString(", the client had left")
	}
	fmt.Fprintf(&b, " after %v", r.End.Sub(r.Start).Round(time.Millisecond))
	return b.String()
}

// printable keeps what a client chose to one line, and not too long.
func printable(s string) string {
	const most = 60
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
