package idem_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What at least one of the widely used retrying clients of Go does otherwise,
// about waits, deadlines, timeouts and attempts.

// One client judges by the parsed body and so repeats a 422 whose body is HTML,
// while it does not repeat a 409 or 503 whose body is JSON.
func TestPeers_StatusBeforeBody(t *testing.T) {
	const jsonBody, htmlBody = `{"error":{"type":"api_error"}}`, "<html><body>no</body></html>"
	for _, body := range []struct{ kind, text, media string }{
		{"JSON", jsonBody, "application/json"}, {"HTML", htmlBody, "text/html"}, {"empty", "", ""}, {"cut JSON", `{"error":{`, "application/json"},
	} {
		for code, hits := range map[int]int{409: 2, 503: 2, 500: 2, 429: 2, 422: 1, 400: 1, 404: 1} {
			t.Run(http.StatusText(code)+" "+body.kind, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					resp, text, err := r.post(t.Context(), idem.Open(), "a")
					require.NoError(t, err)
					assert.Equal(t, hits, r.count())
					if hits == 1 {
						assert.Equal(t, code, resp.StatusCode)
						assert.Equal(t, body.text, text, "every byte is still there")
					} else {
						assert.Equal(t, 201, resp.StatusCode)
					}
					r.oneKey()
				}, statusBody(code, body.text, "Content-Type", body.media), created)
			})
		}
	}
}

// One client's seconds wrap, so that it repeats at once; none honours the
// header on a 409.
func TestPeers_RetryAfter(t *testing.T) {
	for _, code := range []int{429, 503, 409} {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, code, resp.StatusCode)
			assert.Equal(t, 1, r.count())
		}, status(code, "Retry-After", "9223372037"))
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			within(t, r.gaps(), 3*time.Second, 3300*time.Millisecond)
			r.oneKey()
		}, status(code, "Retry-After", "3"), created)
	}
}

// Three clients sleep on after a cancel, or hide it.
func TestPeers_CancelInBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Backoff = constant(10 * time.Second)
		for name, with := range map[string]func(context.Context) (context.Context, context.CancelFunc, error){
			"cancel": func(ctx context.Context) (context.Context, context.CancelFunc, error) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(50*time.Millisecond, cancel)
				return ctx, cancel, context.Canceled
			},
			"cancel from above": func(ctx context.Context) (context.Context, context.CancelFunc, error) {
				above, cancel := context.WithCancel(ctx)
				time.AfterFunc(50*time.Millisecond, cancel)
				ctx, done := context.WithTimeout(above, time.Hour)
				return ctx, done, context.Canceled
			},
		} {
			before := r.count()
			ctx, done, want := with(t.Context())
			var err error
			d := took(func() { _, _, err = r.post(ctx, idem.Open(), "a") })
			done()
			assert.Equal(t, 50*time.Millisecond, d, name)
			assert.ErrorIs(t, err, want, name)
			assert.Equal(t, 1, r.count()-before, name)
		}
	}, status(503))
}

// None compares the wait with the context's deadline: all sleep into it.
func TestPeers_WaitBeyondDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 10
		r.transport.Backoff = idem.Exponential(2*time.Second, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		in := idem.Open()
		resp, body, err := r.post(ctx, in, "a")
		require.NoError(t, err)
		assert.Equal(t, 503, resp.StatusCode)
		assert.Equal(t, "maintenance", body)
		hits := r.all()
		assert.Equal(t, hits[len(hits)-1].at, time.Now(), "at once after the last answer")
		assert.Less(t, time.Since(start), 5*time.Second)
		assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrWaitTooLong)
		r.oneKey()
	}, statusBody(503, "maintenance"))
}

// Three have no jitter on the first repetition.
func TestPeers_FirstRetryIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := firstWaits(t, 200, nil)
		assert.Greater(t, waits[199]-waits[0], 50*time.Millisecond)
		assert.Greater(t, len(slices.Compact(waits)), 190)
	})
	// Also of a wait that the server asks for: it is the same for all.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 2
		var waits []time.Duration
		for range 50 {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "a")
			require.NoError(t, err)
			waits = append(waits, in.Attempts()[0].Wait)
		}
		within(t, waits, 10*time.Second, 11*time.Second)
		slices.Sort(waits)
		assert.Greater(t, len(slices.Compact(waits)), 45)
	}, status(503, "Retry-After", "10"))
}

