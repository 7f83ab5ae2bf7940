package main

import (
	"encoding/json"
	"net/http"

	"github.com/idem-go/idem/contract"
)

// The kinds of refusal, each the last part of a problem's type (RFC 9457). They
// are what a client decides by: two of them share the status 409.
const (
	badRequest = "bad-request"
	notFound   = "not-found"
	noSuchSeat = "no-such-seat"
	seatTaken  = "seat-taken"
	declined   = "card-declined"
	keyMissing = "idempotency-key-missing"
	keyReused  = "idempotency-key-reused"
	inProgress = "request-in-progress"
	notYet     = "outcome-not-known-yet"
)

// An answer is what a buyer is told, whole, so that it can be stored and given
// again byte for byte.
type answer struct {
	status   int
	location string
	body     string
	replayed bool // it was stored before
	again    bool // ask again in a second
}

// problem is an answer that says no. Its status and kind are written down for
// clients; change neither.
func problem(status int, kind, title string) *answer {
	body, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings and a number
		"type": "https://stagedoor.example/problems/" + kind, "title": title, "status": status,
	})
	return &answer{status: status, body: string(body), again: kind == inProgress || kind == notYet}
}

func busy() *answer {
	return problem(http.StatusConflict, inProgress, "The first request with this key is still being worked on")
}

// write sends the answer. A stored one differs from the first time in one header
// and in nothing else.
func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.status >= 400 {
		h.Set("Content-Type", "application/problem+json")
	}
	if a.location != "" {
		h.Set("Location", a.location)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if a.again {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.body + "\n"))
}

// shopContract is what the shop promises, as its clients read it: the IETF draft's
// statuses, told apart by problem type, and a mark on every replay.
func shopContract() contract.Contract {
	c := contract.Default()
	c.Name = "stagedoor"
	c.PromisesMarker = true
	c.Answers = []contract.Match{
		{Status: http.StatusConflict, Path: "type", Value: inProgress, Means: contract.InProgress},
		{Status: http.StatusConflict, Path: "type", Value: seatTaken, Means: contract.Settled},
		{Status: http.StatusPaymentRequired, Path: "type", Value: declined, Means: contract.Settled},
		{Status: http.StatusUnprocessableEntity, Path: "type", Value: keyReused, Means: contract.Mismatch},
	}
	return c
}
