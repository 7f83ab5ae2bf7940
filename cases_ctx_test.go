package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gojek/heimdall#145: a cancel does not wake the backoff.
func TestCase_CTX_1(t *testing.T) {
	cause := errors.New("the user left")
	for name, cancel := range map[string]func(context.Context) (context.Context, func()){
		"cancel": func(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) },
		"cancel with a cause": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(cause) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				ctx, stop := cancel(t.Context())
				time.AfterFunc(50*time.Millisecond, stop)
				in := idem.Open()
				var err error
				d := took(func() { _, _, err = r.post(ctx, in, "a") })
				assert.Equal(t, 50*time.Millisecond, d)
				assert.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, name != "cancel", errors.Is(err, cause))
				assert.NotErrorIs(t, err, context.DeadlineExceeded)
				e := theError(t, err)
				assert.Equal(t, 503, e.Status, "the last status stays readable")
				assert.Equal(t, "5", e.Header.Get("Retry-After"))
				assert.Equal(t, 1, e.Attempts)
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
				assert.Equal(t, 503, lastAttempt(t, in).Status)
				assert.Equal(t, 1, r.count())
				time.Sleep(time.Minute)
				assert.Equal(t, 1, r.count(), "nothing comes later")
				r.oneKey()
			}, status(503, "Retry-After", "5"))
		})
	}
	// The old way to cancel, which http.Client.Timeout still uses.
	t.Run("Request.Cancel", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			gone := make(chan struct{})
			time.AfterFunc(50*time.Millisecond, func() { close(gone) })
			req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodPost, "http://api/charges", strings.NewReader("a"))
			require.NoError(t, err)
			req.Cancel = gone //nolint:staticcheck // it is what is tested
			d := took(func() { _, err = r.transport.RoundTrip(req) })
			assert.Equal(t, 50*time.Millisecond, d)
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, r.count())
		}, status(503, "Retry-After", "5"))
	})
}

// hashicorp/go-retryablehttp#272: a wait into the deadline, for a retry that
// cannot happen.
func TestCase_CTX_2(t *testing.T) {
	for name, pairs := range map[string][]string{"own wait": nil, "asked": {"Retry-After", "1"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Backoff = constant(time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				in := idem.Open()
				var resp *http.Response
				var body string
				var err error
				d := took(func() { resp, body, err = r.post(ctx, in, "a") })
				require.NoError(t, err)
				assert.Zero(t, d)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, "later", body)
				assert.Equal(t, 1, r.count())
				last := lastAttempt(t, in)
				assert.ErrorIs(t, last.Reason, idem.ErrWaitTooLong)
				assert.ErrorIs(t, last.Reason, context.DeadlineExceeded)
				assert.ErrorContains(t, last.Reason, "deadline")
				assert.GreaterOrEqual(t, last.Wait, 500*time.Millisecond)
				r.oneKey()
			}, statusBody(503, "later", pairs...))
		})
	}
	t.Run("no answer either", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Backoff = constant(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			var err error
			d := took(func() { _, _, err = r.post(ctx, idem.Open(), "a") })
			assert.Zero(t, d)
			e := theError(t, err)
			assert.ErrorIs(t, err, idem.ErrWaitTooLong)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorIs(t, err, io.EOF, "and what the attempt met")
			assert.True(t, e.Timeout())
			assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
			assert.Equal(t, 1, r.count())
		}, lost)
	})
	t.Run("a deadline that leaves room", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), 1050*time.Millisecond)
			defer cancel()
			resp, _, err := r.post(ctx, idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			within(t, r.gaps(), time.Second, 1050*time.Millisecond)
			r.oneKey()
		}, status(503, "Retry-After", "1"), created)
	})
}

// avast/retry-go#74: the last real error is replaced by "context canceled".
func TestCase_CTX_3(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.resets()
		r.transport.Backoff = constant(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var err error
		d := took(func() { _, _, err = r.post(ctx, idem.Open(), "a") })
		assert.Equal(t, 50*time.Millisecond, d)
		assert.ErrorIs(t, err, context.Canceled)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "read", op.Op)
		e := theError(t, err)
		assert.ErrorIs(t, e.Reason, context.Canceled)
		assert.ErrorAs(t, e.Last, &op)
		assert.ErrorContains(t, err, "connection reset")
		assert.ErrorContains(t, err, "canceled")
		assert.Equal(t, 1, r.count())
		assert.False(t, e.Timeout(), "a cancel is no timeout")
		r.oneKey()
	}, lost)
}

