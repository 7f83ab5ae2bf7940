package idem

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Outcome is what is known about the effect of an Intent. It is never a guess: it
// follows from the sends that were seen to leave, not from the kinds of errors.
// The zero value is OutcomeUnknown.
type Outcome uint8

const (
	// OutcomeUnknown: none of the others is proven. Keep the Intent and ask
	// again with it, or look the work up. Never open a new one before that.
	OutcomeUnknown Outcome = iota
	// NotExecuted: no send of this Intent can have, or can still get, an
	// effect. Either none left this process, or each one was refused with a
	// status that the contract lists as given before the work. In an Error that
	// refuses a call before the network it speaks of that call alone (see Error).
	NotExecuted
	// Answered: the server has decided, and its answer stands. Result.Status
	// says how: 2xx, it is done; otherwise the server said no. A 5xx is never
	// such an answer by itself, even if it is marked as a replay: a failure that
	// was stored may have come before the work or after it.
	Answered
)

func (o Outcome) names() []string { return []string{"unknown", "not executed", "answered"} }

// String returns "unknown", "not executed" or "answered".
func (o Outcome) String() string { return name(o, o.names()) }

// MarshalText returns the same text as String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText is the inverse of MarshalText; any other text is an error.
func (o *Outcome) UnmarshalText(text []byte) error { return parse(o, text, o.names()) }

// Replay says whether an answer is the server's stored one, sent again. The
// zero value is ReplayUnknown: the answer has no mark and the contract does not
// promise one.
type Replay uint8

const (
	ReplayUnknown Replay = iota // nothing is known
	NotReplayed                 // marked as fresh, or unmarked where marks are promised
	Replayed                    // marked as a replay
)

func (r Replay) names() []string { return []string{"unknown", "not replayed", "replayed"} }

// String returns "unknown", "not replayed" or "replayed".
func (r Replay) String() string { return name(r, r.names()) }

// MarshalText returns the same text as String.
func (r Replay) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText; any other text is an error.
func (r *Replay) UnmarshalText(text []byte) error { return parse(r, text, r.names()) }

func name[E ~uint8](v E, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%d", v)
}

func parse[E ~uint8](v *E, text []byte, names []string) error {
	for i, n := range names {
		if n == string(text) {
			*v = E(i)
			return nil
		}
	}
	return fmt.Errorf("idem: %.20q is none of %q", text, names)
}

// Result is what one call came to. It comes with an error as well as without.
// A replay (Replay) after an attempt of our own whose answer was lost is not a
// duplicate by the caller: Attempts and Sends say how often this call asked.
type Result struct {
	Key      string  // the key as it went over the wire; empty for requests without one
	Status   int     // of the answer that stands, if Outcome is Answered (0: it came in another process); else of this call's last answer, 0 if there was none
	Outcome  Outcome // of the request of this call
	Replay   Replay  // of the answer
	Attempts int     // tries that the call made; 0: it was refused, or answered by a Layer
	Sends    int     // times that request bytes left; net/http sends again by itself, so it may exceed Attempts
}

// ResultOf returns what is known about the call that resp came from. It works
// through http.Client, with and without Timeout, and after the body was read.
// For a response that did not come through a Transport of this package it is
// the zero Result.
func ResultOf(resp *http.Response) Result {
	if resp == nil || resp.Request == nil {
		return Result{}
	}
	if c := callOf(resp.Request.Context()); c != nil {
		return c.result()
	}
	return Result{}
}

// answer is what the end of one attempt says about its effect.
type answer uint8

const (
	noAnswer answer = iota // nothing: its sends stay open
	refused                // the last send had no effect; earlier ones of the attempt stay open
	decided                // a final answer; it stands if no other send is open
	settled                // a final answer that stands whatever else is open
)

// A ledger folds the sends of one Intent (or of one call without a key) into an
// Outcome. It is safe for concurrent use.
//
// A send is open from before its first byte until there is proof that it cannot
// have an effect. NotExecuted means that none is open.
type ledger struct {
	mu sync.Mutex

	past    bool // the key existed before this process: its sends are not all ours to count
	stands  bool // an unsettled answer to the only send
	settled bool
	sent    bool // something was sent since firstSent, so that it stays

	calls  int // calls under way
	trying int // attempts under way, each of which may be the first to send
	open   int // sends without proof, of attempts that have ended
	status int // of the answer that stands

	firstSent time.Time // start of the attempt that sent first, or may be doing so; else zero
	lastSent  time.Time // when the last attempt that sent was over
}

func (l *ledger) enter() { l.mu.Lock(); l.calls++; l.mu.Unlock() }
func (l *ledger) leave() { l.mu.Lock(); l.calls--; l.mu.Unlock() }

// begin notes that an attempt starts at t, before anything of it can leave. It
// counts as one open send until fold knows better, or for ever if a panic in
// Base takes it away.
func (l *ledger) begin(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying++
	l.open++
	if l.firstSent.IsZero() {
		l.firstSent = t
	}
}

// fold notes that an attempt has ended at that time with opened sends and the
// answer a, and returns the outcome as the call that made it sees it.
func (l *ledger) fold(opened int, a answer, status int, at time.Time) Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying--
	l.open--
	only := opened == 1 && l.open == 0 && l.calls == 1 && !l.past
	if opened > 0 {
		l.sent = true
		l.lastSent = at
		l.stands = false // a new send reopens an answer that was not settled
	}
	if a == refused && opened > 0 {
		opened--
	}
	l.open += opened
	switch {
	case a == settled:
		l.settled, l.status = true, status
	case a == decided && only && !l.settled:
		l.stands, l.status = true, status
	}
	if !l.sent && l.trying == 0 {
		l.firstSent = time.Time{} // nothing left after all: the window has not begun
	}
	return l.seen(1)
}

// late notes a send that was seen only after its attempt had ended.
func (l *ledger) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.sent, l.stands = true, false
	if l.firstSent.IsZero() {
		l.firstSent = time.Now()
	}
}

// settle notes an answer that needed no send.
func (l *ledger) settle(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled, l.status = true, status
}

// disown notes that others may have sent with the same key.
func (l *ledger) disown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.past, l.stands = true, false
}

// firstSend returns when the first send was, or may have been; zero: never.
func (l *ledger) firstSend() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstSent
}

// lastSend returns when the last attempt that sent was over; zero: never.
func (l *ledger) lastSend() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastSent
}

// untouched reports whether nothing was sent that this process knows of.
func (l *ledger) untouched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.sent && !l.settled && l.open == 0
}

// state returns the outcome as outcome does, and the status that it rests on.
func (l *ledger) state(own int) (Outcome, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.seen(own)
	if o != Answered {
		return o, 0
	}
	return o, l.status
}

// outcome returns what is known to one who makes own of the calls under way.
func (l *ledger) outcome(own int) Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen(own)
}

func (l *ledger) seen(own int) Outcome {
	switch {
	case l.settled:
		return Answered
	case l.calls > own, l.past:
		return OutcomeUnknown
	case l.open == 0:
		return NotExecuted
	case l.stands && l.trying == 0: // an attempt under way may send, and so reopen it
		return Answered
	default:
		return OutcomeUnknown
	}
}
