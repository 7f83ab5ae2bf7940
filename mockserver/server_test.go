package mockserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

func TestStart(t *testing.T) {
	s, err := Start(Config{})
	require.NoError(t, err)
	assert.Regexp(t, `^http://127\.0\.0\.1:\d+$`, s.URL, "a free port")
	assert.Equal(t, 201, postOrder(t, http.DefaultClient, s, "k", "{}").Status, "any client reaches it there")
	http.DefaultClient.CloseIdleConnections()
	_, err = Start(Config{Addr: strings.TrimPrefix(s.URL, "http://")})
	require.ErrorContains(t, err, "mockserver: listen tcp")
	require.NoError(t, s.Close())

	_, err = Start(Config{Contract: contract.Contract{MinKey: 3, MaxKey: 2}})
	require.ErrorContains(t, err, "contract:")
	tb := &fakeTB{TB: t}
	assert.Contains(t, tb.fails(t, func() { New(tb, Config{Contract: contract.Contract{Gap: -1}}) }), "contract:")
}

// The server's own clients trust it under any host name; others do not.
func TestTLS(t *testing.T) {
	networks(t, func(t *testing.T, c Config) {
		if !c.TLS {
			return
		}
		s := New(t, c)
		client := s.Client()
		for _, url := range []string{s.URL, "https://api.example.com", "https://other.example:8443", "https://127.0.0.1:1"} {
			assert.Equal(t, 404, send(t.Context(), client, "GET", url+"/", "").Status, url)
		}
		stranger := &http.Client{Transport: &http.Transport{DialContext: s.Dial}}
		assert.ErrorContains(t, send(t.Context(), stranger, "GET", s.URL, "").Err, "x509: certificate signed by unknown authority")
	})
}

// In a bubble it is the year 2000, also for certificates.
func TestTLSInABubble(t *testing.T) {
	in(t, Config{TLS: true, HTTP2: true}, func(t *testing.T, s *Server, c *http.Client) {
		require.Equal(t, 2000, time.Now().Year())
		assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
		time.Sleep(365 * 24 * time.Hour)
		c.CloseIdleConnections()
		assert.Equal(t, 201, postOrder(t, c, s, "k2", `{"a":1}`).Status, "and a year later")
	})
}

// A panic of the handler fails the test, and is a crash to the client.
func TestHandlerPanics(t *testing.T) {
	for _, what := range []any{"oh", http.ErrAbortHandler} {
		tb := &fakeTB{TB: t}
		s := New(tb, Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(what) })})
		require.ErrorIs(t, postOrder(t, s.Client(), s, "k", "{}").Err, io.EOF)
		assert.Equal(t, 409, postOrder(t, s.Client(), s, "k", "{}").Status, "its claim stays")
		tb.end()
		if what == http.ErrAbortHandler {
			assert.Empty(t, tb.failed)
			continue
		}
		require.Len(t, tb.failed, 1)
		assert.Contains(t, tb.failed[0], "mockserver: the handler panicked: oh\n")
		assert.Contains(t, tb.failed[0], "server_test.go", "with the stack")
	}
}

// A request is in the log as soon as its head has arrived, also if its client
// leaves before it is whole, or while it waits for the answer.
func TestLogOfThoseWhoLeave(t *testing.T) {
	for _, c := range []Config{{}, {HTTP2: true}} {
		in(t, c, func(t *testing.T, s *Server, client *http.Client) {
			r, w := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/orders", r)
			require.NoError(t, err)
			req.Header.Set("Idempotency-Key", "k")
			var all sync.WaitGroup
			all.Go(func() { _, _ = client.Do(req) })
			_, _ = w.Write([]byte("half"))
			synctest.Wait()
			log := s.Requests("k")
			require.Len(t, log, 1)
			assert.Empty(t, log[0].Points, "not received yet")
			assert.Zero(t, log[0].End)
			cancel()
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
			all.Wait()
			synctest.Wait()
			log = s.Requests("k")
			assert.True(t, log[0].Left)
			assert.Equal(t, "half", string(log[0].Body))
			assert.NotZero(t, log[0].End)
			assert.Empty(t, s.Effects(""))

			s.On("POST /orders").Key("k2").Then("delay@claimed for=10s")
			client.Timeout = 3 * time.Second
			require.Error(t, postOrder(t, client, s, "k2", "{}").Err)
			time.Sleep(time.Minute)
			last := s.Requests("k2")[0]
			assert.True(t, last.Left)
			assert.Equal(t, Unanswered, last.Answer)
			assert.Len(t, s.Effects("k2"), 1, "the work was done all the same")
			assert.Equal(t, 10*time.Second, last.End.Sub(last.Start))
		})
	}
}

// What is handed out are copies.
func TestRequestsAreCopies(t *testing.T) {
	s := New(t, Config{})
	postOrder(t, s.Client(), s, "k", "{}")
	r := s.Requests("k")[0]
	delete(r.Points, Received)
	r.Status = 0
	assert.Contains(t, s.Requests("k")[0].Points, Received)
	assert.Equal(t, 201, s.Requests("k")[0].Status)
	assert.Empty(t, s.Requests("other"))
}