// Two end the call with the attempt's timeout.
func TestPeers_AttemptTimeoutIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = time.Second
		resp, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
		assert.Equal(t, 2, r.count())
		assert.Equal(t, 1, r.done(), "the first attempt had done the work")
		r.oneKey()
	}, func(s *server, _ http.ResponseWriter, r *http.Request, h hit) {
		s.exec(h)
		<-r.Context().Done()
	}, created)
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := r.post(ctx, idem.Open(), "a")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 1, r.count(), "the whole call's timeout is not")
	}, stall)
}

// http.Client.Timeout replaces every client's error by one without anything in
// it. What is known stays on the Intent.
func TestPeers_ClientTimeoutKeepsTheOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		steps   []step
		outcome idem.Outcome
		hits    int
	}{
		"lost in the first attempt":  {[]step{stall}, idem.OutcomeUnknown, 1},
		"lost in the second attempt": {[]step{status(503), stall}, idem.OutcomeUnknown, 2},
		"refused, then no time left": {[]step{status(429, "Retry-After", "20")}, idem.NotExecuted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				client := &http.Client{Transport: r.transport, Timeout: time.Second}
				in := idem.Open()
				req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, "http://api/charges", strings.NewReader("a"))
				require.NoError(t, err)
				resp, err := client.Do(req)
				if err == nil {
					resp.Body.Close()
					assert.Equal(t, 429, resp.StatusCode)
				} else {
					var n net.Error
					require.ErrorAs(t, err, &n)
					assert.True(t, n.Timeout())
				}
				synctest.Wait()
				assert.Equal(t, c.outcome, in.Outcome())
				assert.Equal(t, c.hits, r.count())
				assert.Len(t, in.Attempts(), c.hits)
				assert.Equal(t, in.Key(), r.all()[0].keys[0], "the key to ask again with")
				// And asking again with it works.
				r.server.mu.Lock()
				r.server.steps = []step{created}
				r.server.mu.Unlock()
				resp, _, err = r.post(t.Context(), in, "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, idem.Answered, in.Outcome())
				assert.Equal(t, 1, r.done())
				r.oneKey()
			}, c.steps...)
		})
	}
}

// A keyed request that net/http sends again by itself, over a pooled connection
// that is dead, is one attempt and two sends; everybody reports one.
func TestPeers_HiddenSendIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.warm(t, 1)
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		res := idem.ResultOf(resp)
		assert.Equal(t, 1, res.Attempts)
		assert.Equal(t, 2, res.Sends)
		assert.Equal(t, idem.Replayed, res.Replay)
		assert.Equal(t, 2, r.count())
		assert.Equal(t, 1, r.done())
		assert.Equal(t, 2, lastAttempt(t, in).Sends)
		r.oneKey()
	}, lost, created)
	// The limit counts attempts: with one attempt there may be two sends.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 1
		r.warm(t, 1)
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		e := theError(t, err)
		assert.Equal(t, 1, e.Attempts)
		assert.Equal(t, 2, e.Sends)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
		r.oneKey()
	}, lost)
}

// A 2xx whose body is cut is not asked for again by most.
func TestPeers_CutBodyIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		resp, body, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.JSONEq(t, `{"id":"ch_1"}`, body)
		assert.Equal(t, 2, r.count())
		assert.Equal(t, 1, r.done())
		r.oneKey()
	}, cut(12, 100), created)
	// The last one cut is an error that says so, and no half an answer.
	bubble(t, func(t *testing.T, r *rig) {
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		e := theError(t, err)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, 3, e.Attempts)
		assert.Equal(t, 200, e.Status)
		r.oneKey()
	}, cut(12, 100))
}

// Three attempts with a body of 64 KiB in each answer use one connection; most
// need three.
func TestPeers_OneConnection(t *testing.T) {
	for _, size := range []int{0, 100, 4096, 4097, 64<<10 - 1, 64 << 10} {
		bubble(t, func(t *testing.T, r *rig) {
			_, body, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Len(t, body, size)
			assert.Equal(t, 3, r.count())
			assert.Equal(t, 1, r.net.dials, "%d bytes", size)
			r.oneKey()
		}, statusBody(503, strings.Repeat("x", size)))
	}
}

// Without a key nothing is said about one: neither that it came before with
// another request, nor that its first request is still running.
func TestPeers_NoKeyNoWordOfOne(t *testing.T) {
	for _, code := range []int{409, 422} {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.jsonClient(t).Call(t.Context(), nil, "GET", "/charges", nil, nil)
			e := theError(t, err)
			assert.Equal(t, code, e.Status)
			assert.NotErrorIs(t, err, idem.ErrMismatch)
			assert.NotErrorIs(t, err, idem.ErrInProgress)
			assert.NoError(t, e.Reason)
			assert.Equal(t, 1, r.count())
			assert.Empty(t, r.all()[0].keys)
		}, status(code))
	}
}
