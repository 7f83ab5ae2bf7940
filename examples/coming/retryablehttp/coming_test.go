// Package coming_test holds what docs/coming-from-retryablehttp.md says of
// go-retryablehttp and of idem against one server, by running both.
package coming_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/coming/retryablehttp/after"
	"github.com/idem-go/idem/examples/coming/retryablehttp/before"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// came is what one charge came to.
type came struct {
	status   int           // 0: no response
	body     string        // as far as it could be read
	err      error         // of the call or of reading the body
	requests int           // that the server saw of it
	keys     int           // under how many keys
	effects  int           // of all charges
	took     time.Duration // in virtual time
}

// charges is a client as either package makes it.
type charges func(ctx context.Context) (*http.Response, error)

var order = []byte(`{"amount":500}`)

// both lets each client meet the same faults, in virtual time, times times: what
// either came to is that of the last call.
func both(t *testing.T, times int, timeout time.Duration, script func(*mockserver.Script)) (rh, idm came) {
	run := func(of func(*mockserver.Server) charges) (c came) {
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.New(t, mockserver.Config{})
			script(server.On("POST /charges"))
			charge := of(server)
			for range times {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				c = meet(ctx, charge)
				cancel()
			}
			keys := map[string]bool{}
			for _, r := range server.Requests("") {
				keys[r.Key] = true
			}
			c.requests, c.keys, c.effects = len(server.Requests("")), len(keys), len(server.Effects(""))
		})
		return c
	}
	rh = run(func(server *mockserver.Server) charges {
		client := before.New(server.Transport())
		return func(ctx context.Context) (*http.Response, error) {
			return before.Charge(ctx, client, server.URL, order)
		}
	})
	idm = run(func(server *mockserver.Server) charges {
		client, intent := after.New(server.Transport()), idem.Open()
		return func(ctx context.Context) (*http.Response, error) {
			return after.Charge(ctx, client, server.URL, intent, order)
		}
	})
	return rh, idm
}

func meet(ctx context.Context, charge charges) (c came) {
	began := time.Now()
	resp, err := charge(ctx)
	c.took, c.err = time.Since(began), err
	if resp != nil {
		var body []byte
		body, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		c.status, c.body, c.err = resp.StatusCode, string(body), errors.Join(c.err, err)
	}
	return c
}

const long = time.Hour

// A key that is made beside the request lasts for one call. Whoever gets an error
// and calls again charges again.
func TestKeyPerCall(t *testing.T) {
	rh, idm := both(t, 2, long, func(s *mockserver.Script) {
		s.Then("reset@stored", "reset@head", "reset@head", "reset@head", "reset@head")
	})
	assert.Equal(t, 2, rh.keys)
	assert.Equal(t, 2, rh.effects)
	assert.Error(t, rh.err)
	assert.Equal(t, 1, idm.keys)
	assert.Equal(t, 1, idm.effects)
	assert.NoError(t, idm.err)
	assert.Equal(t, 201, idm.status)
}

// 409 says that the first request still runs.
func TestConflict(t *testing.T) {
	rh, idm := both(t, 1, long, func(s *mockserver.Script) { s.Then("409@received") })
	assert.Equal(t, 409, rh.status)
	assert.Equal(t, 1, rh.requests)
	assert.Equal(t, 201, idm.status)
	assert.Equal(t, 2, idm.requests)
}

// So is it with 408, 423 and 425; 501 is repeated by neither.
func TestOtherStatuses(t *testing.T) {
	for fault, repeated := range map[mockserver.Fault]bool{"408@received": true, "423@received": true, "425@received": true, "501@received": false} {
		rh, idm := both(t, 1, long, func(s *mockserver.Script) { s.Then(fault) })
		assert.Equal(t, 1, rh.requests, fault)
		assert.Equal(t, repeated, idm.requests == 2, fault)
	}
}

// A wait that the server asks for is followed on 429 and 503 alone, however long it
// is; idem follows it on every status that is repeated, up to a limit.
func TestRetryAfter(t *testing.T) {
	rh, idm := both(t, 1, long, func(s *mockserver.Script) { s.Then("503@received retry-after=600") })
	assert.Equal(t, 10*time.Minute, rh.took)
	assert.Equal(t, 201, rh.status)
	assert.Less(t, idm.took, time.Second)
	assert.Equal(t, 503, idm.status)

	rh, idm = both(t, 1, long, func(s *mockserver.Script) { s.Then("500@received retry-after=20") })
	assert.Equal(t, time.Second, rh.took)
	assert.InDelta(t, 20.5, idm.took.Seconds(), 1)
}

// Without an order to wait the waits are always the same; idem's are drawn.
func TestJitter(t *testing.T) {
	fault := func(s *mockserver.Script) { s.Then("500@received") }
	rh, idm := both(t, 1, long, fault)
	assert.Equal(t, time.Second, rh.took)
	again, _ := both(t, 1, long, fault)
	assert.Equal(t, rh.took, again.took)
	assert.GreaterOrEqual(t, idm.took, 500*time.Millisecond)
	assert.LessOrEqual(t, idm.took, time.Second)
}

// A wait that would pass the deadline is slept into; idem gives up at once, with
// the response at hand.
func TestDeadline(t *testing.T) {
	rh, idm := both(t, 1, 5*time.Second, func(s *mockserver.Script) { s.Then("503@received retry-after=30") })
	assert.Equal(t, 5*time.Second, rh.took)
	assert.ErrorIs(t, rh.err, context.DeadlineExceeded)
	assert.Less(t, idm.took, time.Second)
	assert.Equal(t, 503, idm.status)
}

