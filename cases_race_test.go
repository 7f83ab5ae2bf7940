package idem_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
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

// pace/bricks#183
func TestCase_RACE_1(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := newRig(t, created)
		var seen sync.Map
		r.server.steps = []step{func(s *server, w http.ResponseWriter, req *http.Request, h hit) {
			n, _ := seen.LoadOrStore(h.body, new(atomic.Int32))
			if n.(*atomic.Int32).Add(1) < 3 {
				w.WriteHeader(503)
				return
			}
			created(s, w, req, h)
		}}
		r.transport.OnAttempt = func(context.Context, idem.Attempt) {}
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, fmt.Sprint("body ", i))
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, 201, resp.StatusCode)
				res := idem.ResultOf(resp)
				assert.Equal(t, in.Key(), res.Key)
				assert.Equal(t, 3, res.Attempts, "each call counts its own attempts")
				assert.Len(t, in.Attempts(), 3)
			})
		}
		wg.Wait()
		require.Equal(t, 600, r.count())
		require.Equal(t, 200, r.done())
		byBody := map[string]string{}
		for _, h := range r.all() {
			require.Len(t, h.keys, 1)
			if key, ok := byBody[h.body]; ok {
				require.Equal(t, key, h.keys[0])
			}
			byBody[h.body] = h.keys[0]
		}
		require.Len(t, byBody, 200)
	})
}

// prometheus/common#981
func TestCase_RACE_2(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		req := keyedPost(t, in, "http://api/charges", strings.NewReader("{}"))
		req.Header["X-Mine"] = append(make([]string, 0, 8), "a")
		req.Header["idempotency-key"] = []string{""}
		before := req.Header.Clone()
		url, length := *req.URL, req.ContentLength
		for range 50 {
			req.Body, _ = req.GetBody()
			resp, err := r.transport.RoundTrip(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			require.Equal(t, before, req.Header)
			require.Equal(t, url, *req.URL)
			require.Equal(t, length, req.ContentLength)
			require.NotSame(t, req, resp.Request)
		}
		require.Equal(t, 51, r.count())
		require.Equal(t, 1, r.done())
		r.oneKey()
	}, status(503), created)
	t.Run("nil Header", func(t *testing.T) {
		for _, keyed := range []bool{true, false} {
			bubble(t, func(t *testing.T, r *rig) {
				var in *idem.Intent
				if keyed {
					in = idem.Open()
				}
				req := keyedPost(t, in, "http://api/charges", strings.NewReader("{}"))
				req.Header = nil
				resp, err := r.transport.RoundTrip(req)
				require.NoError(t, err)
				resp.Body.Close()
				require.Nil(t, req.Header)
				if keyed {
					r.oneKey()
				}
			}, created)
		}
	})
	t.Run("a Base that adds headers", func(t *testing.T) {
		// An append below cannot reach the caller's arrays, and what the first
		// attempt has added is not there twice on the second.
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Base = baseFunc(func(q *http.Request) (*http.Response, error) {
				q.Header.Add("X-Mine", "below")
				q.Header.Add("X-Signature", "s")
				q.Header.Add("Idempotency-Key-Note", "n")
				return r.base.RoundTrip(q)
			})
			req := keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}"))
			mine := append(make([]string, 0, 8), "a")
			req.Header["X-Mine"] = mine
			resp, _, err := r.send(req)
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, []string{"a"}, req.Header["X-Mine"])
			require.Empty(t, mine[:2][1], "the caller's array was written to")
			for _, h := range r.all() {
				require.Equal(t, []string{"a", "below"}, h.header["X-Mine"])
				require.Equal(t, []string{"s"}, h.header["X-Signature"])
			}
			r.oneKey()
		}, status(503), created)
	})
	t.Run("in parallel", func(t *testing.T) {
		// One request value used by many goroutines at once, without a body.
		bubble(t, func(t *testing.T, r *rig) {
			req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodDelete, "http://api/x", nil)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					resp, err := r.transport.RoundTrip(req)
					if assert.NoError(t, err) {
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
			require.Equal(t, 1, r.done())
			r.oneKey()
		}, created)
	})
}

// vmware/govmomi#2266
func TestCase_RACE_5(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, b := idem.Open(), idem.Open()
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = r.post(t.Context(), a, "a") })
		time.Sleep(12 * time.Millisecond) // A is at its second or third attempt
		wg.Go(func() { _, _, _ = r.post(t.Context(), b, "b") })
		wg.Wait()
		require.Len(t, a.Attempts(), 3)
		require.Len(t, b.Attempts(), 3)
		require.Equal(t, 6, r.count())
		require.Equal(t, 1, b.Attempts()[0].Number)
	}, status(503))
	t.Run("one Intent, two calls at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { _, _, _ = r.post(t.Context(), in, "a") })
			}
			wg.Wait()
			require.Equal(t, 6, r.count())
			calls := map[int][]int{}
			for _, a := range in.Attempts() {
				calls[a.Call] = append(calls[a.Call], a.Number)
			}
			require.Equal(t, map[int][]int{1: {1, 2, 3}, 2: {1, 2, 3}}, calls)
			r.oneKey()
		}, status(503))
	})
}

