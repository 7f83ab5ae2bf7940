package otelidem_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an attempt can meet, and what it is called.
func TestErrorTypes(t *testing.T) {
	for want, met := range map[string]error{
		"name_not_resolved":          &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}},
		"connection_refused":         &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"connection_reset":           &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"connection_closed":          fmt.Errorf("transport connection broken: %w", io.ErrUnexpectedEOF),
		"server_certificate_invalid": &tls.CertificateVerificationError{Err: errors.New("of another name")},
		"timeout":                    &net.OpError{Op: "dial", Err: timeout{}},
		"expired":                    fmt.Errorf("no more: %w", idem.ErrExpired),
		"*errors.errorString":        errors.New("something with a secret"),
		"quota":                      named{errors.New("too much")},
	} {
		t.Run(want, func(t *testing.T) {
			w := newWatch(t)
			client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
				MaxAttempts: 1, Base: base(func(*http.Request) (*http.Response, error) { return nil, met }),
			})})
			require.NoError(t, err)
			require.ErrorIs(t, charge(t.Context(), client), met)
			assert.Equal(t, `CLIENT "POST" Error type=`+want, w.lines()[1])
			for point := range w.points("idem.attempts") {
				assert.Contains(t, point, "error.type="+want+",")
			}
		})
	}
}

type timeout struct{}

func (timeout) Error() string { return "i/o timeout" }
func (timeout) Timeout() bool { return true }

type named struct{ error }

func (named) ErrorType() string { return "quota" }

// Why a call can end, and what it is called: the most telling word where several
// would do.
func TestReasons(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{idem.ErrExhausted, " reason=exhausted"},
		{errors.Join(idem.ErrWaitTooLong, context.DeadlineExceeded), " reason=wait_too_long"},
		{errors.Join(idem.ErrWaitTooLong, idem.ErrExpired), " reason=wait_too_long"},
		{idem.ErrNotRepeatable, " reason=not_repeatable"},
		{idem.ErrOverBudget, " reason=over_budget"},
		{idem.ErrExpired, " reason=expired"},
		{idem.ErrMismatch, " reason=mismatch"},
		{idem.ErrIntentReused, " reason=reused"},
		{context.Canceled, " reason=canceled"},
		{context.DeadlineExceeded, " reason=deadline_exceeded"},
		{errors.New("something with a secret"), " reason=other"},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			w := newWatch(t)
			client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
				Around: func(http.RoundTripper) http.RoundTripper {
					return base(func(*http.Request) (*http.Response, error) { return nil, test.err })
				},
			})})
			require.NoError(t, err)
			require.ErrorIs(t, charge(t.Context(), client), test.err)
			assert.Contains(t, w.lines()[0], test.want+" ")
		})
	}
}

// 3xx is a redirect only if it says where to.
func TestNotModified(t *testing.T) {
	w := newWatch(t)
	transport := w.instrument(&idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
		return answer(r, http.StatusNotModified, ""), nil
	})})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.NotContains(t, strings.Join(w.lines(), "\n"), "reason")
}
