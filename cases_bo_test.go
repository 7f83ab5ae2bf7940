package idem_test

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// firstWaits makes n calls that all begin at this moment, each with a Transport
// of its own, and returns the first wait of each. Every call is answered 503.
func firstWaits(t *testing.T, n int, backoff idem.Backoff) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			tr := &idem.Transport{
				MaxAttempts: 2, Backoff: backoff,
				Base: unavailable{},
				OnAttempt: func(_ context.Context, a idem.Attempt) {
					if a.Retry {
						mu.Lock()
						defer mu.Unlock()
						waits = append(waits, a.Wait)
					}
				},
			}
			req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodPost, "http://api/", nil)
			require.NoError(t, err)
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			resp.Body.Close()
		})
	}
	wg.Wait()
	require.Len(t, waits, n)
	slices.Sort(waits)
	return waits
}

// unavailable is a Base that answers 503 to everything.
type unavailable struct{}

func (unavailable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{StatusCode: 503, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// carlescere/goback#5: no waiting after 36 attempts, the product wraps.
func TestCase_BO_1(t *testing.T) {
	b := idem.Exponential(100*time.Millisecond, time.Second)
	for n := range 201 {
		assert.Positive(t, b(n), "attempt %d", n)
		assert.LessOrEqual(t, b(n), time.Second, "attempt %d", n)
	}
	// And on the wire: 60 attempts, none of them without a wait.
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts, r.transport.Backoff = 60, b
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 60, r.count())
		within(t, r.gaps(), 50*time.Millisecond, time.Second)
		within(t, r.gaps()[4:], 500*time.Millisecond, time.Second)
		r.oneKey()
	}, status(503))
}

// dragonflyoss/dragonfly#4851: the cap comes after the shift has overflowed.
func TestCase_BO_2(t *testing.T) {
	b := idem.Exponential(30*time.Millisecond, 10*time.Second)
	for _, n := range []int{37, 38, 39, 40, 61, 62, 63, 64, 65, 100, 1 << 31, math.MaxInt} {
		assert.Equal(t, 10*time.Second, b(n), "attempt %d", n)
	}
	b = idem.Exponential(30*time.Millisecond, math.MaxInt64)
	assert.Equal(t, 30*time.Millisecond<<37, b(38))
	assert.Equal(t, 30*time.Millisecond<<38, b(39), "the last that fits")
	for _, n := range []int{40, 62, 63, 64, 100, 1 << 31} {
		assert.Equal(t, time.Duration(math.MaxInt64), b(n), "attempt %d", n)
	}
}

// go-resty/resty#624: half of the maximum is 0, and a range of 0 panics. Choice:
// no pair of bounds is an error; a maximum of 0 or less means no wait.
func TestCase_BO_3(t *testing.T) {
	for _, c := range []struct{ base, max, wait time.Duration }{
		{1, 1, 1},
		{time.Second, 1, 1},
		{time.Second, 0, 0},
		{0, 0, 0},
		{-time.Second, -time.Second, 0},
		{0, time.Second, 0},
	} {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Backoff = idem.Exponential(c.base, c.max)
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			within(t, r.gaps(), c.wait, c.wait)
			r.oneKey()
		}, status(503), status(503), created)
	}
}

// sethvargo/go-retry#39: a jitter of zero or less panics. There is no jitter to
// set here: it is drawn from the bound, and a bound of zero or less has none.
func TestCase_BO_4(t *testing.T) {
	for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Backoff = constant(d)
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			within(t, r.gaps(), 0, 0)
			r.oneKey()
		}, status(503), status(503, "Retry-After-Ms", "0"), created)
	}
	// The jitter on a wait that the server asks for is cut to nothing for the
	// shortest ones, without a panic.
	bubble(t, func(t *testing.T, r *rig) {
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		within(t, r.gaps(), 1, 1)
	}, status(503, "Retry-After-Ms", "0.000001"), created)
}

// flowchartsman/retry#4: a first wait above the maximum, and many attempts.
// Choice: it is clamped.
func TestCase_BO_5(t *testing.T) {
	b := idem.Exponential(500*time.Millisecond, time.Millisecond)
	for n := range 41 {
		assert.Equal(t, time.Millisecond, b(n))
	}
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts, r.transport.Backoff = 40, b
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 40, r.count())
		within(t, r.gaps(), 500*time.Microsecond, time.Millisecond)
	}, status(503))
}

// ferd/backoff#8: the jitter is lost once the cap is reached. The bound of
// attempt 20 is at the cap; its draws fill the upper half of it.
func TestCase_BO_6(t *testing.T) {
	atCap := idem.Exponential(200*time.Millisecond, 10*time.Second)(20)
	require.Equal(t, 10*time.Second, atCap)
	synctest.Test(t, func(t *testing.T) {
		waits := firstWaits(t, 1000, constant(atCap))
		assert.GreaterOrEqual(t, waits[0], 5*time.Second)
		assert.LessOrEqual(t, waits[999], 10*time.Second)
		assert.Greater(t, waits[999]-waits[0], 4500*time.Millisecond, "spread over the half")
		assert.Greater(t, len(slices.Compact(waits)), 990)
	})
}

