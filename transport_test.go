package idem_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mock is a Transport over httpmock, which shows no trace.
func mock(responder httpmock.Responder) (*idem.Transport, *httpmock.MockTransport) {
	m := httpmock.NewMockTransport()
	m.RegisterNoResponder(responder)
	return &idem.Transport{Base: m, Backoff: idem.Exponential(10*time.Millisecond, 50*time.Millisecond)}, m
}

func fails(err error) httpmock.Responder {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

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
	t.Run("no body", func(t *testing.T) {
		for err, outcome := range map[error]idem.Outcome{dial: idem.NotExecuted, io.EOF: idem.OutcomeUnknown} {
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

// The zero Transport works, with http.DefaultTransport and the documented values.
func TestTransport_Zero(t *testing.T) {
	virtual(t, func(t *testing.T) {
		r := newRig(t, status(503))
		keep := http.DefaultTransport
		http.DefaultTransport = r.base
		defer func() { http.DefaultTransport = keep }()
		r.transport = new(idem.Transport)
		resp, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, 4, r.count())
		r.oneKey()
		for i, most := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
			require.LessOrEqual(t, r.gaps()[i], most)
			require.GreaterOrEqual(t, r.gaps()[i], most/2)
		}
	})
	virtual(t, func(t *testing.T) { // 30 s for an attempt
		r := newRig(t, stall)
		r.transport = &idem.Transport{Base: r.base, MaxAttempts: 1}
		start := time.Now()
		_, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.True(t, theError(t, err).Timeout())
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestTransport_InvalidFields(t *testing.T) {
	bad := contract.Default()
	bad.MinKey, bad.MaxKey = 10, 5
	for name, tr := range map[string]*idem.Transport{
		"MaxAttempts":   {MaxAttempts: -1},
		"MaxRetryAfter": {MaxRetryAfter: -time.Second},
		"Contract":      {Contract: bad},
		"all":           {MaxAttempts: -2, MaxRetryAfter: -2, Contract: bad},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				tr.Base = r.base
				r.transport = tr
				for range 2 {
					_, _, err := r.post(t.Context(), idem.Open(), "{}")
					e := theError(t, err)
					require.Equal(t, idem.NotExecuted, e.Outcome)
					require.Zero(t, e.Attempts)
					require.NotContains(t, e.Error(), "\n")
					if name == "all" {
						require.Contains(t, e.Error(), "MaxAttempts")
						require.Contains(t, e.Error(), "MaxRetryAfter")
						require.Contains(t, e.Error(), "Contract")
					} else {
						require.Contains(t, e.Error(), name)
					}
				}
				require.Zero(t, r.count())
			}, created)
		})
	}
	_, err := new(idem.Transport).RoundTrip(nil) //nolint:bodyclose // there is none
	require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
	t.Run("negative values that mean none", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport = &idem.Transport{Base: r.base, AttemptTimeout: -1, MaxBody: -1, MaxResponse: -1}
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
		}, status(503), created)
	})
}

// A Backoff of one's own: a negative or absurd result does no harm.
func TestTransport_OwnBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var asked []int
		r.transport.Backoff = func(n int) time.Duration { asked = append(asked, n); return -time.Hour }
		resp, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, []int{1, 2}, asked[:2])
		r.oneKey()
	}, status(503), status(503), created)
}

