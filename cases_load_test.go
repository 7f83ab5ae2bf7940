package idem_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cristalhq/hedgedhttp#61: POSTs are hedged. Choice: nothing is hedged here; a
// slow answer is waited for with one request on the wire.
func TestCase_LOAD_1(t *testing.T) {
	for name, in := range map[string]func() *idem.Intent{
		"with an Intent":    idem.Open,
		"without an Intent": func() *idem.Intent { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), in(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, 1, r.count(), "one request for one slow answer")
				assert.Equal(t, 1, r.net.dials)
				assert.Equal(t, 1, idem.ResultOf(resp).Attempts)
				assert.Equal(t, 1, idem.ResultOf(resp).Sends)
				if name == "with an Intent" {
					r.oneKey()
				}
			}, slow(20*time.Second, created))
		})
	}
	t.Run("GET", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/charges", nil)
			require.NoError(t, err)
			_, _, err = r.send(req)
			require.NoError(t, err)
			assert.Equal(t, 1, r.count())
		}, slow(20*time.Second, status(200)))
	})
}

// failsafe-go/failsafe-go#65: the winner's body is unreadable, because the race
// ended. Without hedging there is no race: a slow body comes whole, on one
// request.
func TestCase_LOAD_2(t *testing.T) {
	const size = 512 << 10
	bubble(t, func(t *testing.T, r *rig) {
		resp, body, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 200, resp.StatusCode)
		assert.Len(t, body, size)
		assert.Equal(t, 1, r.count())
		r.oneKey()
	}, func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		for range 8 {
			time.Sleep(10 * time.Millisecond)
			_, _ = io.WriteString(w, strings.Repeat("x", size/8))
			_ = http.NewResponseController(w).Flush()
		}
	})
}

// awslabs/aws-s3-transfer-manager-rs#155: speculative tries eat the attempts.
// Without hedging all of them are there for repeating.
func TestCase_LOAD_3(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		resp, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.Equal(t, 3, r.count())
		assert.Equal(t, 3, idem.ResultOf(resp).Attempts)
		assert.Equal(t, 1, r.done())
		r.oneKey()
	}, slow(5*time.Second, drop), slow(5*time.Second, drop), slow(5*time.Second, created))
}

// apache/opendal#7376: an outage is multiplied by every caller.
func TestCase_LOAD_4(t *testing.T) {
	for _, floor := range []int{0, 10} {
		t.Run(fmt.Sprint("floor ", floor), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				budget := idem.NewBudget(0.1, floor)
				// Two Transports that use one service share one Budget.
				r.transport.Budget = budget
				other := &rig{server: r.server, net: r.net, base: r.base, transport: &idem.Transport{
					Base: r.base, MaxAttempts: 3, Backoff: r.transport.Backoff, Budget: budget,
				}}
				var over, exhausted atomic.Int32
				var wg sync.WaitGroup
				for i := range 500 {
					wg.Go(func() {
						in, via := idem.Open(), r
						if i%2 == 1 {
							via = other
						}
						resp, body, err := via.post(t.Context(), in, "a")
						if !assert.NoError(t, err) {
							return
						}
						assert.Equal(t, 503, resp.StatusCode)
						assert.Equal(t, "down", body, "the answer is handed over")
						switch a := in.Attempts(); {
						case assert.ObjectsAreEqual(idem.ErrOverBudget, a[len(a)-1].Reason):
							over.Add(1)
						case assert.ObjectsAreEqual(idem.ErrExhausted, a[len(a)-1].Reason):
							exhausted.Add(1)
						}
					})
				}
				wg.Wait()
				assert.LessOrEqual(t, r.count(), 550+floor)
				assert.GreaterOrEqual(t, r.count(), 540+floor, "and it does allow them")
				assert.EqualValues(t, 500, over.Load()+exhausted.Load())
				assert.Greater(t, over.Load(), int32(400))
			}, statusBody(503, "down"))
		})
	}
	// Calls that succeed at once pay for those that do not.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Budget = idem.NewBudget(0.1, 0)
		for i := range 200 {
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode, "call %d", i)
		}
		assert.Equal(t, 200+200/20, r.count())
	}, func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		if len(s.all())%21 == 20 {
			status(503)(s, w, r, h)
			return
		}
		created(s, w, r, h)
	})
}