// turbopuffer/turbopuffer-go#138: the attempt's timeout is taken for the
// caller's deadline and never retried.
func TestCase_CTX_4(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 100 * time.Millisecond
		var err error
		d := took(func() { _, _, err = r.post(t.Context(), idem.Open(), "a") })
		assert.Equal(t, 3, r.count())
		assert.GreaterOrEqual(t, d, 315*time.Millisecond)
		assert.LessOrEqual(t, d, 330*time.Millisecond)
		e := theError(t, err)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.True(t, e.Timeout())
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller set no deadline")
		assert.NotErrorIs(t, err, context.Canceled)
		assert.Equal(t, 3, e.Attempts)
		assert.Equal(t, 3, e.Sends)
		assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
		r.oneKey()
	}, stall)
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 100 * time.Millisecond
		resp, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.Equal(t, 3, r.count())
		r.oneKey()
	}, stall, stall, created)
	// The caller's deadline lies further off than two attempts.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 100 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		resp, _, err := r.post(ctx, idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.Equal(t, 3, r.count())
		r.oneKey()
	}, stall, stall, created)
	// What ran out of time may have run on a connection that is dead without a
	// sign. HTTP/1 drops it at once; HTTP/2 uses it for one attempt more.
	for _, two := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *rig) {
			r.base.Protocols = new(http.Protocols)
			r.base.Protocols.SetHTTP1(!two)
			r.base.Protocols.SetUnencryptedHTTP2(two)
			r.transport.AttemptTimeout = 100 * time.Millisecond
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			hits := r.all()
			require.Len(t, hits, 3)
			// Compared here: printing a connection would be a race.
			second, third := hits[0].conn == hits[1].conn, hits[1].conn == hits[2].conn
			assert.Equal(t, two, second)
			assert.False(t, third, "HTTP/2: %v", two)
			r.oneKey()
		}, stall, stall, created)
	}
	// The server never takes the connection: there is no request to be written.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 100 * time.Millisecond
		var dials atomic.Int32
		r.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		e := theError(t, err)
		assert.EqualValues(t, 3, dials.Load())
		assert.True(t, e.Timeout())
		assert.Equal(t, idem.NotExecuted, e.Outcome, "nothing was sent")
		assert.Zero(t, e.Sends)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, context.Canceled)
	}, created)
}

// watchedContexts is a Base that remembers the contexts of its requests.
type watchedContexts struct {
	http.RoundTripper
	mu   sync.Mutex
	seen []context.Context
}

func (w *watchedContexts) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.seen = append(w.seen, r.Context())
	w.mu.Unlock()
	return w.RoundTripper.RoundTrip(r)
}

// Azure/azure-sdk-for-go#17797: a good body cannot be read, because the
// attempt's context ended with the return.
func TestCase_CTX_5(t *testing.T) {
	const chunk, chunks = 64 << 10, 128 // 8 MiB
	step := func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		for range chunks {
			_, _ = io.WriteString(w, strings.Repeat("x", chunk))
			_ = http.NewResponseController(w).Flush()
		}
	}
	for name, early := range map[string]bool{"read to the end": false, "closed early": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				base := &watchedContexts{RoundTripper: r.base}
				r.transport.Base, r.transport.AttemptTimeout = base, 100*time.Millisecond
				in := idem.Open()
				req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, "http://api/charges", strings.NewReader("a"))
				require.NoError(t, err)
				resp, err := r.client().Do(req)
				require.NoError(t, err)
				time.Sleep(time.Second) // much longer than an attempt may take
				require.Len(t, base.seen, 1)
				assert.NoError(t, base.seen[0].Err(), "the attempt's context lives as long as the body")
				n, err := io.CopyN(io.Discard, resp.Body, 1<<20)
				require.NoError(t, err)
				time.Sleep(time.Second)
				if !early {
					m, err := io.Copy(io.Discard, resp.Body)
					require.NoError(t, err)
					assert.EqualValues(t, chunk*chunks, n+m)
					assert.Error(t, base.seen[0].Err(), "released at the end")
				}
				require.NoError(t, resp.Body.Close())
				assert.Error(t, base.seen[0].Err(), "released on Close")
				assert.NoError(t, resp.Request.Context().Err(), "the request of the answer has the caller's context")
				assert.Equal(t, 1, r.count())
				assert.Equal(t, idem.Answered, in.Outcome())
				r.oneKey()
			}, step)
		})
	}
}

