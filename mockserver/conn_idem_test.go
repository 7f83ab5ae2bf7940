package mockserver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// call posts an order under an Intent through tr, and returns what was known.
func call(ctx context.Context, s *mockserver.Server, tr http.RoundTripper, in *idem.Intent, body io.Reader) (int, idem.Result, error) {
	req, err := http.NewRequestWithContext(idem.WithIntent(ctx, in), http.MethodPost, s.URL+"/orders", body)
	if err != nil {
		return 0, idem.Result{}, err
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		var e *idem.Error
		errors.As(err, &e)
		if e == nil {
			return 0, idem.Result{}, err
		}
		return 0, e.Result, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, idem.ResultOf(resp), err
}

// warm leaves n idle connections in base's pool.
func warm(t *testing.T, s *mockserver.Server, base http.RoundTripper, n int) {
	t.Helper()
	s.On("GET /orders").Always("delay@received for=10ms") // so that they overlap
	get(t, s, base, n)
}

// get makes n requests at once.
func get(t *testing.T, s *mockserver.Server, base http.RoundTripper, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			resp, err := (&http.Client{Transport: base}).Get(s.URL + "/orders")
			if assert.NoError(t, err) {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
}

func quick(base http.RoundTripper, attempts int) *idem.Transport {
	return &idem.Transport{Base: base, MaxAttempts: attempts, Backoff: idem.Exponential(10*time.Millisecond, 50*time.Millisecond)}
}

// sameKeyAndBody checks what holds for every hit of a keyed call.
func sameKeyAndBody(t *testing.T, s *mockserver.Server, in *idem.Intent, body string) {
	t.Helper()
	for _, r := range s.Requests("") {
		if r.Method == http.MethodPost {
			assert.Equal(t, []string{in.Key()}, r.Header.Values("Idempotency-Key"))
			assert.Equal(t, body, string(r.Body))
		}
	}
}

// golang/go#19943: one attempt reaches the server more than once, by net/http's
// own re-sends on dead pooled connections.
func TestCase_CONN_1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{})
		base := s.Transport()
		warm(t, s, base, 5)
		s.On("POST /orders").Always("drop@stored; drop@head")
		in := idem.Open()
		_, res, err := call(t.Context(), s, quick(base, 3), in, strings.NewReader("{}"))
		require.ErrorIs(t, err, idem.ErrExhausted)
		assert.Len(t, s.Effects(in.Key()), 1)
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		assert.Equal(t, 3, res.Attempts, "attempts are counted")
		assert.Equal(t, 5+1+1+1, res.Sends, "sends apart from them")
		assert.Len(t, s.Requests(in.Key()), res.Sends, "and exactly")
		var got []string
		for _, r := range s.Requests(in.Key()) {
			got = append(got, fmt.Sprint(r.Attempt, ".", r.Send))
		}
		assert.Equal(t, []string{"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.1", "3.1"}, got)
		sameKeyAndBody(t, s, in, "{}")
	})
}

// valkyrie-fnd/valkyrie#114: two sends where one attempt was allowed.
func TestCase_CONN_2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{})
		base := s.Transport()
		warm(t, s, base, 1)
		s.On("POST /orders").Then("drop@stored; drop@head")
		in := idem.Open()
		_, res, err := call(t.Context(), s, quick(base, 1), in, strings.NewReader("{}"))
		require.Error(t, err)
		assert.Equal(t, 1, res.Attempts)
		assert.Equal(t, 2, res.Sends, "the documented exception: net/http's re-send, counted")
		assert.Len(t, s.Effects(in.Key()), 1)

		// On a fresh connection there is none.
		fresh := idem.Open()
		s.On("POST /orders").Key(fresh.Key()).Then("drop@stored")
		_, res, err = call(t.Context(), s, quick(s.Transport(), 1), fresh, strings.NewReader("{}"))
		require.Error(t, err)
		assert.Equal(t, 1, res.Sends)
		assert.Len(t, s.Requests(fresh.Key()), 1)
	})
}

// ethereum/go-ethereum#24291: GOAWAY, "cannot retry after Request.Body was written".
func TestCase_CONN_3(t *testing.T) {
	for _, body := range []func() io.Reader{
		func() io.Reader { return strings.NewReader(`{"n":1}`) },
		func() io.Reader { return io.MultiReader(strings.NewReader(`{"n":1}`)) }, // no GetBody
	} {
		for _, f := range []mockserver.Fault{"goaway@received send=1", "goaway@received code=2 send=1", "goaway@stored send=1", "goaway@received last=this"} {
			synctest.Test(t, func(t *testing.T) {
				s := mockserver.New(t, mockserver.Config{HTTP2: true, TLS: true})
				s.On("POST /orders").Then(f)
				in := idem.Open()
				status, res, err := call(t.Context(), s, quick(s.Transport(), 3), in, body())
				require.NoError(t, err, f)
				assert.Equal(t, 201, status)
				assert.Equal(t, 2, res.Sends)
				assert.Len(t, s.Effects(in.Key()), 1)
				sameKeyAndBody(t, s, in, `{"n":1}`)
			})
		}
	}
}

