package otelidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Below another Transport an instrumented one makes the attempts of that, each
// with a span, and no call. The request that it gets stays as it is.
func TestBelowAnotherTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		inner := w.instrument(&idem.Transport{Base: server.Transport()})
		outer := &idem.Transport{Base: inner}
		r, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodPost, server.URL+"/charges", strings.NewReader("{}"))
		require.NoError(t, err)
		resp, err := outer.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, []string{`CLIENT "POST" version=1.1 status_code=201`}, w.lines())
		assert.Empty(t, resp.Request.Header.Get("Traceparent"))
	})
}

// Below another instrumented Transport it leaves the attempts to that.
func TestBelowAnInstrumentedTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("503@received")
		inner := w.instrument(&idem.Transport{Base: server.Transport()})
		require.NoError(t, charge(t.Context(), w.newClient(server, &idem.Transport{Base: inner})))
		assert.Equal(t, []string{
			`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=2 sends=2`,
			`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
			`CLIENT "POST" resend_count=1 version=1.1 status_code=201`,
		}, w.lines())
	})
}

// A call of its own that a Base makes, as for a token, is one inside the attempt.
func TestCallInsideAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		tokens := w.newClient(server, &idem.Transport{})
		client := w.newClient(server, &idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
			if _, err := tokens.Call(r.Context(), idem.Open(), http.MethodPost, "/tokens", nil, nil); err != nil {
				return nil, err
			}
			return server.Transport().RoundTrip(r)
		})})
		require.NoError(t, charge(t.Context(), client))
		spans := w.ended()
		require.Len(t, spans, 4)
		for i, s := range spans[1:] {
			assert.Equal(t, spans[i].SpanContext().SpanID(), s.Parent().SpanID(), "call, attempt, call, attempt")
		}
	})
}

// HTTP/2 reports an attempt that ran out of time as canceled; it was not the
// caller who did.
func TestTimeoutOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{HTTP2: true})
		server.On("/").Then("freeze@received")
		require.NoError(t, charge(t.Context(), w.newClient(server, &idem.Transport{AttemptTimeout: time.Second})))
		assert.Equal(t, `CLIENT "POST" Error type=timeout`, w.lines()[1])
	})
}

// An answer that is thrown away unread ends its attempt.
func TestUnreadAnswer(t *testing.T) {
	w := newWatch(t)
	calls := 0
	client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
		Backoff: soon,
		Base: base(func(r *http.Request) (*http.Response, error) {
			calls++
			if calls == 1 {
				return answer(r, http.StatusServiceUnavailable, strings.Repeat("x", 1<<20)), nil
			}
			return answer(r, http.StatusCreated, "{}"), nil
		}),
	})})
	require.NoError(t, err)
	require.NoError(t, charge(t.Context(), client))
	assert.Len(t, w.lines(), 3)
}

// On a hop of a redirect, too, an answer of the Intent's own store is a replay,
// although the Transport has counted attempts before.
func TestStoreOnHop(t *testing.T) {
	w := newWatch(t)
	in, err := idem.Resume(idem.Open().State(), func(next http.RoundTripper) http.RoundTripper {
		return base(func(r *http.Request) (*http.Response, error) {
			if r.Response != nil {
				return answer(r, http.StatusCreated, "{}"), nil
			}
			return next.RoundTrip(r)
		})
	})
	require.NoError(t, err)
	client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
		Base: base(func(r *http.Request) (*http.Response, error) {
			resp := answer(r, http.StatusTemporaryRedirect, "")
			resp.Header.Set("Location", "/elsewhere")
			return resp, nil
		}),
	})})
	require.NoError(t, err)
	_, err = client.Call(t.Context(), in, http.MethodPost, "/charges", nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		`INTERNAL "idem POST" keyed=true outcome=unknown replay=unknown reason=redirected attempts=1 sends=1`,
		`CLIENT "POST" version=1.1 status_code=307`,
		`INTERNAL "idem POST" keyed=true outcome=answered replay=replayed attempts=1 sends=1`,
	}, w.lines())
}

// The reason why a call gave up with an answer is that of its own last attempt,
// whatever other calls with the Intent do.
func TestReasonAmongCalls(t *testing.T) {
	type asked struct {
		after, deadline time.Duration // when the call begins; how long its context lasts, 0: for ever
	}
	for _, test := range []struct {
		name  string
		calls []asked
		want  []string
	}{
		{"one after the other", []asked{{0, 5 * time.Second}, {time.Minute, 0}}, []string{"wait_too_long 1", "exhausted 2"}},
		{"the same twice", []asked{{0, 5 * time.Second}, {time.Minute, 5 * time.Second}}, []string{"wait_too_long 1", "wait_too_long 1"}},
		{"one goes on beside it", []asked{{0, 5 * time.Second}, {0, 0}}, []string{"exhausted 2", "wait_too_long 1"}},
		{"both end alike", []asked{{0, 0}, {time.Second, 0}}, []string{"exhausted 2", "exhausted 2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
					MaxAttempts: 2,
					Base: base(func(r *http.Request) (*http.Response, error) {
						time.Sleep(2 * time.Second)
						resp := answer(r, http.StatusServiceUnavailable, "{}")
						resp.Header.Set("Retry-After", "30")
						return resp, nil
					}),
				})})
				require.NoError(t, err)
				in := idem.Open()
				var running sync.WaitGroup
				for _, c := range test.calls {
					running.Go(func() {
						time.Sleep(c.after)
						ctx := t.Context()
						if c.deadline > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, c.deadline)
							defer cancel()
						}
						_, _ = client.Call(ctx, in, http.MethodPost, "/charges", nil, nil)
					})
				}
				running.Wait()
				var got []string
				for _, s := range w.ended() {
					if _, attempt := strings.CutPrefix(s.Name(), "idem "); !attempt {
						continue
					}
					values := map[string]string{}
					for _, kv := range s.Attributes() {
						values[string(kv.Key)] = kv.Value.String()
					}
					got = append(got, fmt.Sprintf("%s %s", values["idem.reason"], values["idem.attempts"]))
				}
				assert.ElementsMatch(t, test.want, got)
			})
		})
	}
}

// A body without an end to read is closed once, and gives its error.
func TestBodyIsHandedThrough(t *testing.T) {
	w := newWatch(t)
	body := &counting{Reader: io.MultiReader(strings.NewReader("part"), failing{})}
	transport := w.instrument(&idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
		resp := answer(r, http.StatusOK, "")
		resp.Body, resp.ContentLength = body, -1
		resp.Header.Set("Content-Type", "text/event-stream")
		return resp, nil
	})})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	assert.Equal(t, "part", string(got))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 1, body.closed)
	assert.NotContains(t, strings.Join(w.lines(), ""), "Error", "the span had ended before")
}

type counting struct {
	io.Reader
	closed int
}

func (c *counting) Close() error { c.closed++; return nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
