package idem_test

import (
	"bufio"
	"bytes"
	"context"
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
				w.Header().Set("Content-Type", "application/json") // says nothing of what comes after the upgrade
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

// What net/http finds wrong with a request only when it has a connection is no
// better the next time either.
func TestTransport_RefusedWithAConnection(t *testing.T) {
	for name, c := range map[string]struct {
		two    bool // on HTTP/2
		change func(*http.Request)
	}{
		"Host":                     {false, func(r *http.Request) { r.Host = "xn--a\x80" }},
		"URL":                      {false, func(r *http.Request) { r.URL.RawQuery = "SECRET\n" }},
		"trailer":                  {false, func(r *http.Request) { r.Trailer, r.ContentLength = http.Header{"Content-Length": {"1"}}, -1 }},
		"HTTP/2 Host":              {true, func(r *http.Request) { r.Host = "a b" }},
		"HTTP/2 Host, IDNA":        {true, func(r *http.Request) { r.Host = "xn--a\x80" }},
		"HTTP/2 Connection":        {true, func(r *http.Request) { r.Header.Set("Connection", "SECRET") }},
		"HTTP/2 Upgrade":           {true, func(r *http.Request) { r.Header.Set("Upgrade", "SECRET") }},
		"HTTP/2 Transfer-Encoding": {true, func(r *http.Request) { r.Header.Set("Transfer-Encoding", "SECRET") }},
		"HTTP/2 path":              {true, func(r *http.Request) { r.URL.Opaque = "//other/a?key=SECRET" }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.base.Protocols = new(http.Protocols)
				r.base.Protocols.SetHTTP1(!c.two)
				r.base.Protocols.SetUnencryptedHTTP2(c.two)
				in := idem.Open()
				req := keyedPost(t, in, "http://api/x", strings.NewReader("hello"))
				c.change(req)
				_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
				e := theError(t, err)
				require.Equal(t, 1, e.Attempts)
				require.Equal(t, idem.NotExecuted, e.Outcome)
				require.Equal(t, idem.NotExecuted, in.Outcome())
				require.Zero(t, r.count())
				require.NotContains(t, e.Error(), "SECRET")
			}, created)
		})
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

// An address that no dialer takes stays so: it is not asked for again. A name that
// has no address for the network at hand may get one.
func TestTransport_RefusedAddress(t *testing.T) {
	dialer := func(reason string) func(context.Context, string, string) (net.Conn, error) {
		return func(_ context.Context, network, addr string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: reason, Addr: addr}}
		}
	}
	for name, c := range map[string]struct {
		host     string
		dial     func(context.Context, string, string) (net.Conn, error)
		attempts int
	}{
		"port too large":  {"127.0.0.1:70000", (&net.Dialer{}).DialContext, 1},
		"bracket":         {"[[::1]:80", (&net.Dialer{}).DialContext, 1},
		"no such address": {"api", dialer("no suitable address found"), 3},
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %v", name, keyed), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.base.DialContext = c.dial
					var in *idem.Intent
					if keyed {
						in = idem.Open()
					}
					req := keyedPost(t, in, "http://api/x", strings.NewReader("hello"))
					req.URL.Host = c.host
					_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
					e := theError(t, err)
					require.Equal(t, c.attempts, e.Attempts, err)
					require.Equal(t, idem.NotExecuted, e.Outcome)
				}, created)
			})
		}
	}
}

// What net/http says of a proxy's address that is none quotes all of it, password
// and all; and it says so before anything is sent.
func TestTransport_RefusedProxy(t *testing.T) {
	address := "http://user:SECRET@proxy:" + strings.Repeat("x", 2)
	_, fault := url.Parse(address)
	require.Error(t, fault)
	for _, keyed := range []bool{true, false} {
		bubble(t, func(t *testing.T, r *rig) {
			r.base.Proxy = func(*http.Request) (*url.URL, error) {
				return nil, fmt.Errorf("invalid proxy address %q: %v", address, fault) //nolint:errorlint // as golang.org/x/net/http/httpproxy does
			}
			var in *idem.Intent
			if keyed {
				in = idem.Open()
			}
			_, _, err := r.post(t.Context(), in, "hello")
			e := theError(t, err)
			require.Equal(t, 1, e.Attempts)
			require.Zero(t, e.Sends)
			require.Equal(t, idem.NotExecuted, e.Outcome)
			require.ErrorContains(t, e, "invalid proxy address")
			require.NotContains(t, err.Error(), "SECRET")
		}, created)
	}
}

// A key that the caller has put on a request is not taken off in silence: a method
// in lower case is a typing error, as it is under an Intent.
func TestTransport_KeyHeaderOnMethodInLowerCase(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		req, err := http.NewRequestWithContext(t.Context(), "post", "http://api/x", strings.NewReader("hello"))
		require.NoError(t, err)
		req.Header.Set("Idempotency-Key", "k1")
		_, _, err = r.send(req)
		require.ErrorContains(t, err, "not in upper case")
		require.Zero(t, r.count())

		for _, none := range [][]string{nil, {}, {""}} {
			req.Header["Idempotency-Key"] = none
			req.Body = io.NopCloser(strings.NewReader("hello"))
			_, _, err = r.send(req)
			require.NoError(t, err)
		}
		require.Equal(t, 3, r.count())
	}, created)
}