// As httputil.ReverseProxy.Transport: the incoming request has RequestURI set,
// hop-by-hop headers and a body that must not be reused.
func TestTransport_ReverseProxy(t *testing.T) {
	proxied := func(t *testing.T, r *rig) {
		t.Helper()
		target, _ := url.Parse("http://api")
		r.serve("front", &httputil.ReverseProxy{
			Transport: r.transport,
			Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target) },
		})
	}
	t.Run("plain", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			proxied(t, r)
			req, _ := http.NewRequest("POST", "http://front/charges", strings.NewReader("hello"))
			req.Header.Set("Idempotency-Key", "mine-1")
			resp, err := (&http.Client{Transport: r.base}).Do(req)
			require.NoError(t, err)
			data, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, `{"id":"ch_1"}`, string(data))
			require.Equal(t, 2, r.count())
			require.Equal(t, "hello", r.all()[1].body)
			require.Equal(t, []string{"mine-1"}, r.all()[1].keys)
			r.oneKey()
		}, status(503), created)
	})
	t.Run("the client leaves", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			proxied(t, r)
			r.transport.Backoff = idem.Exponential(time.Hour, time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://front/charges", strings.NewReader("hello"))
			req.Header.Set("Idempotency-Key", "mine-1")
			_, err := (&http.Client{Transport: r.base}).Do(req) //nolint:bodyclose // there is none
			require.Error(t, err)
			synctest.Wait()
			require.Equal(t, 1, r.count())
		}, status(503))
	})
	for _, keyed := range []bool{false, true} {
		t.Run(fmt.Sprintf("101, keyed %v", keyed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				proxied(t, r)
				conn, err := r.net.DialContext(t.Context(), "tcp", "front:80")
				require.NoError(t, err)
				defer conn.Close()
				key := ""
				if keyed {
					key = "Idempotency-Key: mine-1\r\n"
				}
				_, err = io.WriteString(conn, "POST /chat HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: echo\r\nContent-Length: 0\r\n"+key+"\r\n")
				require.NoError(t, err)
				in := bufio.NewReader(conn)
				resp, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				require.Equal(t, 101, resp.StatusCode)
				time.Sleep(time.Hour) // longer than any attempt: the clock has stopped
				for _, word := range []string{"ping\n", "pong\n"} {
					_, err = io.WriteString(conn, word)
					require.NoError(t, err)
					line, err := in.ReadString('\n')
					require.NoError(t, err)
					require.Equal(t, word, line)
				}
			}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "echo")
				w.WriteHeader(101)
				conn, buf, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer conn.Close()
				_, _ = io.Copy(conn, buf)
			})
		})
	}
}

type idleCloser struct {
	http.RoundTripper
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }

func TestTransport_CloseIdleConnections(t *testing.T) {
	base := &idleCloser{RoundTripper: http.DefaultTransport}
	(&http.Client{Transport: &idem.Transport{Base: base}}).CloseIdleConnections()
	require.Equal(t, 1, base.closed)
	(&idem.Transport{Base: baseFunc(nil)}).CloseIdleConnections() // has no such method
	bubble(t, func(t *testing.T, r *rig) {
		for range 2 {
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			r.client().CloseIdleConnections()
			synctest.Wait()
		}
		require.Equal(t, 2, r.dials())
	}, created)
}

// The response's Request is set, and its context is alive after the body was read.
func TestTransport_ResponseRequest(t *testing.T) {
	type key struct{}
	for _, h2 := range []bool{false, true} {
		for name, s := range map[string]step{"buffered": created, "stream": statusBody(200, "x", "Content-Type", "text/event-stream"), "empty": status(204)} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if h2 {
						r.base.Protocols = new(http.Protocols)
						r.base.Protocols.SetUnencryptedHTTP2(true)
					}
					ctx := context.WithValue(t.Context(), key{}, "mine")
					resp, _, err := r.post(ctx, idem.Open(), "{}")
					require.NoError(t, err)
					require.NotNil(t, resp.Request)
					got := resp.Request.Context()
					require.NoError(t, got.Err())
					require.NoError(t, context.Cause(got))
					require.Equal(t, "mine", got.Value(key{}))
					require.Zero(t, idem.AttemptNumber(got), "outside of an attempt")
					require.Equal(t, "http://api/charges", resp.Request.URL.String())
					require.Equal(t, 1, idem.ResultOf(resp).Attempts)
				}, s)
			})
		}
	}
	t.Run("a stub that leaves it nil", func(t *testing.T) {
		virtual(t, func(t *testing.T) {
			tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
				_, _ = consume(r)
				resp := reply(r, 200, "x")
				resp.Request = nil
				return resp, nil
			})}
			resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("x")))
			require.NoError(t, err)
			resp.Body.Close()
			require.NotNil(t, resp.Request)
			require.Equal(t, 1, idem.ResultOf(resp).Attempts)
		})
	})
	t.Run("the caller cancels afterwards", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			resp, _, err := r.post(ctx, idem.Open(), "{}")
			require.NoError(t, err)
			cancel()
			require.ErrorIs(t, resp.Request.Context().Err(), context.Canceled)
			require.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		}, created)
	})
}

