package mockserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clause is one parsed "action@point options".
type clause struct {
	text    Fault
	action  string // "status" for a number
	at      Point
	status  int
	wait    time.Duration // for=, every=
	after   int           // after=: bytes; -1: half
	size    int           // size=: bytes of a piece
	code    uint32        // code=
	raw     string        // text=, body=
	header  http.Header   // header=, retry-after=, type=
	reset   bool          // end=reset instead of a FIN
	this    bool          // last=this: GOAWAY that does not disown the stream
	forward string        // forward=now, late, or empty
	send    int           // send=: only that send of the attempt; zero: each
}

func (f Fault) parse() ([]clause, error) {
	var list []clause
	words, err := f.words()
	if err != nil {
		return nil, f.wrong("%v", err)
	}
	for _, w := range words {
		c, err := f.clause(w)
		if err != nil {
			return nil, err
		}
		if c.action != "pass" {
			list = append(list, c)
		}
	}
	return list, nil
}

// words splits f into faults, each a list of words; quoted values may hold
// anything.
func (f Fault) words() (faults [][]string, err error) {
	var word strings.Builder
	var words []string
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for s := string(f); s != ""; {
		switch b := s[0]; b {
		case ' ', '\t', '\n':
			flush()
		case ';':
			flush()
			faults, words = append(faults, words), nil
		case '"', '`':
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("the quotes of %s are not closed", s)
			}
			plain, _ := strconv.Unquote(quoted)
			word.WriteString(plain)
			s = s[len(quoted):]
			continue
		default:
			word.WriteByte(b)
		}
		s = s[1:]
	}
	flush()
	return append(faults, words), nil
}

func (f Fault) clause(words []string) (clause, error) {
	c := clause{text: f, after: -1, header: http.Header{}}
	if len(words) == 0 {
		return c, f.wrong("it is empty; \"pass\" is the fault that does nothing")
	}
	name, at, _ := strings.Cut(words[0], "@")
	c.action, c.at = name, Point(at)
	if code, err := strconv.Atoi(name); err == nil {
		if c.action, c.status = "status", code; code < 200 || code > 599 {
			return c, f.wrong("%d is not a status from 200 to 599", code)
		}
	}
	all := rules()
	r, known := all[c.action]
	switch {
	case !known || name == "status":
		return c, f.wrong("there is no action %q; %s", name, suggest(name, names(all)))
	case len(r.points) == 0 && at != "":
		return c, f.wrong("%q stands alone, without a point", name)
	case len(r.points) > 0 && !slices.Contains(r.points, c.at):
		where := make([]string, len(r.points))
		for i, p := range r.points {
			where[i] = name + "@" + string(p)
		}
		return c, f.wrong("%s cannot be at %q; right is %s", name, at, strings.Join(where, ", "))
	}
	seen := map[string]bool{}
	for _, w := range words[1:] {
		option, value, ok := strings.Cut(w, "=")
		if !ok || !slices.Contains(r.options, option) && option != "send" {
			return c, f.wrong("%s has no option %q; it takes %s", name, w, strings.Join(append(r.options, "send"), "=, ")+"=")
		}
		if seen[option] && option != "header" {
			return c, f.wrong("%s= is there twice", option)
		}
		seen[option] = true
		if err := c.set(option, value); err != nil {
			return c, f.wrong("%s=%s: %v", option, value, err)
		}
	}
	if r.needs != "" && !seen[r.needs] {
		return c, f.wrong("%s needs %s=", name, r.needs)
	}
	if seen["forward"] && c.at != Received {
		return c, f.wrong("forward= is for faults at received: later the request has been forwarded")
	}
	if seen["after"] && c.at != Body && c.action != "cut" {
		return c, f.wrong("after= counts bytes of the body; right is %s@body after=%d", name, c.after)
	}
	c.defaults(seen)
	return c, nil
}

// wrong is an error about f.
func (f Fault) wrong(format string, args ...any) error {
	return fmt.Errorf("mockserver: fault %q: %s", string(f), fmt.Sprintf(format, args...))
}

// set reads one option.
func (c *clause) set(option, value string) (err error) {
	number := func(least int) int {
		n, e := strconv.Atoi(value)
		if e != nil || n < least {
			err = fmt.Errorf("a number from %d on is wanted", least)
		}
		return n
	}
	oneOf := func(list ...string) {
		if !slices.Contains(list, value) {
			err = fmt.Errorf("right is %s", strings.Join(list, " or "))
		}
	}
	switch option {
	case "for", "every":
		if c.wait, err = time.ParseDuration(value); err != nil || c.wait <= 0 {
			err = fmt.Errorf("a duration such as 2s or 150ms is wanted")
		}
	case "after":
		c.after = number(0)
	case "size":
		c.size = number(1)
	case "send":
		c.send = number(1)
	case "code":
		n, e := strconv.ParseUint(value, 10, 32)
		if e != nil {
			err = errors.New("a number from 0 on is wanted")
		}
		c.code = uint32(n)
	case "text", "body":
		c.raw = value
	case "type":
		c.header.Set("Content-Type", value)
	case "retry-after":
		c.header.Set("Retry-After", value)
	case "header":
		name, v, ok := strings.Cut(value, ":")
		if !ok || !isToken(name) { // net/http would leave it out without a word
			return fmt.Errorf(`right is header="Name: value"`)
		}
		c.header.Add(name, strings.TrimSpace(v))
	case "end":
		oneOf("fin", "reset")
		c.reset = value == "reset"
	case "last":
		oneOf("before", "this")
		c.this = value == "this"
	case "forward":
		oneOf("now", "late")
		c.forward = value
	}
	return err
}

// isToken reports whether s may be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	const chars = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return s != "" && strings.Trim(s, chars) == ""
}

// defaults fills in what was not said and has a default other than zero.
func (c *clause) defaults(seen map[string]bool) {
	switch {
	case c.action == "alert" && !seen["code"]:
		c.code = 40 // handshake_failure
	case c.action == "abort" && !seen["code"]:
		c.code = 2 // INTERNAL_ERROR, as a server that panics
	case c.action == "copy" && !seen["forward"]:
		c.forward = "now"
	case c.action == "dribble":
		if !seen["size"] {
			c.size = 1
		}
		if !seen["every"] {
			c.wait = 10 * time.Millisecond
		}
	}
}