// golang/go#20985: refused streams are retried inside for long.
func TestCase_CONN_4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{HTTP2: true})
		s.On("POST /orders").Always("abort@received code=7")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		in := idem.Open()
		_, res, err := call(ctx, s, quick(s.Transport(), 3), in, strings.NewReader("{}"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.LessOrEqual(t, time.Since(begin), 500*time.Millisecond)
		assert.LessOrEqual(t, res.Attempts, 3)
		assert.Len(t, s.Requests(in.Key()), res.Sends)
		assert.Empty(t, s.Effects(""))
	})
	t.Run("PROTOCOL_ERROR for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := mockserver.New(t, mockserver.Config{HTTP2: true})
			s.On("POST /orders").Always("abort@received code=1")
			in := idem.Open()
			_, res, err := call(t.Context(), s, quick(s.Transport(), 3), in, strings.NewReader("{}"))
			require.Error(t, err, "net/http alone would never end")
			assert.Equal(t, 3, res.Attempts)
			hits := len(s.Requests(in.Key()))
			assert.LessOrEqual(t, hits, 3*32, "sends are bounded")
			assert.LessOrEqual(t, hits, res.Sends, "and never counted too low")
			assert.GreaterOrEqual(t, hits, res.Sends-3, "at most one too many for each attempt that was cut short")
			sameKeyAndBody(t, s, in, "{}")
		})
	})
}

// kubernetes/kubernetes#126954: "client connection lost" is not retried.
func TestCase_CONN_5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{HTTP2: true})
		s.On("POST /orders").Then("freeze@stored")
		h2 := new(http.Protocols)
		h2.SetUnencryptedHTTP2(true)
		base := &http.Transport{
			DialContext: s.Dial, Protocols: h2,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		}
		defer base.CloseIdleConnections()
		var lost error
		tr := quick(base, 3)
		tr.OnAttempt = func(_ context.Context, a idem.Attempt) {
			if a.Number == 1 {
				lost = a.Err
			}
		}
		in := idem.Open()
		status, res, err := call(t.Context(), s, tr, in, strings.NewReader("{}"))
		require.NoError(t, err)
		require.ErrorContains(t, lost, "client connection lost")
		assert.Equal(t, 201, status)
		assert.Equal(t, idem.Replayed, res.Replay)
		assert.Equal(t, 2, res.Attempts)
		log := s.Requests(in.Key())
		assert.NotEqual(t, log[0].Conn, log[1].Conn, "on a new connection")
		assert.Len(t, s.Effects(in.Key()), 1)
	})
}

// golang/go#30702: every retry goes into the same dead connection.
func TestCase_CONN_6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{HTTP2: true})
		base := s.Transport()
		first := idem.Open()
		status, _, err := call(t.Context(), s, quick(base, 1), first, strings.NewReader(`{"n":1}`))
		require.NoError(t, err)
		require.Equal(t, 201, status)

		in := idem.Open()
		s.On("POST /orders").Key(in.Key()).Then("freeze@received")
		tr := quick(base, 3)
		tr.AttemptTimeout = 100 * time.Millisecond
		status, _, err = call(t.Context(), s, tr, in, strings.NewReader(`{"n":2}`))
		require.NoError(t, err)
		assert.Equal(t, 201, status)
		log := s.Requests(in.Key())
		assert.NotEqual(t, log[0].Conn, log[len(log)-1].Conn, "a later attempt uses a fresh connection")
	})
}

// golang/go#11745: an early answer is hidden by a write error. The server
// answers at once and closes without reading, which the mock server never does.
func TestCase_CONN_7(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var keys []string
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				head := make([]byte, 2048)
				n, _ := c.Read(head)
				_, key, _ := bytes.Cut(head[:n], []byte("Idempotency-Key: "))
				key, _, _ = bytes.Cut(key, []byte("\r\n"))
				mu.Lock()
				keys = append(keys, string(key))
				mu.Unlock()
				_, _ = io.WriteString(c, "HTTP/1.1 422 Unprocessable Content\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
				_ = c.Close()
			})
		}
	})
	base := &http.Transport{}
	body := bytes.Repeat([]byte("x"), 8<<20)
	answered := 0
	for range 50 {
		in := idem.Open()
		mu.Lock()
		keys = nil
		mu.Unlock()
		tr := quick(base, 3)
		tr.Backoff = idem.Exponential(time.Millisecond, time.Millisecond)
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, "http://"+l.Addr().String(), bytes.NewReader(body))
		require.NoError(t, err)
		resp, err := tr.RoundTrip(req)
		if err == nil {
			assert.Equal(t, 422, resp.StatusCode)
			_ = resp.Body.Close()
			answered++
		} else {
			require.ErrorIs(t, err, idem.ErrExhausted)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		}
		mu.Lock()
		assert.LessOrEqual(t, len(keys), 3)
		for _, k := range keys {
			assert.Equal(t, in.Key(), k)
		}
		mu.Unlock()
	}
	base.CloseIdleConnections()
	require.NoError(t, l.Close())
	served.Wait()
	t.Logf("the 422 was read %d times of 50", answered)
}