// ResultOf works through http.Client, with and without Timeout, before and after
// the body was read and closed.
func TestTransport_ResultOf(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		for name, s := range map[string]step{"buffered": created, "stream": statusBody(201, "x", "Content-Type", "text/event-stream")} {
			t.Run(fmt.Sprintf("%s, Timeout %v", name, timeout), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					in := idem.Open()
					client := &http.Client{Transport: r.transport, Timeout: timeout}
					resp, err := client.Do(keyedPost(t, in, "http://api/x", strings.NewReader("{}")))
					require.NoError(t, err)
					want := idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Attempts: 2, Sends: 2}
					require.Equal(t, want, idem.ResultOf(resp))
					_, err = io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, want, idem.ResultOf(resp))
					resp.Body.Close()
					require.Equal(t, want, idem.ResultOf(resp))
				}, status(503), s)
			})
		}
	}
	require.Zero(t, idem.ResultOf(nil))
	require.Zero(t, idem.ResultOf(&http.Response{}))
	req, _ := http.NewRequest("GET", "http://api", nil)
	require.Zero(t, idem.ResultOf(&http.Response{Request: req}))
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Equal(t, idem.Result{Status: 402, Outcome: idem.Answered, Attempts: 1, Sends: 1}, idem.ResultOf(resp))
		}, status(402))
	})
	t.Run("the result of a call stays, whatever a later call brings", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			first, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 402, idem.ResultOf(first).Status)
			require.Equal(t, idem.Answered, idem.ResultOf(first).Outcome)
		}, status(402), created)
	})
}

// A key header in another case than the canonical one is not doubled.
func TestTransport_HeaderCase(t *testing.T) {
	for _, name := range []string{"idempotency-key", "IDEMPOTENCY-KEY", "Idempotency-key", "iDEMPOTENCY-kEY"} {
		for _, under := range []bool{false, true} {
			bubble(t, func(t *testing.T, r *rig) {
				in, err := idem.Adopt("mine-1", since())
				require.NoError(t, err)
				if !under {
					in = nil
				}
				req := keyedPost(t, in, "http://api/x", strings.NewReader("{}"))
				req.Header[name] = []string{"mine-1"}
				_, _, err = r.send(req)
				require.NoError(t, err)
				require.Equal(t, 2, r.count())
				r.oneKey()
				require.Equal(t, []string{"mine-1"}, r.all()[0].keys)
				require.Equal(t, []string{"mine-1"}, req.Header[name])
				require.Len(t, req.Header, 1)
			}, status(503), created)
		}
	}
}

// An attempt's own timeout is no cancel and not the caller's deadline, also over
// HTTP/2, which reports a bare "context canceled".
func TestTransport_AttemptTimeout(t *testing.T) {
	head := func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for _, h2 := range []bool{false, true} {
		for name, s := range map[string]step{"no answer": stall, "head only": head} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if h2 {
						r.base.Protocols = new(http.Protocols)
						r.base.Protocols.SetUnencryptedHTTP2(true)
					}
					r.transport.AttemptTimeout = time.Second
					in := idem.Open()
					_, _, err := r.post(t.Context(), in, "{}")
					e := theError(t, err)
					require.Equal(t, 3, r.count())
					require.Equal(t, 3, e.Attempts)
					require.True(t, e.Timeout())
					require.NotErrorIs(t, e, context.Canceled)
					require.NotErrorIs(t, e, context.DeadlineExceeded)
					for _, a := range in.Attempts() {
						require.NotErrorIs(t, a.Err, context.Canceled, "%v", a.Err)
						require.Equal(t, time.Second, a.Duration)
					}
					require.NotEqual(t, idem.NotExecuted, e.Outcome)
					r.oneKey()
				}, s)
			})
		}
	}
	t.Run("a long upload is not cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.transport.MaxBody = 10
			i := 0
			body := &opaque{r: readerFunc(func(p []byte) (int, error) {
				if i++; i > 20 {
					return 0, io.EOF
				}
				time.Sleep(900 * time.Millisecond)
				return copy(p, "12345"), nil
			})}
			req := keyedPost(t, idem.Open(), "http://api/x", body)
			req.ContentLength = 100
			resp, _, err := r.send(req)
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Len(t, r.all()[0].body, 100)
		}, created)
	})
	t.Run("a body that stops coming is cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.transport.MaxBody = 10
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, "12345") }()
			defer time.AfterFunc(time.Hour, func() { _ = pw.Close() }).Stop()
			req := keyedPost(t, idem.Open(), "http://api/x", pr)
			req.ContentLength = 100
			start := time.Now()
			_, _, err := r.send(req)
			e := theError(t, err)
			require.True(t, e.Timeout(), "%v", err)
			require.LessOrEqual(t, time.Since(start), 2*time.Second)
			require.Equal(t, 1, e.Attempts)
			require.Zero(t, r.count())
		}, created)
	})
	t.Run("a body that stops coming when the caller leaves", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, "12345") }()
			defer time.AfterFunc(time.Hour, func() { _ = pw.Close() }).Stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "POST", "http://api/x", pr)
			req.ContentLength = 100
			start := time.Now()
			_, _, err := r.send(req)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
		}, created)
	})
	t.Run("a long stream of an answer is not cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			_, text, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("x", 10), text)
		}, func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(5 * time.Second)
			}
		})
	})
	t.Run("a silent peer below TLS", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			r.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				t.Cleanup(func() { _ = there.Close() })
				return here, nil
			}
			start := time.Now()
			_, _, err := r.send(keyedPost(t, idem.Open(), "https://api/x", strings.NewReader("{}")))
			e := theError(t, err)
			require.True(t, e.Timeout())
			require.Equal(t, 3, e.Attempts)
			require.Equal(t, idem.NotExecuted, e.Outcome, "no request byte left")
			require.Less(t, time.Since(start), 4*time.Second)
		})
	})
}