func TestOrders(t *testing.T) {
	s := New(t, Config{})
	c := s.Client()
	do := func(method, path, body string) seen { return send(t.Context(), c, method, s.URL+path, body) }
	assert.JSONEq(t, `{"id":"1","item":"a","amount":100000}`, do("POST", "/charges", `{"item":"a","amount":100000}`).Body)
	assert.JSONEq(t, `{"id":"2"}`, do("POST", "/orders", ``).Body)
	assert.JSONEq(t, `{"id":"3"}`, do("POST", "/orders", `null`).Body)
	assert.JSONEq(t, `{"id":"2"}`, do("GET", "/orders/2", "").Body)
	assert.JSONEq(t, `{"data":[{"id":"2"},{"id":"3"}]}`, do("GET", "/orders", "").Body)
	assert.JSONEq(t, `{"data":[]}`, do("GET", "/refunds", "").Body)
	for _, row := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/orders", `[]`, 400}, {"POST", "/orders", `{`, 400}, {"POST", "/orders", `{} {}`, 400},
		{"POST", "/orders", `{"amount":100000.5}`, 402}, {"POST", "/orders", `{"amount":1e400}`, 402},
		{"GET", "/orders/1", "", 404}, {"DELETE", "/orders", "", 405}, {"GET", "/", "", 404},
	} {
		got := do(row.method, row.path, row.body)
		assert.Equal(t, row.status, got.Status, row)
		if got.Status < 404 {
			assert.Equal(t, "application/problem+json", got.Header.Get("Content-Type"))
		}
	}
	assert.Len(t, s.Effects(""), 3)
	Did(t.Context(), "nothing", nil) // outside a request
	assert.Len(t, s.Effects(""), 3)
}

// What the client sent comes back as it is written, and where to find it is an
// address.
func TestOrdersAreAsTheyCame(t *testing.T) {
	s := New(t, Config{})
	c := s.Client()
	const big = `"ref":9007199254740993,"rate":1.10,"huge":123456789012345678901234567890`
	got := send(t.Context(), c, "POST", s.URL+"/a%2Fb%25", `{`+big+`}`)
	require.Equal(t, 201, got.Status)
	assert.Contains(t, got.Body, `"ref":9007199254740993`)
	assert.Contains(t, got.Body, `"rate":1.10`)
	assert.Contains(t, got.Body, `"huge":123456789012345678901234567890`)
	assert.Equal(t, "/a%2Fb%25/1", got.Header.Get("Location"))
	assert.Equal(t, got.Body, send(t.Context(), c, "GET", s.URL+got.Header.Get("Location"), "").Body)
}

// A header that is set after WriteHeader does not arrive, as with net/http.
func TestLateHeader(t *testing.T) {
	s := New(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Early", "1")
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("Late", "1")
		w.Header().Del("Early")
	})})
	for _, key := range []string{"", "k", "k"} { // without a key, fresh, replayed
		got := postOrder(t, s.Client(), s, key, "{}")
		assert.Equal(t, "1", got.Header.Get("Early"))
		assert.Empty(t, got.Header.Get("Late"))
	}
}

// An answer that has no body by its status has none, whatever writes one, and
// that to a HEAD request has none either.
func TestAnswersWithoutBody(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.URL.Path == "/orders" {
			_, _ = io.WriteString(w, "body")
			return
		}
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "body")
		assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
	})
	for _, h2 := range []bool{false, true} {
		in(t, Config{Handler: handler, HTTP2: h2, Kind: Kind{Repeat: 204}}, func(t *testing.T, s *Server, c *http.Client) {
			for _, row := range []struct{ method, path, fault string }{
				{"POST", "/no", ""}, {"POST", "/no", "204@received body=x"}, {"POST", "/no", "304@head body=x"},
				{"POST", "/no", "dribble@body"}, {"POST", "/no", "delay@body after=1 for=1s"},
				{"HEAD", "/", ""}, {"HEAD", "/", "dribble@body"}, {"HEAD", "/", "delay@body after=1 for=1s"},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				got := send(ctx, c, row.method, s.URL+row.path, "", "Mock-Fault: "+row.fault)
				cancel()
				require.NoError(t, got.Err, row)
				assert.Empty(t, got.Body)
				if row.method == "HEAD" {
					assert.Equal(t, "4", got.Header.Get("Content-Length"))
				} else {
					assert.Empty(t, got.Header.Get("Content-Length"), row)
				}
			}
			assert.Equal(t, "body", postOrder(t, c, s, "k", "{}").Body)
			again := postOrder(t, c, s, "k", "{}")
			require.NoError(t, again.Err)
			assert.Equal(t, 204, again.Status)
			assert.Empty(t, again.Header.Get("Content-Length"))
		})
	}
}

// Everything at once, for the race detector: clients, scripts, the clock, the
// process, and those who look on.
func TestEverythingAtOnce(t *testing.T) {
	s, err := Start(Config{Addr: "memory", HTTP2: true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	loop := func(do func()) {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
			}
		})
	}
	for i := range 4 {
		key := string(rune('a' + i))
		c := s.Client()
		loop(func() { send(ctx, c, "POST", s.URL+"/orders", "{}", "Idempotency-Key: "+key) })
		loop(func() { _ = s.Await(ctx, key, 3, Body); s.Release(key) })
	}
	faults := []Fault{"hang@received", "reset@stored", "abort@head", "goaway@received send=1", "copy@received", "drop@body", "crash@claimed", "delay@dial for=1ms"}
	n := 0
	loop(func() { s.On("/").Then(faults[n%len(faults)]); n++; time.Sleep(time.Millisecond) })
	loop(func() { s.Advance(time.Second); time.Sleep(time.Millisecond) })
	loop(func() { s.Forget(); time.Sleep(5 * time.Millisecond) })
	loop(func() { assert.NoError(t, s.Restart()); time.Sleep(20 * time.Millisecond) })
	loop(func() { s.Believe("a", Done); s.Requests("a"); s.Effects(""); _ = s.Verify() })
	all.Wait()
	require.NoError(t, s.Close())
}
