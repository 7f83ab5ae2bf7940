package idem_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These are checks of keys, conflicts and replays that at least one of the
// widely used clients fails.

// JSON 409 and 503 are repeated, whatever the Content-Type; a 422 is not, not
// even one with a page from a gateway. Fails in stripe-go.
func TestPeers_JSON409And503ButNo422(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		kind string
		hits int
	}{
		"JSON 409": {409, "application/json", 2}, "JSON 503": {503, "application/json", 2},
		"HTML 409": {409, "text/html", 2}, "HTML 503": {503, "text/html", 2},
		"JSON 422": {422, "application/json", 1}, "HTML 422": {422, "text/html", 1}, "bare 422": {422, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, test.hits, r.count())
				assert.Equal(t, test.hits == 2, resp.StatusCode == 201)
			}, statusBody(test.code, "{}", "Content-Type", test.kind), created)
		})
	}
}

// The wait that a 409 asks for is kept, as that of a 503; one that overflows is
// no call to come back at once. Fails in go-retryablehttp.
func TestPeers_RetryAfterOn409(t *testing.T) {
	for _, code := range []int{409, 503, 429, 425} {
		t.Run("kept/"+http.StatusText(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				_, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				require.Len(t, r.gaps(), 1)
				assert.GreaterOrEqual(t, r.gaps()[0], 7*time.Second)
				assert.LessOrEqual(t, r.gaps()[0], 8*time.Second)
			}, status(code, "Retry-After", "7"), created)
		})
		t.Run("too long/"+http.StatusText(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				start := time.Now()
				in := idem.Open()
				resp, _, err := r.post(context.Background(), in, "x")
				require.NoError(t, err)
				assert.Equal(t, code, resp.StatusCode)
				assert.Equal(t, 1, r.count())
				assert.Equal(t, start, time.Now(), "at once")
				assert.ErrorIs(t, in.Attempts()[0].Reason, idem.ErrWaitTooLong)
			}, status(code, "Retry-After", "9223372037"), created)
		})
	}
}

// http.Client.Timeout replaces the error; the Intent still knows the key and
// that the outcome is unknown. Fails in all.
func TestPeers_ClientTimeout(t *testing.T) {
	for name, step := range map[string]step{"in flight": execThen(stall), "in the wait": execThen(status(503, "Retry-After", "50"))} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				client := r.client()
				client.Timeout = 40 * time.Second
				if name == "in flight" {
					client.Timeout = time.Second
				}
				resp, err := client.Do(newRequest(t, in, "POST", "http://api/charges", "x"))
				if err == nil { // the wait is known to be too long: handed over at once
					assert.Equal(t, 503, resp.StatusCode)
					assert.Equal(t, in.Key(), idem.ResultOf(resp).Key)
					_ = resp.Body.Close()
				}
				synctest.Wait()
				assert.NotEmpty(t, in.Key())
				assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
				require.Len(t, in.Attempts(), 1)
				assert.Equal(t, 1, in.Attempts()[0].Sends)
				assert.Equal(t, idem.OutcomeUnknown, in.Attempts()[0].Outcome)
				assert.Equal(t, 1, r.count())
			}, step)
		})
	}
}

// One RoundTrip of net/http that sends twice is one attempt and two sends, and
// the replay that it brings is no duplicate by the caller. Fails in all.
func TestPeers_HiddenReplay(t *testing.T) {
	for _, n := range []int{1, 3} {
		row(t, func(t *testing.T, r *rig) {
			r.warm(t, n)
			served := 0
			var mu sync.Mutex
			r.server.mu.Lock()
			r.steps = []step{func(s *server, w http.ResponseWriter, req *http.Request, h hit) {
				mu.Lock()
				served++
				lose := served <= n // each warm connection dies after the work
				mu.Unlock()
				if lose {
					lost(s, w, req, h)
				}
				created(s, w, req, h)
			}}
			r.server.mu.Unlock()
			in := idem.Open()
			resp, _, err := r.post(context.Background(), in, "x")
			require.NoError(t, err)
			res := idem.ResultOf(resp)
			assert.Equal(t, idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Replay: idem.Replayed, Attempts: 1, Sends: n + 1}, res)
			assert.Equal(t, n+1, r.count())
			assert.Equal(t, 1, r.done())
		}, created)
	}
	t.Run("and refused then", func(t *testing.T) { // a dial error, with one effect
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			r.warm(t, 1)
			r.server.mu.Lock()
			r.steps = []step{func(s *server, _ http.ResponseWriter, _ *http.Request, h hit) {
				s.exec(h)
				r.net.mu.Lock()
				delete(r.net.hosts, "api:80")
				r.net.mu.Unlock()
				panic(http.ErrAbortHandler)
			}}
			r.server.mu.Unlock()
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "x")
			e := theError(t, err)
			assert.ErrorIs(t, err, errRefused)
			assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			assert.Equal(t, 1, e.Sends)
			assert.Equal(t, 1, r.done())
		}, created)
	})
	t.Run("without an Intent", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			r.warm(t, 1)
			_, _, err := r.post(context.Background(), nil, "x")
			require.Error(t, err)
			assert.Equal(t, 1, r.count())
			assert.Equal(t, 1, r.done())
		}, lost)
	})
}

