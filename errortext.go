package idem

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// plain is the text of err in one line, without our prefix; joined errors are
// separated by semicolons. Of a *url.Error, which an http.Client as Base gives,
// the URL is left out, and of an answer that is not HTTP, or of a request that
// cannot be HTTP/2, what net/http quotes.
func plain(err error) string {
	var parts []string
	for line := range strings.Lines(withoutURLs(err, err.Error())) {
		if part := strings.TrimPrefix(strings.Join(strings.Fields(unquoted(line)), " "), "idem: "); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// unquoted cuts off what net/http quotes of an answer that it cannot read, or of a
// request that it cannot write.
func unquoted(line string) string {
	for _, about := range []string{"malformed ", "bad Content-Length", "unsupported transfer encoding", "request header: ", "request :path ", "invalid proxy address"} {
		if i := strings.Index(line, about); i >= 0 {
			said, _, _ := strings.Cut(line[i:], ` "`)
			said, _, _ = strings.Cut(said, "line: ") // of a header, without quotes
			said, _, _ = strings.Cut(said, ": [")    // of several values
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

// textError is an error with a text of its own that matches others.
type textError struct {
	text string
	is   []error
}

func (e *textError) Error() string { return e.text }

func (e *textError) Unwrap() []error { return e.is }

// because returns an error that matches err and says more.
func because(err error, format string, args ...any) error {
	return &textError{text: err.Error() + ": " + fmt.Sprintf(format, args...), is: []error{err}}
}

// attemptTimeoutError ends an attempt that took too long. It is a timeout, but not
// the caller's: it matches neither of the context errors.
type attemptTimeoutError time.Duration

func (d attemptTimeoutError) Error() string {
	return fmt.Sprintf("idem: the attempt had no answer within %v", time.Duration(d))
}

func (d attemptTimeoutError) Timeout() bool { return true }

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