// through is a Base that does something around another.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// google/go-containerregistry#1502: two layers of retries multiply. A Transport
// below another's attempt passes it through.
func TestCase_LOAD_5(t *testing.T) {
	nest := func(r *rig) (inner *idem.Transport) {
		inner = &idem.Transport{Base: r.base, MaxAttempts: 5, Backoff: r.transport.Backoff}
		r.transport.Base = inner
		return inner
	}
	for name, step := range map[string]step{"503": status(503), "lost": lost, "409": status(409), "429": status(429), "stalled": stall} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				nest(r)
				r.transport.AttemptTimeout = time.Second
				in := idem.Open()
				_, _, _ = r.post(t.Context(), in, "a")
				assert.Equal(t, 3, r.count(), "the outer one's attempts, not 15")
				assert.Len(t, in.Attempts(), 3)
				assert.LessOrEqual(t, r.done(), 1)
				r.oneKey()
			}, step)
		})
	}
	t.Run("the outcome is the same", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			nest(r)
			in := idem.Open()
			resp, body, err := r.post(t.Context(), in, "a")
			require.NoError(t, err)
			assert.JSONEq(t, `{"id":"ch_1"}`, body)
			assert.Equal(t, idem.Result{
				Key: in.Key(), Status: 201, Outcome: idem.Answered, Replay: idem.Replayed, Attempts: 2, Sends: 2,
			}, idem.ResultOf(resp))
			assert.Equal(t, 1, r.done())
			r.oneKey()
		}, lost, created)
	})
	t.Run("three layers, with an http.Client between", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			inner := nest(r)
			middle := &http.Client{Transport: &idem.Transport{Base: inner, MaxAttempts: 7}}
			r.transport.Base = through(func(req *http.Request) (*http.Response, error) {
				req = req.Clone(req.Context())
				req.RequestURI = ""
				return middle.Do(req)
			})
			_, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 3, r.count())
			r.oneKey()
		}, status(503))
	})
	t.Run("without an Intent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			nest(r)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/charges", nil)
			require.NoError(t, err)
			_, _, err = r.send(req)
			require.NoError(t, err)
			assert.Equal(t, 3, r.count())
		}, status(503))
		bubble(t, func(t *testing.T, r *rig) {
			nest(r)
			_, _, err := r.post(t.Context(), nil, "a")
			require.NoError(t, err)
			assert.Equal(t, 1, r.count(), "an unkeyed POST")
			assert.Empty(t, r.all()[0].keys)
		}, status(503))
	})
	t.Run("the inner budget and clock do not count", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			inner := nest(r)
			inner.Budget, inner.AttemptTimeout = new(idem.Budget), time.Millisecond
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, 3, r.count())
		}, slow(time.Second, status(503)), slow(time.Second, status(503)), slow(time.Second, created))
	})
	// Under a foreign layer that repeats, one attempt is the setting that adds;
	// an answer that came in the meantime is not asked for twice by a new key.
	t.Run("under a foreign layer", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			in := idem.Open()
			for range 3 {
				_, _, err := r.post(t.Context(), in, "a")
				require.NoError(t, err)
			}
			assert.Equal(t, 3, r.count())
			assert.Len(t, in.Attempts(), 3)
			assert.Equal(t, []int{1, 1, 1}, []int{in.Attempts()[0].Number, in.Attempts()[1].Number, in.Attempts()[2].Number})
			assert.Equal(t, 3, in.Attempts()[2].Call)
			r.oneKey()
		}, status(503))
	})
	// The neighbour: what a layer below does in the context of an attempt, such
	// as fetching a token, is not this attempt. A request with an Intent of its
	// own must not go out without its key.
	t.Run("another request within an attempt", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			tokens := &server{t: t, steps: []step{lost, created}, effects: map[string]int{}}
			r.serve("tokens", tokens)
			side := &http.Client{Transport: &idem.Transport{Base: r.base, Backoff: r.transport.Backoff}}
			base := r.base
			token := idem.Open()
			r.transport.Base = through(func(req *http.Request) (*http.Response, error) {
				other, err := http.NewRequestWithContext(idem.WithIntent(req.Context(), token), http.MethodPost, "http://tokens/", strings.NewReader("t"))
				if err != nil {
					return nil, err
				}
				resp, err := side.Do(other)
				if err != nil {
					req.Body.Close()
					return nil, err
				}
				resp.Body.Close()
				return base.RoundTrip(req)
			})
			in := idem.Open()
			resp, _, err := r.post(t.Context(), in, "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			require.NotEmpty(t, tokens.all())
			for _, h := range tokens.all() {
				assert.Equal(t, []string{token.Key()}, h.keys, "its own key, on one line")
			}
			assert.Equal(t, 1, tokens.done())
			assert.Equal(t, idem.Answered, token.Outcome())
			r.oneKey()
			assert.Equal(t, []string{in.Key()}, r.all()[0].keys)
		}, created)
	})
}