// A 200 whose body is cut is asked for again with the same key. Fails in most.
func TestPeers_CutBody(t *testing.T) {
	for name, first := range map[string]step{
		"declared length": cut(3, 10), "nothing of it": cut(0, 10), "all but a byte": cut(9, 10),
		"chunked":  raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n"),
		"by close": raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"id\""),
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, body, err := r.post(context.Background(), in, "x")
				require.NoError(t, err)
				assert.Equal(t, `{"id":"ch_1"}`, body)
				assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
				assert.Equal(t, 2, r.count())
				assert.Equal(t, 1, r.done())
			}, first, created)
		})
	}
	t.Run("every time", func(t *testing.T) { // a 2xx was begun, not given: at least not "not executed"
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "x")
			e := theError(t, err)
			assert.ErrorIs(t, err, idem.ErrExhausted)
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, 200, e.Status)
			assert.NotEqual(t, idem.NotExecuted, e.Outcome)
			assert.Equal(t, "xxx", string(e.Body))
		}, cut(3, 10))
	})
	t.Run("not buffered", func(t *testing.T) { // the reader gets the error, the outcome stays
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxResponse = -1
			in := idem.Open()
			resp, body, err := r.post(context.Background(), in, "x")
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, "xxx", body)
			assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
			assert.Equal(t, 1, r.count())
		}, cut(3, 10))
	})
}

// Two goroutines with one Intent and different bodies: one of them is refused
// locally, whoever comes second. Fails in all.
func TestPeers_TwoBodiesOneIntent(t *testing.T) {
	for _, warm := range []int{0, 2} {
		for range 20 {
			row(t, func(t *testing.T, r *rig) {
				if warm > 0 {
					r.warm(t, warm)
				}
				in := idem.Open()
				var mu sync.Mutex
				var sent, refused int
				var wg sync.WaitGroup
				for _, body := range []string{"amount=1", "amount=2"} {
					wg.Go(func() {
						resp, _, err := r.post(context.Background(), in, body)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							sent++
							assert.Equal(t, 201, resp.StatusCode)
							return
						}
						refused++
						assert.ErrorIs(t, err, idem.ErrIntentReused)
						assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
						assert.Zero(t, theError(t, err).Attempts)
					})
				}
				wg.Wait()
				assert.Equal(t, 1, sent)
				assert.Equal(t, 1, refused)
				assert.Equal(t, 1, r.count())
				assert.Equal(t, 1, r.done())
				assert.Equal(t, idem.Answered, in.Outcome())
			}, created)
		}
	}
}

// Two goroutines with one Intent and the same body: one effect, both answered,
// and at no moment "not executed".
func TestPeers_OneBodyOneIntent(t *testing.T) {
	for name, steps := range map[string][]step{
		"at once":      {created},
		"lost":         {lost, created},
		"refused":      {status(429), created},
		"one by one":   {execThen(func(s *server, w http.ResponseWriter, r *http.Request, h hit) { hold(time.Second)(s, w, r, h) }), status(409), created},
		"unanswerable": {lost, lost, created},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				r.transport.MaxAttempts = 5
				r.transport.OnAttempt = func(context.Context, idem.Attempt) {
					if r.done() > 0 {
						assert.NotEqual(t, idem.NotExecuted, in.Outcome())
					}
				}
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						resp, _, err := r.post(context.Background(), in, strings.Repeat("x", 1000))
						if assert.NoError(t, err) {
							assert.Equal(t, 201, resp.StatusCode)
						}
					})
				}
				wg.Wait()
				assert.Equal(t, 1, r.done())
				assert.Equal(t, idem.Answered, in.Outcome())
				assert.Len(t, in.Attempts(), r.count())
			}, steps...)
		})
	}
}
