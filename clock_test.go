package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// An attempt's own timeout is no cancel and not the caller's deadline, also over
// HTTP/2, which reports a bare "context canceled".
func TestTransport_AttemptTimeout(t *testing.T) {
	head := func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for _, h2 := range []bool{false, true} {
		for name, s := range map[string]step{"no answer": stall, "head only": head} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if h2 {
						r.base.Protocols = new(http.Protocols)
						r.base.Protocols.SetUnencryptedHTTP2(true)
					}
					r.transport.AttemptTimeout = time.Second
					in := idem.Open()
					_, _, err := r.post(t.Context(), in, "{}")
					e := theError(t, err)
					require.Equal(t, 3, r.count())
					require.Equal(t, 3, e.Attempts)
					require.True(t, e.Timeout())
					require.NotErrorIs(t, e, context.Canceled)
					require.NotErrorIs(t, e, context.DeadlineExceeded)
					for _, a := range in.Attempts() {
						require.NotErrorIs(t, a.Err, context.Canceled, "%v", a.Err)
						require.Equal(t, time.Second, a.Duration)
					}
					require.NotEqual(t, idem.NotExecuted, e.Outcome)
					r.oneKey()
				}, s)
			})
		}
	}
	t.Run("a long upload is not cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.transport.MaxBody = 10
			i := 0
			body := &opaque{r: readerFunc(func(p []byte) (int, error) {
				if i++; i > 20 {
					return 0, io.EOF
				}
				time.Sleep(900 * time.Millisecond)
				return copy(p, "12345"), nil
			})}
			req := keyedPost(t, idem.Open(), "http://api/x", body)
			req.ContentLength = 100
			resp, _, err := r.send(req)
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Len(t, r.all()[0].body, 100)
		}, created)
	})
	t.Run("a body that stops coming is cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.transport.MaxBody = 10
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, "12345") }()
			defer time.AfterFunc(time.Hour, func() { _ = pw.Close() }).Stop()
			req := keyedPost(t, idem.Open(), "http://api/x", pr)
			req.ContentLength = 100
			start := time.Now()
			_, _, err := r.send(req)
			e := theError(t, err)
			require.True(t, e.Timeout(), "%v", err)
			require.LessOrEqual(t, time.Since(start), 2*time.Second)
			require.Equal(t, 1, e.Attempts)
			require.Zero(t, r.count())
		}, created)
	})
	t.Run("a body that stops coming when the caller leaves", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, "12345") }()
			defer time.AfterFunc(time.Hour, func() { _ = pw.Close() }).Stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://api/x", pr)
			req.ContentLength = 100
			start := time.Now()
			_, _, err := r.send(req)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
		}, created)
	})
	t.Run("a long stream of an answer is not cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			_, text, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("x", 10), text)
		}, func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Second)
			}
		})
	})
	t.Run("a silent peer below TLS", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				t.Cleanup(func() { _ = there.Close() })
				return here, nil
			}
			start := time.Now()
			_, _, err := r.send(keyedPost(t, idem.Open(), "https://api/x", strings.NewReader("{}")))
			e := theError(t, err)
			require.True(t, e.Timeout())
			require.Equal(t, 3, e.Attempts)
			require.Equal(t, idem.NotExecuted, e.Outcome, "no request byte left")
			require.Less(t, time.Since(start), 4*time.Second)
		})
	})
}

// A Request.Cancel that is closed is the caller's: not retried.
func TestTransport_RequestCancel(t *testing.T) {
	for name, s := range map[string]step{"in an attempt": stall, "in a wait": status(503)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Backoff = idem.Exponential(time.Hour, time.Hour)
				cancel := make(chan struct{})
				in := idem.Open()
				req := keyedPost(t, in, "http://api/x", strings.NewReader("{}"))
				req.Cancel = cancel //nolint:staticcheck // still in use
				time.AfterFunc(time.Second, func() { close(cancel) })
				start := time.Now()
				_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
				theError(t, err)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, 1, r.count())
				require.Len(t, in.Attempts(), 1)
				require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			}, s)
		})
	}
}

// A context that is done on entry: no attempt is made.
func TestTransport_DoneOnEntry(t *testing.T) {
	for _, base := range []string{"net/http", "stub"} {
		for _, keyed := range []bool{true, false} {
			bubble(t, func(t *testing.T, r *rig) {
				if base == "stub" {
					r.transport.Base = baseFunc(func(r *http.Request) (*http.Response, error) {
						t.Error("asked")
						return reply(r, 200, ""), nil
					})
				}
				cause := errors.New("the user has left")
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				var in *idem.Intent
				if keyed {
					in = idem.Open()
					ctx = idem.WithIntent(ctx, in)
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://api/x", strings.NewReader("{}"))
				_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
				e := theError(t, err)
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, context.Canceled)
				require.Zero(t, e.Attempts)
				require.Equal(t, idem.NotExecuted, e.Outcome)
				require.Zero(t, r.count())
			}, created)
		}
	}
}

// A caller's own deadline is not an attempt's: it is not tried again.
func TestTransport_CallerDeadline(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *rig) {
			if h2 {
				r.base.Protocols = new(http.Protocols)
				r.base.Protocols.SetUnencryptedHTTP2(true)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			in := idem.Open()
			_, _, err := r.post(ctx, in, "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, e.Timeout())
			require.Equal(t, 1, r.count())
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		}, stall)
	}
}
