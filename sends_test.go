package idem_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// onPooled does one thing on connections that have served before, another on
// fresh ones.
func onPooled(pooled, fresh step) step {
	seen := map[net.Conn]bool{}
	return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		s.mu.Lock()
		before := seen[h.conn]
		seen[h.conn] = true
		s.mu.Unlock()
		switch {
		case h.path == "/warm":
			w.WriteHeader(204)
		case before:
			pooled(s, w, r, h)
		default:
			fresh(s, w, r, h)
		}
	}
}

// warmFor leaves n idle connections that the step knows as pooled.
func warmFor(t *testing.T, r *rig, n int, on step) {
	t.Helper()
	r.base.MaxIdleConnsPerHost, r.base.MaxIdleConns = 200, 0
	gate := make(chan struct{})
	r.server.steps = []step{func(s *server, w http.ResponseWriter, q *http.Request, h hit) { <-gate; on(s, w, q, h) }}
	done := make(chan error, n)
	for range n {
		go func() {
			resp, err := (&http.Client{Transport: r.base}).Get("http://api/warm")
			if err == nil {
				resp.Body.Close()
			}
			done <- err
		}()
	}
	synctest.Wait()
	close(gate)
	for range n {
		require.NoError(t, <-done)
	}
	synctest.Wait()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	require.Len(t, r.server.hits, n)
	r.server.hits, r.server.steps = nil, []step{on}
	clear(r.server.effects)
}

func bodyOf(kind string) *strings.Reader {
	if kind == "no body" {
		return nil
	}
	return strings.NewReader("{}")
}

// net/http sends a keyed request again by itself for each pooled connection that
// is dead. Every one of these sends is counted; none is an attempt.
func TestSends_PoolOfDeadConnections(t *testing.T) {
	for _, dead := range []int{1, 5, 20} {
		for _, body := range []string{"body", "no body"} {
			for _, method := range []string{"POST", "DELETE"} {
				t.Run(fmt.Sprintf("%d, %s, %s", dead, body, method), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						on := onPooled(drop, created)
						r.transport.MaxAttempts = 2
						warmFor(t, r, dead, on)
						in := idem.Open()
						var req *http.Request
						var err error
						if b := bodyOf(body); b != nil {
							req, err = http.NewRequestWithContext(idem.WithIntent(t.Context(), in), method, "http://api/x", b)
						} else {
							req, err = http.NewRequestWithContext(idem.WithIntent(t.Context(), in), method, "http://api/x", nil)
						}
						require.NoError(t, err)
						resp, _, err := r.send(req)
						require.NoError(t, err)
						res := idem.ResultOf(resp)
						require.Equal(t, 201, res.Status)
						require.Equal(t, dead+1, r.count())
						require.Equal(t, dead+1, res.Sends, "sends are exact")
						require.Equal(t, 1, res.Attempts, "a pool of dead connections does not eat the attempts")
						require.Equal(t, dead+1, in.Attempts()[0].Sends)
						require.Equal(t, idem.Answered, res.Outcome)
						require.Equal(t, 1, r.done())
						r.oneKey()
					})
				})
			}
		}
	}
}

// The work is done on each pooled connection, and every connection dies.
func TestSends_AlwaysReset(t *testing.T) {
	for _, dead := range []int{0, 1, 5, 20} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 2
				warmFor(t, r, dead, onPooled(lost, lost))
				in := idem.Open()
				_, _, err := r.post(t.Context(), in, "{}")
				e := theError(t, err)
				require.Equal(t, 2, e.Attempts)
				require.Equal(t, dead+2, r.count())
				require.Equal(t, dead+2, e.Sends)
				sum := 0
				for _, a := range in.Attempts() {
					sum += a.Sends
				}
				require.Equal(t, e.Sends, sum)
				require.Equal(t, idem.OutcomeUnknown, e.Outcome)
				require.Equal(t, 1, r.done())
				r.oneKey()
			})
		})
	}
}

