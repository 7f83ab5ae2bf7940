package idem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Refused before the network: nothing was sent by this call.
var (
	// ErrNoIntent: the request needs an Intent and has none, a nil one, or one
	// that was not made by Open, Adopt, Derive, Child or Resume.
	ErrNoIntent = errors.New("idem: no Intent")
	// ErrInvalidKey: the key is empty, too long, the nil UUID, or does not have
	// the form that the contract asks for.
	ErrInvalidKey = errors.New("idem: invalid key")
	// ErrKeyConflict: the request carries another key than its Intent, or two.
	ErrKeyConflict = errors.New("idem: the request carries another key than its Intent")
	// ErrIntentReused: the Intent is bound to another request. Another deed needs
	// an Intent of its own, or a Child for one step of several. The same deed needs
	// the same method, URL and bytes: under a new Intent it could be done twice.
	ErrIntentReused = errors.New("idem: the Intent is bound to another request: repeat that as it was, or for another deed open a new one, or a Child")
	// ErrExpired: the server may have forgotten the key, or soon will; sending
	// it again could do the work again.
	ErrExpired = errors.New("idem: the key's window has ended")
	// ErrCrossOrigin: a redirect would take a write with a key to another origin.
	ErrCrossOrigin = errors.New("idem: a redirect leads a keyed write to another origin")
)

// Gave up: why no further attempt was made. Where the caller's context ended
// the call, the reason is the context's cause instead.
var (
	// ErrExhausted: MaxAttempts were made.
	ErrExhausted = errors.New("idem: every attempt is used up")
	// ErrWaitTooLong: the next wait is longer than MaxRetryAfter allows, or
	// would pass the context's deadline or the key's window.
	ErrWaitTooLong = errors.New("idem: the wait is too long")
	// ErrNotRepeatable: the request has no Intent and its method is not
	// idempotent, or its body cannot be sent a second time as it was.
	ErrNotRepeatable = errors.New("idem: the request cannot be repeated")
	// ErrOverBudget: the Budget allows no further attempt at this time.
	ErrOverBudget = errors.New("idem: the retry budget is used up")
)

// The server's word.
var (
	// ErrInProgress: the first request with this key is still running there.
	ErrInProgress = errors.New("idem: the server says that the first request is still in progress")
	// ErrMismatch: the server has seen this key with another request.
	ErrMismatch = errors.New("idem: the server says that the key came before with another request")
)

// Error is the error of every call that does not end well: from a [Transport]
// when there is no response, from [Client.Call] also when the response is not
// 2xx. Through http.Client it is found by errors.As or errors.AsType; the same
// facts are on the Intent, because http.Client.Timeout replaces errors.
//
// What a caller does with it needs no errors.As, since Call returns the Result
// as well:
//
//	res, err := client.Call(ctx, charge, "POST", "/charges", body, &receipt)
//	switch {
//	case err == nil:
//		// done; res.Replay tells whether it was a stored answer
//	case res.Outcome == idem.Answered:
//		// the server has decided: res.Status is its answer. Not 2xx: it said
//		// no. 2xx: done, but the answer could not be read, or this call came
//		// after it
//	case res.Outcome == idem.NotExecuted:
//		// certainly not done
//	default:
//		// unknown: keep the Intent, ask again with it, or look it up
//	}
//
// errors.Is finds the Err values of this package, the cause of the caller's
// context (and context.Canceled or context.DeadlineExceeded with it), and
// whatever the last attempt met.
//
// Outcome speaks of the request of this call, Intent.Outcome of the request the
// Intent is bound to. They differ with ErrIntentReused, where this call's is
// another request: NotExecuted here, while the Intent may be Answered or unknown.
// A call that is refused before the network for another reason tells the Intent's
// outcome, or NotExecuted if nothing was sent that this process knows of.
type Error struct {
	Result
	// Reason is why no further attempt was made; nil: the answer was final.
	Reason error
	// Last is what the last attempt met, if that was not a plain answer.
	Last error
	// Header is that of the last answer; nil if there was none.
	Header http.Header
	// Body is the last answer's body as far as it was read, at most 64 KiB.
	Body []byte
	// Problem is the body, if it is one of RFC 9457; else nil.
	Problem *Problem
}

// maxErrorBody is the most of a body that an Error keeps.
const maxErrorBody = 64 << 10

// Error is one line, without URL, body, header values or the whole key.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("idem: ")
	switch {
	case e.Attempts == 0:
		b.WriteString("not sent")
	case e.Reason == nil: // final, also where its body could not be read (Last)
		b.WriteString("answered")
	case e.Attempts == 1:
		b.WriteString("gave up after 1 attempt")
	default:
		fmt.Fprintf(&b, "gave up after %d attempts", e.Attempts)
	}
	if e.Key != "" {
		fmt.Fprintf(&b, " (key %s)", shortKey(e.Key))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Reason != nil {
		b.WriteString(": " + plain(e.Reason))
	}
	if e.Last != nil && (e.Reason == nil || plain(e.Last) != plain(e.Reason)) {
		b.WriteString(": " + plain(e.Last))
	}
	if e.Problem != nil && e.Problem.Title != "" {
		fmt.Fprintf(&b, ": %.80q", e.Problem.Title)
	}
	switch {
	case e.Outcome == NotExecuted && e.Sends == 0:
		b.WriteString("; outcome: not executed, never sent")
	case e.Outcome == NotExecuted:
		b.WriteString("; outcome: not executed, refused")
	default:
		fmt.Fprintf(&b, "; outcome: %v", e.Outcome)
	}
	return b.String()
}

// Unwrap returns Reason and Last, where set.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Reason != nil {
		errs = append(errs, e.Reason)
	}
	if e.Last != nil {
		errs = append(errs, e.Last)
	}
	return errs
}

// Timeout reports whether time ran out: the caller's, or that of the last
// attempt. It makes Error a net.Error, together with Temporary.
func (e *Error) Timeout() bool {
	if errors.Is(e, context.DeadlineExceeded) {
		return true
	}
	var t interface{ Timeout() bool }
	return e.Last != nil && errors.As(e.Last, &t) && t.Timeout()
}

// Temporary is there for net.Error, which asks for it; it always says no, since
// the Transport has done all the repeating that makes sense.
func (e *Error) Temporary() bool { return false }

// causeOf returns why ctx is done: its cause, matching ctx.Err() as well.
func causeOf(ctx context.Context) error {
	cause, err := context.Cause(ctx), ctx.Err()
	switch {
	case cause == nil:
		return err
	case errors.Is(cause, err):
		return cause
	}
	return &textError{text: cause.Error(), is: []error{cause, err}}
}
