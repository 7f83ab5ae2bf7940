package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/require"
)

// A Base without trace: only an error that says by itself that nothing was sent,
// with a body of which nothing was read, proves it.
func TestTransport_TracelessBase(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		err      error
		read     int // bytes read of the body
		outcome  idem.Outcome
		attempts int
	}{
		"dial":                    {dial, 0, idem.NotExecuted, 4},
		"dial, wrapped":           {fmt.Errorf("proxy: %w", dial), 0, idem.NotExecuted, 4},
		"dial, one byte read":     {dial, 1, idem.OutcomeUnknown, 4},
		"dial, all read":          {dial, 5, idem.OutcomeUnknown, 4},
		"DNS":                     {&net.DNSError{Err: "no such host", IsNotFound: true}, 0, idem.NotExecuted, 3},
		"DNS, read":               {&net.DNSError{Err: "no such host", IsNotFound: true}, 5, idem.OutcomeUnknown, 4},
		"read error":              {&net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}, 0, idem.OutcomeUnknown, 4},
		"write error":             {&net.OpError{Op: "write", Net: "tcp", Err: errors.New("reset")}, 0, idem.OutcomeUnknown, 4},
		"EOF":                     {io.EOF, 0, idem.OutcomeUnknown, 4},
		"unnamed":                 {errors.New("boom"), 0, idem.OutcomeUnknown, 4},
		"text that mentions dial": {errors.New("dial tcp: connection refused"), 0, idem.OutcomeUnknown, 4},
		"scheme":                  {errors.New(`unsupported protocol scheme "x"`), 0, idem.NotExecuted, 1},
		"header":                  {errors.New(`net/http: invalid header field value for "X"`), 0, idem.NotExecuted, 1},
		"its own deadline":        {context.DeadlineExceeded, 0, idem.OutcomeUnknown, 4},
		"its own cancel":          {context.Canceled, 0, idem.OutcomeUnknown, 4},
	} {
		for _, body := range []string{"in memory", "stream", "GetBody", "at an offset"} {
			t.Run(name+", "+body, func(t *testing.T) {
				virtual(t, func(t *testing.T) {
					tr, m := mock(func(r *http.Request) (*http.Response, error) {
						_, _ = io.ReadFull(r.Body, make([]byte, c.read))
						return nil, c.err
					})
					in := idem.Open()
					req := keyedPost(t, in, "http://api/x", nil)
					req.ContentLength = 5
					switch body {
					case "in memory":
						req.Body = io.NopCloser(strings.NewReader("hello"))
					case "stream":
						req.Body = newOpaque("hello")
					case "GetBody":
						req.Body = newOpaque("hello")
						req.GetBody = func() (io.ReadCloser, error) { return newOpaque("hello"), nil }
					case "at an offset":
						req.Body = &position{data: []byte("hello")}
					}
					mine := req.Body
					_, err := tr.RoundTrip(req) //nolint:bodyclose // there is none
					e := theError(t, err)
					require.Equal(t, c.outcome, e.Outcome)
					require.Equal(t, c.outcome, in.Outcome())
					require.Equal(t, c.attempts, e.Attempts)
					require.Equal(t, c.attempts, m.GetTotalCallCount())
					if c.outcome == idem.NotExecuted {
						require.Zero(t, e.Sends)
					} else {
						require.Equal(t, c.attempts, e.Sends)
					}
					require.ErrorIs(t, err, c.err)
					if o, ok := mine.(*opaque); ok {
						closedOnce(t, o, "a Base that forgets to close")
					}
				})
			})
		}
	}
	t.Run("no body", func(t *testing.T) { // net/http may have sent it before, and nothing would show it
		header := errors.New(`net/http: invalid header field value for "X"`)
		for err, outcome := range map[error]idem.Outcome{dial: idem.OutcomeUnknown, io.EOF: idem.OutcomeUnknown, header: idem.NotExecuted} {
			virtual(t, func(t *testing.T) {
				tr, _ := mock(fails(err))
				_, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", nil)) //nolint:bodyclose // there is none
				require.Equal(t, outcome, theError(t, err).Outcome)
			})
		}
	})
	t.Run("dial after an unclear attempt", func(t *testing.T) {
		virtual(t, func(t *testing.T) {
			n := 0
			tr, _ := mock(func(*http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return nil, io.EOF
				}
				return nil, dial
			})
			_, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("x"))) //nolint:bodyclose // there is none
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		})
	})
	t.Run("an answer", func(t *testing.T) {
		virtual(t, func(t *testing.T) {
			tr, _ := mock(httpmock.NewStringResponder(201, "ok"))
			in := idem.Open()
			resp, err := tr.RoundTrip(keyedPost(t, in, "http://api/x", strings.NewReader("x")))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Attempts: 1, Sends: 1}, idem.ResultOf(resp))
		})
	})
	t.Run("unkeyed POST after a dial error", func(t *testing.T) {
		virtual(t, func(t *testing.T) {
			n := 0
			tr, _ := mock(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return nil, dial
				}
				return httpmock.NewStringResponse(200, ""), nil
			})
			resp, err := tr.RoundTrip(keyedPost(t, nil, "http://api/x", strings.NewReader("x")))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, 2, n, "nothing left this machine")
		})
	})
}

// Both a response and an error: the error counts, the body is closed.
func TestTransport_ResponseAndError(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var bodies []*opaque
		tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
			_, _ = consume(r)
			resp := reply(r, 200, "")
			bodies = append(bodies, newOpaque("x"))
			resp.Body = bodies[len(bodies)-1]
			return resp, errors.New("and an error")
		})}
		resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("x"))) //nolint:bodyclose // there is none
		require.Nil(t, resp)
		e := theError(t, err)
		require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		require.Len(t, bodies, 4)
		for _, b := range bodies {
			require.EqualValues(t, 1, b.closes.Load())
		}
	})
	for name, resp := range map[string]*http.Response{
		"nil Body":   {StatusCode: 200},
		"nil Header": {StatusCode: 503, Body: io.NopCloser(strings.NewReader("x"))},
		"status 0":   {Header: http.Header{}, Body: http.NoBody},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				tr := &idem.Transport{MaxAttempts: 1, Base: baseFunc(func(r *http.Request) (*http.Response, error) {
					_, _ = consume(r)
					c := *resp
					return &c, nil
				})}
				got, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("x")))
				require.NoError(t, err)
				require.NotNil(t, got.Body)
				_, err = io.ReadAll(got.Body)
				require.NoError(t, err)
				require.NoError(t, got.Body.Close())
				require.NotNil(t, got.Request)
			})
		})
	}
}

// As V1, with a Base that hides net/http and a request that has no body of which it
// could be seen that it was sent before.
func TestTransport_TracelessResendWithoutBody(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.warm(t, 1)
		r.transport.MaxAttempts = 1
		r.transport.Base = baseFunc(func(req *http.Request) (*http.Response, error) {
			return r.base.RoundTrip(req.WithContext(context.Background()))
		})
		r.server.steps = []step{func(s *server, _ http.ResponseWriter, _ *http.Request, h hit) {
			s.exec(h)
			go r.down("api")
			synctest.Wait()
			panic(http.ErrAbortHandler)
		}}
		in := idem.Open()
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodDelete, "http://api/charges/1", nil)
		require.NoError(t, err)
		_, _, err = r.send(req)
		require.ErrorIs(t, err, errRefused)
		require.Equal(t, 1, r.done())
		require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		require.Equal(t, idem.OutcomeUnknown, in.Outcome())
	})
}