// A Request.Cancel that is closed is the caller's: not retried.
func TestTransport_RequestCancel(t *testing.T) {
	for name, s := range map[string]step{"in an attempt": stall, "in a wait": status(503)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Backoff = idem.Exponential(time.Hour, time.Hour)
				cancel := make(chan struct{})
				in := idem.Open()
				req := keyedPost(t, in, "http://api/x", strings.NewReader("{}"))
				req.Cancel = cancel //nolint:staticcheck // still in use
				time.AfterFunc(time.Second, func() { close(cancel) })
				start := time.Now()
				_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
				theError(t, err)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, time.Second, time.Since(start))
				require.Equal(t, 1, r.count())
				require.Len(t, in.Attempts(), 1)
				require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			}, s)
		})
	}
}

// A context that is done on entry: no attempt is made.
func TestTransport_DoneOnEntry(t *testing.T) {
	for _, base := range []string{"net/http", "stub"} {
		for _, keyed := range []bool{true, false} {
			bubble(t, func(t *testing.T, r *rig) {
				if base == "stub" {
					r.transport.Base = baseFunc(func(r *http.Request) (*http.Response, error) {
						t.Error("asked")
						return reply(r, 200, ""), nil
					})
				}
				cause := errors.New("the user has left")
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				var in *idem.Intent
				if keyed {
					in = idem.Open()
					ctx = idem.WithIntent(ctx, in)
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", "http://api/x", strings.NewReader("{}"))
				_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
				e := theError(t, err)
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, context.Canceled)
				require.Zero(t, e.Attempts)
				require.Equal(t, idem.NotExecuted, e.Outcome)
				require.Zero(t, r.count())
			}, created)
		}
	}
}

// No attempt starts after the window less its margin.
func TestTransport_Window(t *testing.T) {
	t.Run("between calls", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			time.Sleep(100 * time.Hour) // an Intent that was not sent does not age
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(23 * time.Hour)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(59 * time.Minute)
			_, _, err = r.post(t.Context(), in, "{}")
			require.ErrorIs(t, err, idem.ErrExpired)
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			require.Equal(t, 2, r.count())
		}, status(501))
	})
	t.Run("in a call", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = 10 * time.Minute
			r.transport.MaxAttempts = 1000
			r.transport.Backoff = idem.Exponential(time.Minute, time.Minute)
			in := idem.Open()
			resp, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			hits := r.all()
			require.Less(t, hits[len(hits)-1].at.Sub(hits[0].at), 8*time.Minute)
			require.Greater(t, len(hits), 7)
			list := in.Attempts()
			require.ErrorIs(t, list[len(list)-1].Reason, idem.ErrExpired)
			require.ErrorIs(t, list[len(list)-1].Reason, idem.ErrWaitTooLong)
			r.oneKey()
		}, status(503))
	})
	t.Run("an attempt ends there", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = time.Minute
			r.transport.AttemptTimeout = -1
			start := time.Now()
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrExpired)
			require.Equal(t, 30*time.Second, time.Since(start), "half of a short window")
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
			require.Equal(t, 1, r.count())
		}, stall)
	})
	t.Run("for ever", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = -1
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(10_000 * time.Hour)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 1, r.done())
		}, created)
	})
}