// heroiclabs/nakama-dotnet#105: one seed everywhere.
func TestCase_BO_7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := firstWaits(t, 100, nil)
		assert.GreaterOrEqual(t, waits[0], 100*time.Millisecond)
		assert.LessOrEqual(t, waits[99], 200*time.Millisecond)
		assert.Greater(t, len(slices.Compact(waits)), 95, "all but a few differ")
	})
}

// gojek/heimdall#21: no jitter by default, so that clients that failed together
// come back together. The row's 10 ms have but 5 ms of jitter, since the draw is
// from the upper half (see the package documentation); so the default backoff is
// taken, whose first wait spreads over 100 ms, and more clients, against chance.
func TestCase_BO_8(t *testing.T) {
	const clients = 200
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Backoff = nil
		r.server.steps = nil
		for range clients {
			r.server.steps = append(r.server.steps, status(503))
		}
		r.server.steps = append(r.server.steps, created)
		start := time.Now()
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				assert.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
			})
		}
		wg.Wait()
		bins := map[int]int{} // by 5 ms
		for _, h := range r.all()[clients:] {
			bins[int(h.at.Sub(start)/(5*time.Millisecond))]++
		}
		require.Equal(t, 2*clients, r.count())
		for bin, n := range bins {
			assert.LessOrEqual(t, n, clients/5, "%d ms: %v", 5*bin, bins)
		}
		assert.Equal(t, clients, r.done(), "one effect each")
	})
}

// apache/pinot#9158: a wait after the last failure.
func TestCase_BO_9(t *testing.T) {
	for name, step := range map[string]step{"503": status(503), "lost": drop, "asked": status(503, "Retry-After", "1")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Backoff = constant(time.Second)
				in := idem.Open()
				_, _, err := r.post(t.Context(), in, "a")
				assert.Equal(t, name == "lost", err != nil)
				hits := r.all()
				require.Len(t, hits, 3)
				assert.Zero(t, time.Since(hits[2].at), "back right after the last hit")
				within(t, r.gaps(), 500*time.Millisecond, 1100*time.Millisecond)
				last := lastAttempt(t, in)
				assert.False(t, last.Retry)
				assert.Zero(t, last.Wait)
				assert.ErrorIs(t, last.Reason, idem.ErrExhausted)
				r.oneKey()
			}, step)
		})
	}
}

// modelcontextprotocol/go-sdk#256: zero retries means no attempt at all. What is
// counted are attempts; 0 is the default, documented; negative is refused.
func TestCase_BO_10(t *testing.T) {
	for limit, hits := range map[int]int{1: 1, 2: 2, 0: 4} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = limit
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "a")
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, hits, r.count())
				assert.Equal(t, hits, idem.ResultOf(resp).Attempts)
				assert.Len(t, in.Attempts(), hits)
				r.oneKey()
			}, status(503))
		})
	}
	for _, limit := range []int{-1, math.MinInt} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = limit
				in := idem.Open()
				_, _, err := r.post(t.Context(), in, "a")
				assert.ErrorContains(t, err, "MaxAttempts")
				assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
				assert.Equal(t, idem.NotExecuted, in.Outcome())
				assert.Zero(t, r.count())
				_, err = idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
				assert.ErrorContains(t, err, "MaxAttempts", "refused when the client is made")
			}, created)
		})
	}
	t.Run("the largest", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = math.MaxInt
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, 3, r.count())
		}, status(503), drop, created)
	})
}

// tim-kos/node-retry#21: 5 retries give 6 calls.
func TestCase_BO_11(t *testing.T) {
	for limit := 1; limit <= 7; limit++ {
		for name, step := range map[string]step{"503": status(503), "lost": lost, "cut": cut(3, 10), "409": status(409), "429": status(429)} {
			t.Run(strconv.Itoa(limit)+" "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxAttempts = limit
					in := idem.Open()
					_, _, _ = r.post(t.Context(), in, "a")
					assert.Equal(t, limit, r.count())
					for i, a := range in.Attempts() {
						assert.Equal(t, i+1, a.Number)
						assert.Equal(t, i+1 < limit, a.Retry)
						assert.Equal(t, 1, a.Sends)
					}
					assert.LessOrEqual(t, r.done(), 1)
					r.oneKey()
				}, step)
			})
		}
	}
}

// Xuanwo/backon#184: the jitter is tied to the least wait, so large waits come
// in waves. Here it grows with the bound.
func TestCase_BO_12(t *testing.T) {
	for _, n := range []int{1, 6, 12} {
		bound := idem.Exponential(time.Millisecond, time.Hour)(n)
		require.Equal(t, time.Millisecond<<(n-1), bound)
		synctest.Test(t, func(t *testing.T) {
			waits := firstWaits(t, 1000, constant(bound))
			assert.GreaterOrEqual(t, waits[0], bound/2)
			assert.LessOrEqual(t, waits[999], bound)
			assert.Greater(t, waits[999]-waits[0], bound/2*9/10, "attempt %d", n)
			// No tenth of the half holds more than a fifth of the draws.
			var bins [11]int
			for _, w := range waits {
				bins[10*(w-bound/2)/(bound/2)]++
			}
			assert.Less(t, slices.Max(bins[:]), 200, "attempt %d: %v", n, bins)
		})
	}
}