// https://developer.squareup.com/blog/incident-summary-2017-03-16/: an
// overloaded service could not recover, because load stayed above what it takes
// after the trigger was gone. The server here takes 50 requests a second and
// answers 503 above, and to all during a fault of two seconds; 200 clients ask
// for 40 a second together. With a Budget they are back to normal at once.
func TestCase_LOAD_6(t *testing.T) {
	const (
		clients  = 200
		pause    = 5 * time.Second // of a client, between two calls
		capacity = 50
		faultAt  = 10 * time.Second
		faultFor = 2 * time.Second
		runFor   = 30 * time.Second
	)
	type second struct{ calls, good, hits int }
	simulate := func(t *testing.T, budget *idem.Budget) []second {
		seconds := make([]second, runFor/time.Second+10)
		bubble(t, func(t *testing.T, r *rig) {
			var mu sync.Mutex
			start := time.Now()
			at := func(since time.Time) *second { return &seconds[since.Sub(start)/time.Second] }
			r.server.steps = []step{func(s *server, w http.ResponseWriter, req *http.Request, h hit) {
				elapsed := h.at.Sub(start)
				mu.Lock()
				now := at(h.at)
				now.hits++
				taken := now.hits <= capacity
				mu.Unlock()
				if !taken || elapsed >= faultAt && elapsed < faultAt+faultFor {
					answer(w, 503, "")
					return
				}
				created(s, w, req, h)
			}}
			r.transport.Backoff, r.transport.MaxAttempts, r.transport.Budget = nil, 4, budget
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					time.Sleep(pause * time.Duration(i) / clients)
					for time.Since(start) < runFor {
						began := time.Now()
						resp, _, err := r.post(t.Context(), idem.Open(), "a")
						good := err == nil && resp.StatusCode == 201
						mu.Lock()
						now := at(began)
						now.calls++
						if good {
							now.good++
						}
						mu.Unlock()
						time.Sleep(time.Until(began.Add(pause)))
					}
				})
			}
			wg.Wait()
			for _, h := range r.all() {
				require.Len(t, h.keys, 1)
			}
			for key, n := range r.effects {
				require.Equal(t, 1, n, key)
			}
		})
		return seconds
	}
	rate := func(from, to int, all []second) float64 {
		var sum second
		for _, s := range all[from:to] {
			sum.calls += s.calls
			sum.good += s.good
		}
		return float64(sum.good) / float64(sum.calls)
	}
	hits := func(from, to int, all []second) (n int) {
		for _, s := range all[from:to] {
			n += s.hits
		}
		return n
	}

	seconds := simulate(t, idem.NewBudget(0.1, 10))
	assert.InDelta(t, 1, rate(0, 10, seconds), 0, "normal before the fault")
	assert.Less(t, rate(10, 12, seconds), 0.5, "the fault is one")
	assert.InDelta(t, 1, rate(13, 30, seconds), 0.005, "normal within a second of its end")
	// 40 a second, a tenth more, and what ten quiet seconds have saved.
	assert.LessOrEqual(t, hits(10, 12, seconds), 80+8+10+40)
	assert.LessOrEqual(t, hits(12, 30, seconds), 18*44+10)

	// The same without one asks up to four times as often while nothing works.
	without := simulate(t, nil)
	assert.Greater(t, hits(10, 13, without), hits(10, 13, seconds)*3/2)
}