// Bodies in memory reach Base as net/http knows them, on every attempt.
func TestTransport_BodyInMemoryIsNotWrapped(t *testing.T) {
	virtual(t, func(t *testing.T) {
		for name, body := range map[string]io.Reader{"strings.Reader": strings.NewReader("x"), "bytes.Buffer": bytes.NewBufferString("x"), "stream": newOpaque("x")} {
			seen := 0
			tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
				seen++
				kind := reflect.TypeOf(r.Body)
				assert.Contains(t, []reflect.Type{
					reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(strings.NewReader(""))),
				}, kind, "%s: %v", name, kind)
				assert.EqualValues(t, 1, r.ContentLength, name)
				_, _ = consume(r)
				return reply(r, 503, ""), nil
			})}
			resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", body))
			require.NoError(t, err)
			resp.Body.Close()
			require.Equal(t, 4, seen)
		}
	})
}

// The caller's request is left as it is, on every path.
func TestTransport_RequestUnchanged(t *testing.T) {
	for name, s := range map[string]step{"answered": created, "503": status(503), "drop": drop, "307": moved(307, "/b")} {
		for _, body := range []string{"in memory", "stream", "file"} {
			t.Run(name+", "+body, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					var reader io.Reader = strings.NewReader("hello")
					switch body {
					case "stream":
						reader = newOpaque("hello")
					case "file":
						reader = tempFile(t, []byte("hello"), 0)
					}
					req := keyedPost(t, idem.Open(), "http://u:p@api/x?a=1", reader)
					req.Header.Set("X-A", "b")
					before := *req
					header, u := req.Header.Clone(), *req.URL
					resp, err := r.transport.RoundTrip(req)
					if err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						resp.Request.Header.Set("X-Later", "c")
					}
					require.Equal(t, header, req.Header)
					require.Equal(t, u, *req.URL)
					require.Equal(t, before.ContentLength, req.ContentLength)
					require.Equal(t, before.Body, req.Body)
					require.Equal(t, before.GetBody == nil, req.GetBody == nil)
					require.Equal(t, before.Close, req.Close)
					require.Equal(t, before.Context(), req.Context())
				}, s)
			})
		}
	}
}

// Giving up on one host leaves the pooled connection of another alone.
func TestTransport_GivingUpLeavesOtherHostsAlone(t *testing.T) {
	for name, s := range map[string]step{"503": status(503), "drop": drop, "stall": stall} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.AttemptTimeout = time.Second
				other := r.host("other", created)
				for range 2 {
					_, _, err := r.send(keyedPost(t, idem.Open(), "http://other/x", strings.NewReader("{}")))
					require.NoError(t, err)
					_, _, _ = r.post(t.Context(), idem.Open(), "{}")
				}
				require.Equal(t, 2, other.count())
				require.Same(t, other.all()[0].conn, other.all()[1].conn)
			}, s)
		})
	}
}

