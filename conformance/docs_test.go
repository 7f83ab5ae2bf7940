package conformance_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

var update = flag.Bool("update", false, "write docs/contracts.md")

// docs/contracts.md is what the contracts say. "go generate ./contract" writes
// it anew.
func TestDocs(t *testing.T) {
	const path = "../docs/contracts.md"
	var page bytes.Buffer
	page.WriteString(intro)
	keysTable(&page)
	answersTable(&page)
	page.WriteString(storiesIntro)
	for _, name := range []string{"stripe", "paypal", "adyen", "gocardless", "ietf"} {
		page.WriteString(lostAnswer(t, name))
	}
	if *update {
		require.NoError(t, os.MkdirAll("../docs", 0o755))
		require.NoError(t, os.WriteFile(path, page.Bytes(), 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, page.String(), string(have), "run: go generate ./contract")
}

const intro = `# Contracts

<!-- Generated from package contract by "go generate ./contract"; do not edit. -->

How each API spells idempotency, as the package ` + "`contract`" + ` has it. Every name is a
contract for a Transport, by its function (` + "`&idem.Transport{Contract: contract.Stripe()}`" + `) or by
` + "`contract.ByName`" + `, and leads to the page where the facts were read. Pages change: check
what you rely on.

What an API does not publish has the cautious value here: a window of 5 min, only
POST carries the key, an answer without a code means nothing in particular. Whoever
knows more changes the field. [Clients](clients.md) shows contracts in use, and
[Guarantees](guarantees.md) what is assumed of a server that keeps one.

`

// keysTable says where the key goes and for how long it holds.
func keysTable(page *bytes.Buffer) {
	page.WriteString("## The key\n\n| API | Key in | Form | Bytes | Methods | Window | Gap |\n|---|---|---|---|---|---|---|\n")
	for _, c := range contract.All() {
		where := code(c.Header)
		if c.Place == contract.InBody {
			where = "body member " + where
		}
		if c.FirstSentHeader != "" {
			where += ", first send in " + code(c.FirstSentHeader)
		}
		gap := ""
		if c.Gap > 0 {
			gap = short(c.Gap)
		}
		line(page, fmt.Sprintf("[%s](%s)", c.Name, c.Source), where, form(c), size(c), strings.Join(c.Methods, " "), window(c.Window), gap)
	}
	page.WriteString("\n")
}

// answersTable says what the answers mean.
func answersTable(page *bytes.Buffer) {
	page.WriteString(answersIntro)
	defaults := contract.Default()
	for _, c := range contract.All() {
		marks, hints := marksOf(c), hintsOf(c)
		if c.Name != "default" && assert.ObjectsAreEqual(defaults.Replayed, c.Replayed) {
			marks = "any known one"
		}
		if c.Name != "default" && assert.ObjectsAreEqual(defaults.Hints, c.Hints) {
			hints = "as default"
		}
		line(page, c.Name, answersOf(c, contract.InProgress), answersOf(c, contract.Mismatch),
			answersOf(c, contract.Done, contract.KeyRefused, contract.Final, contract.Settled, contract.Transient), marks, stored(c), hints)
	}
	page.WriteString("\n")
}

const answersIntro = `## The answers

An empty cell: not published, or none. A bare 409 is repeated like one in progress,
a bare 422 never is. 401, 407, 413 and 429 are taken for refusals: nothing was done.

| API | In progress | Mismatch | Others | Replay mark | Stored | Hint: again, stop |
|---|---|---|---|---|---|---|
`

func line(page *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		page.WriteString(strings.TrimRight("| "+c, " ") + " ")
	}
	page.WriteString("|\n")
}

func code(s string) string { return "`" + s + "`" }

func form(c contract.Contract) string {
	text := map[contract.Format]string{
		contract.FormatVisible: "visible ASCII", contract.FormatUUID: "UUID", contract.FormatHex: "32 hex digits", contract.FormatUUIDv5: "UUIDv5",
		contract.FormatWord: "letters, digits, `-_`", contract.FormatHyphen: "letters, digits, `-`", contract.FormatColon: "letters, digits, `-_:`",
	}[c.Format]
	if c.Quoted {
		text += ", quoted"
	}
	return text
}

// size is the length of keys on the wire.
func size(c contract.Contract) string {
	switch c.Format {
	case contract.FormatUUID, contract.FormatUUIDv5:
		return "36"
	case contract.FormatHex:
		return "32"
	}
	return fmt.Sprintf("%d to %d", c.MinKey, c.MaxKey)
}

func window(d time.Duration) string {
	if d < 0 {
		return "for ever"
	}
	return short(d)
}

// short is a duration without its zeros.
func short(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0 && d > 24*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// answersOf lists the answers with one of these meanings, in the contract's order.
func answersOf(c contract.Contract, meanings ...contract.Meaning) string {
	var list []string
	for _, m := range c.Answers {
		if !slices.Contains(meanings, m.Means) {
			continue
		}
		status := "not 2xx"
		if m.Status != 0 {
			status = fmt.Sprint(m.Status)
		}
		if m.Path != "" {
			status += " " + code(m.Path+"="+m.Value)
		}
		if len(meanings) > 1 {
			status += ": " + meaning(m.Means)
		}
		list = append(list, status)
	}
	return strings.Join(list, "<br>")
}

func meaning(m contract.Meaning) string {
	return map[contract.Meaning]string{
		contract.Done: "done before", contract.KeyRefused: "key refused", contract.Final: "final", contract.Settled: "settled", contract.Transient: "try again",
	}[m]
}

func marksOf(c contract.Contract) string {
	var list []string
	for _, m := range c.Replayed {
		text := code(m.Header)
		switch {
		case m.DiffersFrom != "":
			text += " not " + code(m.DiffersFrom)
		case len(m.Yes) > 0:
			text = code(m.Header + ": " + strings.Join(m.Yes, " or "))
		}
		if m.Success {
			text += " on 2xx"
		}
		list = append(list, text)
	}
	if c.PromisesMarker {
		list = append(list, "always there")
	}
	return strings.Join(list, "<br>")
}

func stored(c contract.Contract) string {
	switch c.Stored {
	case contract.StoredAll:
		return "all"
	case contract.StoredSuccess:
		return "2xx"
	}
	return "below 500"
}

func hintsOf(c contract.Contract) string {
	var list []string
	for _, h := range c.Hints {
		text := fmt.Sprintf("%s %s, %s", code(h.Header+h.Path), h.Retry, h.Stop)
		if h.SilenceStops {
			text += "; silence stops"
		}
		list = append(list, text)
	}
	return strings.Join(list, "<br>")
}