// lestrrat-go/backoff#9
func TestCase_RACE_6(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var waits sync.Map
		tr := &idem.Transport{
			MaxAttempts: 5,
			Base: baseFunc(func(r *http.Request) (*http.Response, error) {
				_, _ = consume(r)
				return reply(r, 503, ""), nil
			}),
			OnAttempt: func(_ context.Context, a idem.Attempt) {
				if a.Retry {
					waits.Store(a.Wait, true)
				}
			},
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/", strings.NewReader("{}")))
				if assert.NoError(t, err) {
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		distinct := 0
		waits.Range(func(any, any) bool { distinct++; return true })
		require.Greater(t, distinct, 390, "of 400 draws")
	})
}

// sethvargo/go-retry#41
func TestCase_RACE_7(t *testing.T) {
	const most = 10 * time.Second
	for name, b := range map[string]idem.Backoff{
		"usual":    idem.Exponential(200*time.Millisecond, most),
		"max huge": idem.Exponential(200*time.Millisecond, math.MaxInt64),
		"odd":      idem.Exponential(1, math.MaxInt64),
	} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					for _, n := range []int{i, i + 1, 30 + i, 62, 63, 64, 1 << 31, math.MaxInt} {
						d := b(n)
						assert.Positive(t, d, "attempt %d", n)
						if name == "usual" {
							assert.LessOrEqual(t, d, most)
						}
						if n > 1 && n < math.MaxInt {
							assert.LessOrEqual(t, d, b(n+1))
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// cloudfoundry/routing-release#513
func TestCase_RACE_8(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 5
		var getConn, gotConn, wroteHeaders, wroteRequest, firstByte atomic.Int32
		trace := &httptrace.ClientTrace{
			GetConn:              func(string) { getConn.Add(1) },
			GotConn:              func(httptrace.GotConnInfo) { gotConn.Add(1) },
			WroteHeaders:         func() { wroteHeaders.Add(1) },
			WroteRequest:         func(httptrace.WroteRequestInfo) { wroteRequest.Add(1) },
			GotFirstResponseByte: func() { firstByte.Add(1) },
			TLSHandshakeDone:     func(tls.ConnectionState, error) { t.Error("no TLS here") },
		}
		ctx := httptrace.WithClientTrace(t.Context(), trace)
		in := idem.Open()
		for call := range int32(2) { // the second call with the same context
			resp, _, err := r.post(ctx, in, "{}")
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			synctest.Wait()
			for name, n := range map[string]*atomic.Int32{
				"GetConn": &getConn, "GotConn": &gotConn, "WroteHeaders": &wroteHeaders,
				"WroteRequest": &wroteRequest, "GotFirstResponseByte": &firstByte,
			} {
				require.Equal(t, 5*(call+1), n.Load(), name)
			}
		}
		r.oneKey()
	}, status(503))
}

// thesongzhu/Friday#403
func TestCase_RACE_9(t *testing.T) {
	slow := func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		if s.exec(h) {
			time.Sleep(200 * time.Millisecond)
			answer(w, 201, `{"id":"ch_1"}`, "Content-Type", "application/json")
			return
		}
		time.Sleep(time.Millisecond)
		if s.all()[0].at.Add(200 * time.Millisecond).After(time.Now()) {
			answer(w, 409, `{"code":"in_progress"}`)
			return
		}
		answer(w, 201, `{"id":"ch_1"}`, "Content-Type", "application/json", "Idempotent-Replayed", "true")
	}
	for _, attempts := range []int{3, 20} {
		t.Run(fmt.Sprintf("%d attempts", attempts), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = attempts
				in, c := idem.Open(), r.api(t)
				type end struct {
					out map[string]string
					res idem.Result
					err error
				}
				ends := make(chan end, 2)
				for range 2 {
					go func() {
						var e end
						e.res, e.err = c.Call(t.Context(), in, "POST", "/charges", "x", &e.out)
						ends <- e
					}()
				}
				a, b := <-ends, <-ends
				require.Equal(t, 1, r.done())
				r.oneKey()
				good := 0
				for _, e := range []end{a, b} {
					if e.err == nil {
						good++
						require.Equal(t, map[string]string{"id": "ch_1"}, e.out)
						require.Equal(t, idem.Answered, e.res.Outcome)
						continue
					}
					require.ErrorIs(t, e.err, idem.ErrInProgress)
					require.NotEqual(t, idem.NotExecuted, e.res.Outcome)
				}
				require.GreaterOrEqual(t, good, 1)
				if attempts == 20 {
					require.Equal(t, 2, good)
					a.out["id"] = "changed"
					require.Equal(t, "ch_1", b.out["id"], "bodies are not shared")
				}
				require.Equal(t, idem.Answered, in.Outcome())
			}, slow)
		})
	}
	t.Run("other bodies at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			var reused, sent atomic.Int32
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					_, _, err := r.post(t.Context(), in, fmt.Sprint("amount ", i))
					if err == nil {
						sent.Add(1)
						return
					}
					assert.ErrorIs(t, err, idem.ErrIntentReused)
					assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
					reused.Add(1)
				})
			}
			wg.Wait()
			require.EqualValues(t, 1, sent.Load())
			require.EqualValues(t, 9, reused.Load())
			r.oneKey()
		}, created)
	})
}