// buildkite/test-engine-client#543: small bodies were buffered in every test,
// live streams were not.
func TestCase_CTX_6(t *testing.T) {
	pause := func(contentType string) step {
		return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
			s.exec(h)
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, `{"a":`)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(300 * time.Millisecond):
				_, _ = io.WriteString(w, `1}`)
			case <-r.Context().Done():
			}
		}
	}
	for _, contentType := range []string{"text/plain", "text/event-stream", "application/octet-stream"} {
		t.Run(contentType, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.AttemptTimeout = 100 * time.Millisecond
				resp, body, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 200, resp.StatusCode)
				assert.Equal(t, `{"a":1}`, body)
				assert.Equal(t, 1, r.count())
				r.oneKey()
			}, pause(contentType))
		})
	}
	// JSON is read inside the attempt, so that a cut body is asked for again:
	// there the attempt's clock covers the body.
	t.Run("JSON", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, body, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, `{"a":1}`, body)
			assert.Equal(t, 1, r.count())
		}, pause("application/json"))
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = 100 * time.Millisecond
			resp, body, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
			assert.JSONEq(t, `{"id":"ch_1"}`, body)
			assert.Equal(t, 2, r.count())
			assert.Equal(t, 1, r.done())
			r.oneKey()
		}, pause("application/json"), created)
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout, r.transport.MaxResponse = 100*time.Millisecond, -1
			_, body, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, `{"a":1}`, body, "not buffered, not cut")
			assert.Equal(t, 1, r.count())
		}, pause("application/json"))
	})
}

// PuerkitoBio/rehttp#1: http.Client.Timeout covers all attempts together. It
// does, and replaces the error; the Intent keeps what is known.
func TestCase_CTX_7(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout, r.transport.MaxAttempts = 100*time.Millisecond, 5
		client := &http.Client{Transport: r.transport, Timeout: 250 * time.Millisecond}
		in := idem.Open()
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, "http://api/charges", strings.NewReader("a"))
		require.NoError(t, err)
		d := took(func() { _, err = client.Do(req) })
		assert.LessOrEqual(t, d, 250*time.Millisecond)
		var n net.Error
		require.ErrorAs(t, err, &n)
		assert.True(t, n.Timeout())
		top, ok := err.(net.Error)
		require.True(t, ok)
		assert.True(t, top.Timeout(), "at the top")
		assert.LessOrEqual(t, r.count(), 3)
		assert.GreaterOrEqual(t, r.count(), 2)
		synctest.Wait()
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		assert.Len(t, in.Attempts(), r.count())
		time.Sleep(time.Minute)
		assert.LessOrEqual(t, r.count(), 3, "nothing comes later")
		r.oneKey()
	}, stall)
	// It also covers the reading of a body, after the return.
	bubble(t, func(t *testing.T, r *rig) {
		client := &http.Client{Transport: r.transport, Timeout: 250 * time.Millisecond}
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodPost, "http://api/charges", strings.NewReader("a"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		d := took(func() { _, err = io.ReadAll(resp.Body) })
		require.Error(t, err)
		var n net.Error
		require.ErrorAs(t, err, &n)
		assert.True(t, n.Timeout())
		assert.LessOrEqual(t, d, 250*time.Millisecond)
		resp.Body.Close()
		assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome, "the head was a 200")
	}, func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		s.exec(h)
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// temporalio/temporal#1845: seven attempts on a cancelled context.
func TestCase_CTX_8(t *testing.T) {
	for name, step := range map[string]step{"no answer": stall, "half a body": func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		s.exec(h)
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				cause := errors.New("the user left")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
				in := idem.Open()
				var err error
				d := took(func() { _, _, err = r.post(ctx, in, "a") })
				assert.Equal(t, 20*time.Millisecond, d)
				assert.ErrorIs(t, err, context.Canceled)
				assert.ErrorIs(t, err, cause)
				e := theError(t, err)
				assert.False(t, e.Timeout())
				assert.Equal(t, 1, e.Attempts)
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
				assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
				assert.False(t, lastAttempt(t, in).Retry)
				time.Sleep(time.Minute)
				assert.Equal(t, 1, r.count())
				r.oneKey()
			}, step)
		})
	}
	t.Run("before the first attempt", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			in := idem.Open()
			_, _, err := r.post(ctx, in, "a")
			assert.ErrorIs(t, err, context.Canceled)
			assert.Zero(t, r.count())
			assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			assert.Equal(t, idem.NotExecuted, in.Outcome())
			assert.Empty(t, in.Attempts())
		}, created)
	})
	t.Run("between two attempts, without a wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Backoff = constant(0)
			ctx, cancel := context.WithCancel(t.Context())
			r.transport.OnAttempt = func(context.Context, idem.Attempt) { cancel() }
			_, _, err := r.post(ctx, idem.Open(), "a")
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, r.count(), "the context is asked again after the wait")
		}, status(503))
	})
	// A context of the caller's own that ends just after the wait has: only
	// asking it again tells.
	t.Run("after the wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx := &silentContext{Context: t.Context()}
			in := idem.Open()
			r.transport.OnAttempt = func(context.Context, idem.Attempt) { ctx.done.Store(true) }
			_, _, err := r.post(ctx, in, "a")
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, 1, r.count())
			assert.Len(t, in.Attempts(), 1)
		}, status(503), created)
	})
	t.Run("at the very end of the wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) { time.AfterFunc(a.Wait, cancel) }
			_, _, err := r.post(ctx, idem.Open(), "a")
			if err != nil { // either side may be first
				assert.ErrorIs(t, err, context.Canceled)
			}
			assert.LessOrEqual(t, r.count(), 2)
		}, status(503), created)
	})
}

