// Package trouble is what the examples are tested through: one write that meets
// a dropped connection, 503, 409 and a lost answer, and what must come of it.
package trouble

import (
	"net/http"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
)

// Attempts is how often a write asks until it is through.
const Attempts = 6

// Meets lets every key that comes to pattern meet the faults. The work is done
// by the third attempt, which takes longer than an attempt may; the fourth is
// told that the third still runs.
func Meets(server *mockserver.Server, pattern string) {
	server.On(pattern).Then(
		"drop@received",              // 1: the connection is dropped before the work
		"503@received retry-after=2", // 2
		"delay@worked for=31s",       // 3: the client gives up waiting after 30 s
		"pass",                       // 4: 409 from the server itself
		"reset@head",                 // 5: the answer is lost
	)
}

// Transport has an attempt for each of the faults.
func Transport(server *mockserver.Server) *idem.Transport {
	return &idem.Transport{Base: server.Transport(), MaxAttempts: Attempts}
}

// Check checks that a write with in was made once, through all the faults, and
// that nobody else repeated anything.
func Check(t testing.TB, server *mockserver.Server, in *idem.Intent) {
	t.Helper()
	var answers [Attempts]mockserver.Answer
	requests := server.Requests(in.Key())
	for _, r := range requests {
		if assert.LessOrEqual(t, r.Attempt, Attempts) {
			answers[r.Attempt-1] = r.Answer
		}
		assert.Equal(t, requests[0].Body, r.Body)
	}
	assert.Equal(t, [Attempts]mockserver.Answer{
		mockserver.Unanswered, mockserver.Injected, mockserver.Unanswered,
		mockserver.Busy, mockserver.Unanswered, mockserver.Replayed,
	}, answers)
	sends := 0 // net/http sends again by itself on a connection that was in use before
	assert.Len(t, in.Attempts(), Attempts)
	for _, a := range in.Attempts() {
		assert.Equal(t, 1, a.Call, "somebody above asked again")
		sends += a.Sends
	}
	assert.Len(t, requests, sends)
	assert.Len(t, server.Effects(in.Key()), 1)
	assert.Equal(t, idem.Answered, in.Outcome())
	server.Believe(in.Key(), mockserver.Done)
	assert.NoError(t, server.Verify())
}

// Writes returns how many writes with a key reached the server, and how many
// without.
func Writes(server *mockserver.Server) (keyed, unkeyed int) {
	for _, r := range server.Requests("") {
		switch {
		case r.Method == http.MethodGet:
		case r.Key == "":
			unkeyed++
		default:
			keyed++
		}
	}
	return keyed, unkeyed
}