// Around is outside, the Intent's own Layer inside, the attempts within both.
func TestTransport_Layers(t *testing.T) {
	named := func(log *[]string, name string) idem.Layer {
		return func(next http.RoundTripper) http.RoundTripper {
			return baseFunc(func(r *http.Request) (*http.Response, error) {
				*log = append(*log, name+" in")
				if idem.AttemptNumber(r.Context()) != 0 {
					*log = append(*log, "inside an attempt")
				}
				resp, err := next.RoundTrip(r)
				*log = append(*log, name+" out")
				return resp, err
			})
		}
	}
	resumed := func(t *testing.T, layer idem.Layer) *idem.Intent {
		t.Helper()
		in, err := idem.Resume(idem.State{Key: "k-1", Since: since()}, layer)
		require.NoError(t, err)
		return in
	}
	t.Run("order", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var log []string
			r.transport.Around = named(&log, "around")
			r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) { log = append(log, fmt.Sprint("attempt ", a.Number)) }
			in := resumed(t, named(&log, "own"))
			resp, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 2, idem.ResultOf(resp).Attempts)
			require.Equal(t, []string{"around in", "own in", "attempt 1", "attempt 2", "own out", "around out"}, log)
			r.oneKey()
		}, status(503), created)
	})
	t.Run("what it sees", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					require.Equal(t, in.Key(), q.Header.Get("Idempotency-Key"))
					got, ok := idem.IntentFromContext(q.Context())
					require.True(t, ok)
					require.Same(t, in, got)
					require.NotEmpty(t, in.State().Fingerprint, "taken before the first send")
					q = q.Clone(q.Context())
					q.Header.Set("X-Trace", "t")
					resp, err := next.RoundTrip(q)
					require.NoError(t, err)
					require.Equal(t, idem.Answered, in.Outcome())
					return resp, nil
				})
			}
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			for _, h := range r.all() {
				require.Equal(t, "t", h.header.Get("X-Trace"), "on every attempt")
			}
			r.oneKey()
		}, status(503), created)
	})
	t.Run("answers without next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			body := newOpaque("{}")
			in := resumed(t, func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) { return reply(q, 201, "stored"), nil })
			})
			resp, text, err := r.send(keyedPost(t, in, "http://api/charges", body))
			require.NoError(t, err)
			require.Equal(t, "stored", text)
			require.Equal(t, idem.Result{Key: "k-1", Status: 201, Outcome: idem.Answered, Replay: idem.Replayed}, idem.ResultOf(resp))
			require.Equal(t, idem.Answered, in.Outcome())
			require.Empty(t, in.Attempts())
			require.Zero(t, r.count())
			closedOnce(t, body, "not sent")
		}, created)
	})
	t.Run("fails without next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			body := newOpaque("{}")
			in := idem.Open()
			r.transport.Around = func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(*http.Request) (*http.Response, error) { return nil, errDisk })
			}
			_, _, err := r.send(keyedPost(t, in, "http://api/charges", body))
			e := theError(t, err)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, idem.NotExecuted, e.Outcome)
			require.Equal(t, in.Key(), e.Key)
			require.Zero(t, e.Attempts)
			require.Zero(t, r.count())
			closedOnce(t, body, "not sent")
		}, created)
	})
	t.Run("fails after next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			counted := &closes{RoundTripper: r.base}
			r.transport.Base = counted
			in := idem.Open()
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(q)
					require.NoError(t, err)
					return resp, errDisk // both: the error counts
				})
			}
			resp, err := r.transport.RoundTrip(keyedPost(t, in, "http://api/charges", strings.NewReader("{}"))) //nolint:bodyclose // there is none
			require.Nil(t, resp)
			e := theError(t, err)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, idem.Answered, e.Outcome)
			require.Equal(t, 201, e.Status)
			require.Equal(t, 1, e.Attempts)
			require.Equal(t, counted.out.Load(), counted.closed.Load())
		}, created)
	})
	t.Run("both nil", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(*http.Request) (*http.Response, error) { return nil, nil })
			}
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		}, created)
	})
	t.Run("next's error is one of ours", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(q)
					require.Nil(t, resp)
					require.Equal(t, 3, theError(t, err).Attempts)
					return nil, fmt.Errorf("span: %w", err)
				})
			}
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			require.ErrorIs(t, err, idem.ErrExhausted)
		}, lost)
	})
	t.Run("unkeyed requests pass Around as well", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var log []string
			r.transport.Around = named(&log, "around")
			_, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Len(t, log, 2)
		}, created)
	})
	t.Run("a Layer cannot change the key", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					q = q.Clone(q.Context())
					q.Header.Set("Idempotency-Key", "other")
					q.Header["idempotency-key"] = []string{"third"}
					return next.RoundTrip(q)
				})
			}
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, []string{in.Key()}, r.all()[0].keys)
			r.oneKey()
		}, status(503), created)
	})
	t.Run("its deadline bounds the attempts", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					ctx, cancel := context.WithTimeout(q.Context(), time.Second)
					defer cancel()
					return next.RoundTrip(q.WithContext(ctx))
				})
			}
			start := time.Now()
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			e := theError(t, err)
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
			require.LessOrEqual(t, time.Since(start), 2*time.Second, "a layer's context that is done is not tried again")
		}, stall)
	})
}

