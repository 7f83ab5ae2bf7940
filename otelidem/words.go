package otelidem

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/idem-go/idem"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// errPanic is what a call or an attempt ends with when a panic, or
// runtime.Goexit, goes through it.
var errPanic = errors.New("otelidem: panic")

// A word stands for the errors that match one of is.
type word struct {
	text string
	is   []error
}

// find returns the first word that err matches, or instead.
func find(words []word, err error, instead string) string {
	for _, w := range words {
		for _, target := range w.is {
			if errors.Is(err, target) {
				return w.text
			}
		}
	}
	return instead
}

// reasonOf names why a call ended, with one of a few words; "" for nil.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return find([]word{ // the order counts: a wait may be too long for a deadline
		{"panic", []error{errPanic}},
		{"exhausted", []error{idem.ErrExhausted}},
		{"wait_too_long", []error{idem.ErrWaitTooLong}},
		{"not_repeatable", []error{idem.ErrNotRepeatable}},
		{"over_budget", []error{idem.ErrOverBudget}},
		{"expired", []error{idem.ErrExpired}},
		{"mismatch", []error{idem.ErrMismatch}},
		{"reused", []error{idem.ErrIntentReused}},
		{"canceled", []error{context.Canceled}},
		{"deadline_exceeded", []error{context.DeadlineExceeded}},
	}, err, "other")
}

// failure names how an attempt failed, as the conventions' error.type: by the
// status, if that is one, else by what it met; "": it did not.
func failure(status int, err error) string {
	switch {
	case status >= http.StatusBadRequest:
		return strconv.Itoa(status)
	case err != nil:
		return errorType(err)
	}
	return ""
}

func errorType(err error) string {
	if known := find([]word{
		{"panic", []error{errPanic}},
		{"canceled", []error{context.Canceled}},
		{"deadline_exceeded", []error{context.DeadlineExceeded}},
		{"expired", []error{idem.ErrExpired}},
	}, err, ""); known != "" {
		return known
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "name_not_resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "server_certificate_invalid"
	}
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		return "timeout"
	}
	if known := find([]word{
		{"connection_refused", []error{syscall.ECONNREFUSED}},
		{"connection_reset", []error{syscall.ECONNRESET, syscall.EPIPE}},
		{"connection_closed", []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}},
	}, err, ""); known != "" {
		return known
	}
	return semconv.ErrorType(err).Value.AsString()
}
