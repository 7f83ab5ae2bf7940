package mockserver

import (
	"fmt"
	"net/http"
	"path"
	"strings"
)

// A Kind says in what a server departs from its contract in ways that
// [contract.Contract] has no word for. The zero Kind keeps it. Other departures
// are contracts: Stored, Lease and Replayed say them, Methods that is empty and
// not nil ignores keys, and [Server.Forget] loses them.
//
// Busy, Mismatch and Again are answers as text: a status and the options that a
// status has as a [Fault], such as
//
//	429 retry-after=2
//	409 type=application/json body=`{"error":"busy"}`
//
// A body that begins like JSON has that type without saying so. What such an
// answer means is for the contract to say; the zero Kind's mean what they are for.
type Kind struct {
	// Wait lets a request wait while the first with its key is in progress,
	// instead of being refused.
	Wait bool
	// Busy answers a request while the first with its key is in progress; empty:
	// the first of the contract's Answers that means InProgress.
	Busy string
	// Loose takes any request under a key for the first one: no mismatch.
	Loose bool
	// PerRequest makes the request a part of its key: another request under the
	// same key is no mismatch, it is executed.
	PerRequest bool
	// Mismatch answers another request under a key; empty: the first of the
	// contract's Answers that means Mismatch.
	Mismatch string
	// Done answers a repeat of finished work with the contract's own answer for
	// it, the first of its Answers that means Done, instead of a replay.
	Done bool
	// Again answers a repeat of finished work with this, instead of a replay. In
	// its headers and body {id} is what the work has made: the last segment of the
	// stored Location, or the member id of the stored body.
	Again string
	// Repeat is the status of a replay of a success, over the stored header and
	// body; zero: the stored status.
	Repeat int
	// Print is what makes two requests the same one under a key; nil: method,
	// path, query and every byte of the body.
	Print func(r *http.Request, body []byte) string
	// Scope is within what keys are told apart, such as a region or an account;
	// nil: the caller's credential.
	Scope func(r *http.Request) string
	// Poison is the least status that neither frees a key nor is kept under it:
	// the claim stays until its lease is over, as after a crash. Zero: none.
	Poison int
	// Hints puts the first of the contract's Hints into the answers of the key
	// layer: to ask again while a request is in progress, not to on a mismatch, a
	// refused key and a failure that is replayed.
	Hints bool
}

// spoken are the answers of a Kind that are given as text; nil: the contract's.
type spoken struct{ busy, mismatch, again *answer }

// speak reads the texts of k and checks its numbers.
func (k Kind) speak() (s spoken, err error) {
	for _, text := range []struct {
		field, text string
		kind        Answer
		into        **answer
	}{
		{"Busy", k.Busy, Busy, &s.busy},
		{"Mismatch", k.Mismatch, Mismatched, &s.mismatch},
		{"Again", k.Again, Replayed, &s.again},
	} {
		if text.text == "" {
			continue
		}
		if *text.into, err = parseAnswer(text.text, text.kind); err != nil {
			return s, fmt.Errorf("mockserver: Kind.%s: %w", text.field, err)
		}
	}
	for field, status := range map[string]int{"Repeat": k.Repeat, "Poison": k.Poison} {
		if status != 0 && (status < 200 || status > 599) {
			return s, fmt.Errorf("mockserver: Kind.%s: %d is not a status from 200 to 599", field, status)
		}
	}
	return s, nil
}

// parseAnswer reads an answer such as "429 retry-after=2": a fault without its
// point.
func parseAnswer(text string, kind Answer) (*answer, error) {
	status, options, _ := strings.Cut(strings.TrimSpace(text), " ")
	clauses, err := Fault(status + "@head " + options).parse()
	if err != nil {
		return nil, err
	}
	if len(clauses) != 1 || clauses[0].action != "status" || clauses[0].send != 0 {
		return nil, fmt.Errorf("%q is no answer; right is a status and its options, such as \"429 retry-after=2\"", text)
	}
	c := clauses[0]
	if c.header.Get("Content-Type") == "" && strings.HasPrefix(strings.TrimSpace(c.raw), "{") {
		c.header.Set("Content-Type", "application/json")
	}
	return &answer{kind: kind, status: c.status, header: c.header, body: []byte(c.raw)}, nil
}

// about returns a copy of a with the id of what kept has made in it; kept may
// be nil.
func (a *answer) about(kept *answer) *answer {
	b := *a
	b.header = a.header.Clone()
	if kept == nil {
		return &b
	}
	id := kept.made()
	for _, values := range b.header {
		for i, v := range values {
			values[i] = strings.ReplaceAll(v, "{id}", id)
		}
	}
	b.body = []byte(strings.ReplaceAll(string(a.body), "{id}", id))
	return &b
}

// made is the id of what the answer says was created; empty: it does not say.
func (a *answer) made() string {
	if l := a.header.Get("Location"); l != "" {
		return path.Base(l)
	}
	var body struct {
		ID any `json:"id"`
	}
	if decode(a.body, &body) != nil || body.ID == nil {
		return ""
	}
	return fmt.Sprint(body.ID)
}