// Random resets at regular intervals: the server's idle timeout equals the
// interval of the requests.
func TestCase_CONN_8(t *testing.T) {
	for _, c := range []mockserver.Config{{}, {HTTP2: true}} {
		c.Idle = 50 * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			s := mockserver.New(t, c)
			tr := quick(s.Transport(), 3)
			for i := range 200 {
				in := idem.Open()
				status, _, err := call(t.Context(), s, tr, in, strings.NewReader(fmt.Sprint(`{"n":`, i, `}`)))
				require.NoError(t, err)
				require.Equal(t, 201, status)
				time.Sleep(50 * time.Millisecond)
			}
			assert.Len(t, s.Effects(""), 200)
			require.NoError(t, s.Verify())
		})
	}
}

// lysine-dev/okhttp#3629: a part of an answer and no answer look alike.
func TestCase_CONN_9(t *testing.T) {
	for _, f := range []mockserver.Fault{
		`raw@stored text="HTTP/1.1 200 OK\r\nContent-Le"`,
		"cut@head after=1", "cut@head after=11", "cut@head after=17", "cut@head after=27 end=reset", "malformed@head", "lengths@head",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := mockserver.New(t, mockserver.Config{})
			s.On("POST /orders").Then(f)
			tr := quick(s.Transport(), 3)
			var first error
			tr.OnAttempt = func(_ context.Context, a idem.Attempt) {
				if a.Number == 1 {
					first = a.Err
				}
			}
			in := idem.Open()
			status, res, err := call(t.Context(), s, tr, in, strings.NewReader("{}"))
			require.NoError(t, err, f)
			assert.Equal(t, 201, status)
			assert.Equal(t, 2, res.Attempts)
			assert.Equal(t, idem.Replayed, res.Replay)
			assert.Len(t, s.Effects(in.Key()), 1)
			require.Error(t, first)
			require.NotErrorIs(t, first, io.EOF)
			sameKeyAndBody(t, s, in, "{}")
		})
	}
}

// kedacore/keda#7901: CloseIdleConnections does nothing through a wrapper.
func TestCase_CONN_10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{})
		base := s.Transport()
		c := &http.Client{Transport: &idem.Transport{Base: base}}
		warm(t, s, base, 3)
		get(t, s, base, 1)
		reused := s.Requests("")
		assert.True(t, reused[len(reused)-1].Reused)
		c.CloseIdleConnections()
		synctest.Wait()
		get(t, s, base, 3)
		for _, r := range s.Requests("")[4:] {
			assert.False(t, r.Reused, "no idle connection was left")
		}

		(&http.Client{Transport: &idem.Transport{Base: bare{base}}}).CloseIdleConnections() // one that lacks it
	})
}

// bare hides every method but RoundTrip.
type bare struct{ http.RoundTripper }

// QuantumNous/new-api#6249: a later attempt calls a stale GetBody.
func TestCase_CONN_11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mockserver.New(t, mockserver.Config{})
		s.On("POST /orders").Always("reset@received")
		errStale := errors.New("the storage is closed")
		in := idem.Open()
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, s.URL+"/orders", io.MultiReader(strings.NewReader("{}")))
		require.NoError(t, err)
		req.ContentLength = 2
		calls := 0
		req.GetBody = func() (io.ReadCloser, error) {
			if calls++; calls >= 3 {
				return io.NopCloser(failing{errStale}), nil
			}
			return io.NopCloser(io.MultiReader(strings.NewReader("{}"))), nil
		}
		transport := quick(s.Transport(), 5)
		transport.MaxBody = 1 // a shorter body is kept, and GetBody not asked again
		_, err = transport.RoundTrip(req)
		require.ErrorIs(t, err, errStale, "the cause is surfaced")
		synctest.Wait() // until the server knows that the client has left
		for _, r := range s.Requests("") {
			if !r.Left {
				assert.Equal(t, "{}", string(r.Body), "nothing empty was sent")
			}
		}
		assert.Empty(t, s.Effects(""))
	})
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