// One attempt is sent 32 times at most.
func TestSends_Bound(t *testing.T) {
	for _, dead := range []int{31, 32, 40, 70} {
		for _, body := range []string{"body", "no body"} {
			t.Run(fmt.Sprintf("%d, %s", dead, body), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxAttempts = 3
					warmFor(t, r, dead, onPooled(drop, created))
					r.transport.Base = baseFunc(func(q *http.Request) (*http.Response, error) {
						q.Header.Set("X-Attempt", fmt.Sprint(idem.AttemptNumber(q.Context())))
						return r.base.RoundTrip(q)
					})
					in := idem.Open()
					start := time.Now()
					var req *http.Request
					if b := bodyOf(body); b != nil {
						req, _ = http.NewRequestWithContext(idem.WithIntent(t.Context(), in), "POST", "http://api/x", b)
					} else {
						req, _ = http.NewRequestWithContext(idem.WithIntent(t.Context(), in), "POST", "http://api/x", nil)
					}
					resp, _, err := r.send(req)
					require.NoError(t, err)
					list := in.Attempts()
					hits := map[string]int{}
					for _, h := range r.all() {
						hits[h.header.Get("X-Attempt")]++
					}
					for i, a := range list {
						n := hits[fmt.Sprint(i+1)]
						require.LessOrEqual(t, n, 32, "attempt %d", i+1)
						require.GreaterOrEqual(t, a.Sends, n)
						require.LessOrEqual(t, a.Sends, n+1)
					}
					if dead < 32 {
						require.Len(t, list, 1)
					} else {
						require.Greater(t, len(list), 1)
						require.NotErrorIs(t, list[0].Err, context.Canceled, "nobody has cancelled: %v", list[0].Err)
					}
					res := idem.ResultOf(resp)
					require.Equal(t, 201, res.Status)
					// Exact, unless an attempt was cancelled while it sent: then
					// it may read one too high, never too low.
					require.GreaterOrEqual(t, res.Sends, r.count())
					require.LessOrEqual(t, res.Sends, r.count()+len(list)-1)
					require.Equal(t, idem.Answered, res.Outcome)
					require.Less(t, time.Since(start), time.Second)
					r.oneKey()
				})
			})
		}
	}
}

// The server does the work on a pooled connection, and is gone. net/http sends
// again, is refused, and reports "dial: connection refused" after one effect.
func TestSends_ResendRefusedIsUnknown(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		for _, kind := range []string{"body", "no body", "file"} {
			t.Run(fmt.Sprint(attempts, kind), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxAttempts = attempts
					gone := func(s *server, w http.ResponseWriter, q *http.Request, h hit) {
						s.exec(h)
						r.net.mu.Lock()
						delete(r.net.hosts, "api:80")
						r.net.mu.Unlock()
						panic(http.ErrAbortHandler)
					}
					warmFor(t, r, 1, onPooled(gone, status(204)))
					in := idem.Open()
					var body io.Reader
					switch kind {
					case "body":
						body = strings.NewReader("{}")
					case "file":
						body = tempFile(t, []byte("{}"), 0)
					}
					_, _, err := r.send(keyedPost(t, in, "http://api/charges", body))
					e := theError(t, err)
					var op *net.OpError
					require.ErrorAs(t, err, &op)
					require.Equal(t, "dial", op.Op)
					require.Equal(t, 1, r.count())
					require.Equal(t, 1, r.done())
					require.Equal(t, 1, e.Sends)
					require.Equal(t, attempts, e.Attempts)
					require.Equal(t, idem.OutcomeUnknown, e.Outcome)
					require.Equal(t, idem.OutcomeUnknown, in.Outcome())
					require.NotContains(t, e.Error(), "never sent")
					for _, a := range in.Attempts() {
						require.Equal(t, idem.OutcomeUnknown, a.Outcome)
					}
				})
			})
		}
	}
	t.Run("never sent at all", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.down("api")
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			e := theError(t, err)
			require.Equal(t, idem.NotExecuted, e.Outcome)
			require.Equal(t, idem.NotExecuted, in.Outcome())
			require.Zero(t, e.Sends)
			require.Equal(t, 3, e.Attempts)
			require.Contains(t, e.Error(), "never sent")
		})
	})
	t.Run("adopted: never sent here, but perhaps elsewhere", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.down("api")
			in, err := idem.Adopt("k-1", since())
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "{}")
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		})
	})
}