// silentContext ends without waking anybody.
type silentContext struct {
	context.Context
	done atomic.Bool
}

func (c *silentContext) Done() <-chan struct{} { return nil }

func (c *silentContext) Err() error {
	if c.done.Load() {
		return context.Canceled
	}
	return nil
}

// golang/go#45818: the caller's deadline is a net.Error with Timeout and
// Temporary, so it looks like something to retry.
func TestCase_CTX_9(t *testing.T) {
	for _, limit := range []time.Duration{-1, 0, 100 * time.Millisecond, 101 * time.Millisecond, time.Second} {
		t.Run(limit.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.AttemptTimeout = limit
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				in := idem.Open()
				var err error
				d := took(func() { _, _, err = r.post(ctx, in, "a") })
				assert.Equal(t, 100*time.Millisecond, d)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				e := theError(t, err)
				assert.True(t, e.Timeout())
				assert.False(t, e.Temporary())
				assert.NotErrorIs(t, err, idem.ErrExhausted)
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
				time.Sleep(time.Minute)
				assert.Equal(t, 1, r.count())
				r.oneKey()
			}, stall)
		})
	}
	// An attempt's timeout just before the deadline is the attempt's; what is
	// left does not fit another wait.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 99 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var err error
		d := took(func() { _, _, err = r.post(ctx, idem.Open(), "a") })
		assert.Equal(t, 99*time.Millisecond, d)
		assert.ErrorIs(t, err, idem.ErrWaitTooLong)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, r.count())
	}, stall)
}

// temporalio/temporal#4403: the caller sees the deadline instead of the cause.
func TestCase_CTX_10(t *testing.T) {
	step := statusBody(503, "maintenance")
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Backoff = constant(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var res idem.Result
		var err error
		d := took(func() { res, err = r.jsonClient(t).Call(ctx, idem.Open(), "POST", "/charges", "a", nil) })
		assert.Zero(t, d)
		e := theError(t, err)
		assert.Equal(t, 503, res.Status)
		assert.Equal(t, 503, e.Status)
		assert.Equal(t, "maintenance", string(e.Body))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, idem.ErrWaitTooLong)
		assert.ErrorContains(t, err, "503")
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		assert.Equal(t, 1, r.count())
		r.oneKey()
	}, step)
	// The deadline passes while the second attempt is under way: the status of
	// the first stays on the Intent.
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		in := idem.Open()
		_, err := r.jsonClient(t).Call(ctx, in, "POST", "/charges", "a", nil)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		all := in.Attempts()
		require.Len(t, all, 2)
		assert.Equal(t, 503, all[0].Status)
		assert.Zero(t, all[1].Status)
		assert.ErrorIs(t, all[1].Err, context.DeadlineExceeded)
		assert.Equal(t, 2, r.count())
		r.oneKey()
	}, step, stall)
}