// When the attempts are used up there is an error without the response; idem hands
// the response over, with its body.
func TestGivingUp(t *testing.T) {
	rh, idm := both(t, 1, long, func(s *mockserver.Script) { s.Always("503@received body=`{\"why\":\"maintenance\"}`") })
	assert.Equal(t, 5, rh.requests)
	assert.Zero(t, rh.status)
	assert.ErrorContains(t, rh.err, "giving up after 5 attempt(s)")
	assert.Equal(t, 5, idm.requests)
	assert.Equal(t, 503, idm.status)
	assert.JSONEq(t, `{"why":"maintenance"}`, idm.body)
	assert.NoError(t, idm.err)
}

// A body that is cut is the reader's error; idem asks for it again.
func TestCutBody(t *testing.T) {
	rh, idm := both(t, 1, long, func(s *mockserver.Script) { s.Then("cut@body after=9") })
	assert.Equal(t, 201, rh.status)
	assert.ErrorIs(t, rh.err, io.ErrUnexpectedEOF)
	assert.NoError(t, idm.err)
	assert.JSONEq(t, `{"amount":500,"id":"1"}`, idm.body)
	assert.Equal(t, 2, idm.requests)
}

// Without a key a POST is repeated all the same, and its work is done twice; idem
// sends it once.
func TestWithoutAKey(t *testing.T) {
	post := func(t *testing.T, of func(*mockserver.Server) http.RoundTripper) (effects int, err error) {
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.New(t, mockserver.Config{})
			server.On("POST /charges").Then("reset@stored")
			var resp *http.Response
			if resp, err = (&http.Client{Transport: of(server)}).Post(server.URL+"/charges", "application/json", bytes.NewReader(order)); err == nil {
				_ = resp.Body.Close()
			}
			effects = len(server.Effects(""))
		})
		return effects, err
	}
	effects, err := post(t, func(s *mockserver.Server) http.RoundTripper {
		return &retryablehttp.RoundTripper{Client: before.New(s.Transport())}
	})
	assert.Equal(t, 2, effects)
	assert.NoError(t, err)
	effects, err = post(t, func(s *mockserver.Server) http.RoundTripper { return after.New(s.Transport()).Transport })
	assert.Equal(t, 1, effects)
	assert.Error(t, err)
}

// body is a request body that says how it was used.
type body struct {
	io.Reader
	closed int
}

func (b *body) Close() error { b.closed++; return nil }

// Under http.Client, go-retryablehttp reads the body into memory whatever its size
// and does not close it; idem closes it once, and sends what is longer than MaxBody
// as it is read.
func TestCallersBody(t *testing.T) {
	const size = 4 << 20
	for name, closed := range map[string]int{"go-retryablehttp": 0, "idem": 1} {
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.New(t, mockserver.Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				assert.EqualValues(t, size, n)
			})})
			var transport http.RoundTripper = &retryablehttp.RoundTripper{Client: before.New(server.Transport())}
			if name == "idem" {
				transport = after.New(server.Transport()).Transport
			}
			b := &body{Reader: io.LimitReader(zeros{}, size)}
			req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), http.MethodPost, server.URL, b)
			require.NoError(t, err)
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
			assert.Equal(t, closed, b.closed, name)
			assert.Equal(t, name == "idem", req.Body == io.ReadCloser(b), "%s: the caller's request", name)
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A redirect of a charge is followed by a GET that carries the key; idem.Client
// hands the redirect over.
func TestRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		mux := http.NewServeMux()
		mux.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) })
		mux.HandleFunc("GET /login", func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Idempotency-Key")) })
		server := mockserver.New(t, mockserver.Config{Handler: mux})
		resp, err := before.Charge(t.Context(), before.New(server.Transport()), server.URL, order)
		require.NoError(t, err)
		_ = resp.Body.Close()
		assert.Equal(t, 200, resp.StatusCode, "of a page that has charged nothing")
		require.Len(t, seen, 1)
		assert.NotEmpty(t, seen[0])

		client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}})
		require.NoError(t, err)
		res, err := client.Call(t.Context(), idem.Open(), http.MethodPost, "/charges", map[string]int{"amount": 500}, nil)
		assert.Error(t, err)
		assert.Equal(t, 302, res.Status)
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		assert.Len(t, seen, 1)
	})
}

// pool is a transport whose connections to other hosts would be lost too.
type pool struct {
	http.RoundTripper
	closed int
}

func (p *pool) CloseIdleConnections() { p.closed++ }

// Giving up closes the idle connections to every host; idem closes none.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		server.On("POST /charges").Always("503@received")
		p := &pool{RoundTripper: server.Transport()}
		_, err := before.Charge(t.Context(), before.New(p), server.URL, order)
		require.Error(t, err)
		assert.Equal(t, 1, p.closed)
		resp, err := after.Charge(t.Context(), after.New(p), server.URL, idem.Open(), order)
		require.NoError(t, err)
		_ = resp.Body.Close()
		assert.Equal(t, 1, p.closed)
	})
}

// The defaults that the page names.
func TestDefaults(t *testing.T) {
	c := retryablehttp.NewClient()
	assert.Equal(t, 4, c.RetryMax)
	assert.Equal(t, time.Second, c.RetryWaitMin)
	assert.Equal(t, 30*time.Second, c.RetryWaitMax)
	assert.NotNil(t, c.Logger)
	assert.Zero(t, c.HTTPClient.Timeout)
	req, err := retryablehttp.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1", nil)
	require.NoError(t, err)
	assert.Panics(t, func() { _, _ = new(retryablehttp.Client).Do(req) })
}