// A refusal closes the send that it answers, not the one before it.
func TestSends_RefusedAfterResendIsUnknown(t *testing.T) {
	for _, code := range []int{401, 407, 413, 429} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1
				warmFor(t, r, 1, onPooled(lost, status(code)))
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				res := idem.ResultOf(resp)
				require.Equal(t, 2, res.Sends)
				require.Equal(t, 1, res.Attempts)
				require.Equal(t, 1, r.done())
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
				r.oneKey()
			})
		})
		t.Run(fmt.Sprintf("%d at once", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, idem.NotExecuted, idem.ResultOf(resp).Outcome)
				require.Equal(t, idem.NotExecuted, in.Outcome())
			}, status(code))
		})
	}
	for _, code := range []int{402, 404, 403, 400, 409, 422} {
		t.Run(fmt.Sprintf("final %d after a re-send", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1
				warmFor(t, r, 1, onPooled(lost, status(code)))
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome, "the first send may yet work")
			})
		})
	}
}

// In progress is no refusal: the first request runs, whatever is said later.
func TestSends_InProgressThenRefused(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 4
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}, status(409), status(429), status(429), status(429))
	for _, code := range []int{408, 423, 425} {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, idem.OutcomeUnknown, in.Outcome(), "%d then 429", code)
		}, status(code), status(429), status(429))
	}
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 402, resp.StatusCode)
		require.Equal(t, idem.Answered, in.Outcome(), "429 had no effect, 402 decides")
	}, status(429), status(402))
}

// A new send reopens an answer that was not settled.
func TestSends_UnsettledAnswerReopened(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, idem.Answered, in.Outcome())
		_, _, err = r.post(t.Context(), in, "{}")
		require.Error(t, err)
		require.Equal(t, idem.OutcomeUnknown, in.Outcome())
		r.oneKey()
	}, status(402), lost)
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		_, _, err = r.post(t.Context(), in, "{}")
		e := theError(t, err)
		require.Equal(t, idem.Answered, e.Outcome, "settled stays settled")
		require.Equal(t, idem.Answered, in.Outcome())
	}, created, lost)
}

// Unkeyed writes are left as net/http treats them: sent once, and not again.
func TestSends_Unkeyed(t *testing.T) {
	for _, dead := range []int{1, 5} {
		bubble(t, func(t *testing.T, r *rig) {
			warmFor(t, r, dead, onPooled(lost, status(201)))
			_, _, err := r.post(t.Context(), nil, "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrNotRepeatable)
			require.Equal(t, 1, r.count())
			require.Equal(t, 1, e.Sends)
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		})
	}
	// An empty key header would make net/http send again; it is removed.
	for _, value := range [][]string{nil, {""}, {"", ""}} {
		for _, name := range []string{"Idempotency-Key", "idempotency-key"} {
			bubble(t, func(t *testing.T, r *rig) {
				warmFor(t, r, 1, onPooled(lost, status(201)))
				req := keyedPost(t, nil, "http://api/charges", strings.NewReader("{}"))
				req.Header[name] = value
				_, _, err := r.send(req)
				theError(t, err)
				require.Equal(t, 1, r.count())
				require.Empty(t, r.all()[0].keys)
			})
		}
	}
}

// A deadline in the middle of a send: sent, as far as anybody knows.
func TestSends_CutWhileSending(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		// A peer that accepts and never reads.
		r.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			t.Cleanup(func() { _ = there.Close() })
			return here, nil
		}
		r.transport.AttemptTimeout = time.Second
		r.transport.MaxAttempts = 2
		in := idem.Open()
		start := time.Now()
		_, _, err := r.post(t.Context(), in, "{}")
		e := theError(t, err)
		require.True(t, e.Timeout())
		require.Equal(t, 2, e.Attempts)
		require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		require.Equal(t, 2, e.Sends)
		require.Less(t, time.Since(start), 3*time.Second)
	})
}