func TestTransport_AttemptNumber(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		require.Zero(t, idem.AttemptNumber(t.Context()))
		var numbers []int
		r.transport.Base = baseFunc(func(q *http.Request) (*http.Response, error) {
			numbers = append(numbers, idem.AttemptNumber(q.Context()))
			return r.base.RoundTrip(q)
		})
		_, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, numbers)
	}, status(503), status(503), created)
	t.Run("one Transport below another", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			inner := r.transport
			r.transport = &idem.Transport{Base: inner, MaxAttempts: 3, Backoff: idem.Exponential(time.Millisecond, time.Millisecond)}
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 3, r.count(), "hits add, they do not multiply")
			require.Equal(t, 3, idem.ResultOf(resp).Attempts)
			r.oneKey()
		}, status(503))
	})
}

func TestTransport_OnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		type key struct{}
		in := idem.Open()
		var list []idem.Attempt
		var when []time.Time
		r.transport.OnAttempt = func(ctx context.Context, a idem.Attempt) {
			require.Equal(t, "mine", ctx.Value(key{}))
			list, when = append(list, a), append(when, time.Now())
		}
		start := time.Now()
		resp, _, err := r.post(context.WithValue(t.Context(), key{}, "mine"), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Len(t, list, 3)
		require.Equal(t, in.Attempts(), list)
		require.Equal(t, start, when[0], "before the wait")
		for i, a := range list {
			require.Equal(t, i+1, a.Number)
			require.Equal(t, 1, a.Call)
			require.Equal(t, "POST", a.Method)
			require.Equal(t, "api", a.Host)
			require.Equal(t, 1, a.Sends)
			require.Equal(t, i < 2, a.Retry)
			require.Equal(t, i < 2, a.Wait > 0)
			require.NoError(t, a.Reason)
		}
		require.Equal(t, 503, list[0].Status)
		require.NoError(t, list[0].Err)
		require.Equal(t, 429, list[1].Status)
		require.Equal(t, idem.Replayed, list[2].Replay)
		require.Equal(t, idem.Answered, list[2].Outcome)
		require.GreaterOrEqual(t, list[1].Start.Sub(list[0].Start), list[0].Wait)
	}, status(503), status(429), statusBody(201, "{}", "Idempotent-Replayed", "true"))
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var hook told
			r.transport.OnAttempt = hook.hook
			_, _, err := r.post(t.Context(), nil, "{}")
			require.Error(t, err)
			require.Len(t, hook.all(), 1)
			require.ErrorIs(t, hook.all()[0].Reason, idem.ErrNotRepeatable)
			require.Equal(t, idem.OutcomeUnknown, hook.all()[0].Outcome)
		}, lost)
	})
}

// No goroutine is left after any kind of call.
func TestTransport_NoGoroutineLeft(t *testing.T) {
	for name, s := range map[string]step{"answered": created, "503": status(503), "drop": drop, "stall": stall, "cut": cut(1, 10)} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			bubble(t, func(t *testing.T, r *rig) { // the bubble itself fails if one is left
				r.transport.AttemptTimeout = time.Second
				for range 5 {
					_, _, _ = r.post(t.Context(), idem.Open(), "{}")
					req := keyedPost(t, idem.Open(), "http://api/x", newOpaque("{}"))
					req.Cancel = make(chan struct{}) //nolint:staticcheck // still in use
					_, _, _ = r.send(req)
				}
			}, s)
			require.LessOrEqual(t, runtime.NumGoroutine(), before+2)
		})
	}
}

// A caller's own deadline is not an attempt's: it is not tried again.
func TestTransport_CallerDeadline(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *rig) {
			if h2 {
				r.base.Protocols = new(http.Protocols)
				r.base.Protocols.SetUnencryptedHTTP2(true)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			in := idem.Open()
			_, _, err := r.post(ctx, in, "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, e.Timeout())
			require.Equal(t, 1, r.count())
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		}, stall)
	}
}

// Many calls through one http.Client at once, each answered by another fault.
func TestTransport_Concurrent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var n atomic.Int32
		faults := []step{drop, status(503), lost, cut(3, 50), status(429), created, created, raw("HTTP/1.1 2"), status(409)}
		r := newRig(t, func(s *server, w http.ResponseWriter, q *http.Request, h hit) {
			faults[int(n.Add(1))%len(faults)](s, w, q, h)
		})
		r.transport.MaxAttempts = 30
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, fmt.Sprint(i))
				if assert.NoError(t, err) {
					assert.Equal(t, 201, resp.StatusCode)
					assert.Equal(t, idem.Answered, in.Outcome())
				}
			})
		}
		wg.Wait()
		require.Equal(t, 100, r.done())
	})
}