// eapache/go-resiliency#36: timers pile up behind cancelled waits.
func TestCase_CTX_11(t *testing.T) {
	const calls = 10_000
	synctest.Test(t, func(t *testing.T) {
		tr := &idem.Transport{Base: unavailable{}, Backoff: constant(2 * time.Hour)}
		one := func() {
			ctx, cancel := context.WithCancel(idem.WithIntent(t.Context(), idem.Open()))
			time.AfterFunc(time.Millisecond, cancel)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api/", nil)
			require.NoError(t, err)
			_, err = tr.RoundTrip(req)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%v", err)
			}
		}
		for range 100 {
			one()
		}
		synctest.Wait()
		goroutines, heap := runtime.NumGoroutine(), heapInUse()
		start := time.Now()
		for range calls {
			one()
		}
		assert.Equal(t, calls*time.Millisecond, time.Since(start), "each returns with its cancel")
		synctest.Wait()
		assert.LessOrEqual(t, settledGoroutines(goroutines+2), goroutines+2)
		assert.Less(t, heapInUse(), heap+2<<20, "less than 200 bytes a call are left")
	})
}

// settledGoroutines returns the number of goroutines once it is at most want: one
// that is done may still be on its way out.
func settledGoroutines(want int) (n int) {
	for range 10_000 {
		if n = runtime.NumGoroutine(); n <= want {
			break
		}
		runtime.Gosched()
	}
	return n
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A call that waits costs no goroutine besides its caller's.
func TestCase_CTX_11_Waiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &idem.Transport{Base: unavailable{}, Backoff: constant(2 * time.Hour)}
		ctx, cancel := context.WithCancel(t.Context())
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		const calls = 500
		for range calls {
			wg.Go(func() {
				req, err := http.NewRequestWithContext(idem.WithIntent(ctx, idem.Open()), http.MethodPost, "http://api/", nil)
				assert.NoError(t, err)
				_, err = tr.RoundTrip(req)
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+calls+2)
		cancel()
		wg.Wait()
		synctest.Wait()
		assert.LessOrEqual(t, settledGoroutines(before+2), before+2)
	})
}

// ihrwein/backoff#42: the limit is tested before the wait and not after, so that
// attempts start after it.
func TestCase_CTX_12(t *testing.T) {
	for i := range 20 { // the waits are drawn
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts, r.transport.Backoff = 10, constant(400*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			in := idem.Open()
			resp, _, err := r.post(ctx, in, "a")
			assert.LessOrEqual(t, time.Since(start), time.Second)
			for _, h := range r.all() {
				assert.Less(t, h.at.Sub(start), time.Second, "run %d", i)
			}
			for _, a := range in.Attempts() {
				assert.Less(t, a.Start.Sub(start), time.Second)
			}
			assert.LessOrEqual(t, r.count(), 2)
			if err == nil {
				assert.Equal(t, 503, resp.StatusCode)
				assert.ErrorIs(t, lastAttempt(t, in).Reason, context.DeadlineExceeded)
			} else {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			r.oneKey()
		}, slow(300*time.Millisecond, status(503)))
	}
}

// hashicorp/go-retryablehttp#142: Timeout() is false at the top.
func TestCase_CTX_13(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = 100 * time.Millisecond
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		var n net.Error
		require.ErrorAs(t, err, &n)
		assert.True(t, n.Timeout())
		top, ok := err.(net.Error)
		require.True(t, ok, "http.Client returns a net.Error")
		assert.True(t, top.Timeout())
		assert.True(t, theError(t, err).Timeout())
		assert.Equal(t, 3, r.count())
		r.oneKey()
		_, err = r.jsonClient(t).Call(t.Context(), idem.Open(), "POST", "/charges", nil, nil)
		require.ErrorAs(t, err, &n)
		assert.True(t, n.Timeout())
	}, stall)
	// Also over HTTP/2, which reports a bare "context canceled".
	t.Run("HTTP/2", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.base.Protocols = new(http.Protocols)
			r.base.Protocols.SetUnencryptedHTTP2(true)
			r.transport.AttemptTimeout = 100 * time.Millisecond
			_, _, err := r.post(t.Context(), idem.Open(), "a")
			e := theError(t, err)
			assert.True(t, e.Timeout())
			assert.NotErrorIs(t, err, context.Canceled)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, 3, r.count())
			r.oneKey()
		}, stall)
	})
	// What is no timeout does not say so.
	for name, step := range map[string]step{"lost": lost, "malformed": raw("nonsense\r\n\r\n")} {
		t.Run(fmt.Sprint(name), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, _, err := r.post(t.Context(), idem.Open(), "a")
				assert.False(t, theError(t, err).Timeout())
				assert.False(t, err.(net.Error).Timeout())
			}, step)
		})
	}
}
