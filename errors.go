package idem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
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
	// ErrIntentReused: the Intent is bound to another request. Open a new
	// Intent for it, or a Child for one step of several.
	ErrIntentReused = errors.New("idem: the Intent is bound to another request: open a new one, or a Child")
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
// Intent is bound to: ErrIntentReused is NotExecuted here, while the Intent may
// be Answered.
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
	case e.Reason == nil && e.Last == nil:
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

// plain is the text of err in one line, without our prefix; joined errors are
// separated by semicolons. Of a *url.Error, which an http.Client as Base gives,
// the URL is left out, and of an answer that is not HTTP what net/http quotes.
func plain(err error) string {
	var parts []string
	for line := range strings.Lines(withoutURLs(err, err.Error())) {
		if part := strings.TrimPrefix(strings.Join(strings.Fields(unquoted(line)), " "), "idem: "); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// unquoted cuts off what net/http quotes of an answer that it cannot read.
func unquoted(line string) string {
	for _, about := range []string{"malformed ", "bad Content-Length", "unsupported transfer encoding"} {
		if i := strings.Index(line, about); i >= 0 {
			said, _, _ := strings.Cut(line[i:], ` "`)
			said, _, _ = strings.Cut(said, "line: ") // of a header, without quotes
			line = line[:i] + strings.TrimRight(said, ": ")
		}
	}
	return line
}

// withoutURLs takes from text, that of an error around err, what each *url.Error
// puts in front of its own.
func withoutURLs(err error, text string) string {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // each error of the tree is looked at
		text = strings.ReplaceAll(text, u.Error(), u.Err.Error())
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text = withoutURLs(inner, text)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text = withoutURLs(inner, text)
		}
	}
	return text
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

// Problem is a problem document (RFC 9457). Type is the identifier to decide
// by; absent members are empty, and members of a wrong JSON type are ignored,
// as the RFC asks. Extra holds all other members.
type Problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	Extra                         map[string]json.RawMessage
}

// parseProblem returns the problem document in body, or nil if it is none.
func parseProblem(header http.Header, body []byte) *Problem {
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/problem+json") {
		return nil
	}
	var members map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&members) != nil || members == nil {
		return nil
	}
	p := &Problem{Type: "about:blank"} // RFC 9457, 3.1.1
	for member, into := range map[string]any{
		"type": &p.Type, "title": &p.Title, "detail": &p.Detail, "instance": &p.Instance, "status": &p.Status,
	} {
		if raw, ok := members[member]; ok {
			_ = json.Unmarshal(raw, into) // a member of a wrong type is ignored (RFC 9457, 3.1)
			delete(members, member)
		}
	}
	if len(members) > 0 {
		p.Extra = members
	}
	return p
}

// textError is an error with a text of its own that matches others.
type textError struct {
	text string
	is   []error
}

func (e *textError) Error() string   { return e.text }
func (e *textError) Unwrap() []error { return e.is }

// because returns an error that matches err and says more.
func because(err error, format string, args ...any) error {
	return &textError{text: err.Error() + ": " + fmt.Sprintf(format, args...), is: []error{err}}
}

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

// attemptTimeoutError ends an attempt that took too long. It is a timeout, but not
// the caller's: it matches neither of the context errors.
type attemptTimeoutError time.Duration

func (d attemptTimeoutError) Error() string {
	return fmt.Sprintf("idem: the attempt had no answer within %v", time.Duration(d))
}
func (d attemptTimeoutError) Timeout() bool   { return true }
func (d attemptTimeoutError) Temporary() bool { return true }

// waitTooLongError is why a wait was not begun.
type waitTooLongError struct {
	wait, limit      time.Duration
	what             string // whose limit it is
	deadline, window bool
}

func (e *waitTooLongError) Error() string {
	return fmt.Sprintf("idem: the next wait of %v is longer than the %v that %s",
		e.wait.Round(time.Millisecond), e.limit.Round(time.Millisecond), e.what)
}

// Is makes the error match ErrWaitTooLong, and what set the limit.
func (e *waitTooLongError) Is(target error) bool {
	return target == ErrWaitTooLong || e.deadline && target == context.DeadlineExceeded || e.window && target == ErrExpired
}

// shortKey makes a key fit to be shown: the first eight digits of a UUID, a
// length for anything else, which may hold a name or an address.
func shortKey(key string) string {
	if _, err := uuid.Parse(key); err == nil && len(key) == 36 {
		return key[:8] + "…"
	}
	return fmt.Sprintf("of %d bytes", len(key))
}
