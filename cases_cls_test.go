package idem_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/require"
)

// hashicorp/go-retryablehttp#76
func TestCase_CLS_2(t *testing.T) {
	for name, u := range map[string]*url.URL{
		"ftp":               {Scheme: "ftp", Host: "h", Path: "/"},
		"no scheme":         {Host: "h", Path: "/"},
		"no host":           {Scheme: "http", Path: "/x"},
		"https, no host":    {Scheme: "https", Path: "/x"},
		"mailto":            {Scheme: "mailto", Opaque: "a@b"},
		"control byte":      {Scheme: "http", Host: "h\x00", Path: "/"},
		"line break":        {Scheme: "http", Host: "h\r\nX-A: b", Path: "/"},
		"space":             {Scheme: "http", Host: "a b", Path: "/"},
		"port not a number": {Scheme: "http", Host: "api:http:80", Path: "/"},
		"port too large":    {Scheme: "http", Host: "127.0.0.1:70000", Path: "/"},
		"opaque":            {Scheme: "ftp", Opaque: "//h/x"},
		"nil":               nil,
	} {
		for _, keyed := range []bool{true, false} {
			for _, through := range []string{"Transport", "http.Client"} {
				t.Run(fmt.Sprintf("%s, keyed %v, %s", name, keyed, through), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						if name == "port too large" {
							r.base.DialContext = (&net.Dialer{}).DialContext
						}
						var in *idem.Intent
						if keyed {
							in = idem.Open()
						}
						body := newOpaque("{}")
						req := keyedPost(t, in, "http://api/", body)
						req.URL, req.Host = u, ""
						start := time.Now()
						var err error
						if through == "Transport" {
							_, err = r.transport.RoundTrip(req) //nolint:bodyclose // there is none
						} else {
							_, err = r.client().Do(req) //nolint:bodyclose // there is none
						}
						require.Error(t, err)
						require.Zero(t, r.count())
						closedOnce(t, body, name)
						if keyed {
							require.Equal(t, idem.NotExecuted, in.Outcome())
						}
						if through == "http.Client" && (name == "nil" || name == "no host" || name == "https, no host") {
							return // refused by http.Client itself
						}
						e := theError(t, err)
						require.Equal(t, idem.NotExecuted, e.Outcome)
						if name != "port too large" && name != "port not a number" { // these reach the dialer
							require.Less(t, time.Since(start), 10*time.Millisecond+20*time.Millisecond)
							require.LessOrEqual(t, e.Attempts, 1)
						}
					}, created)
				})
			}
		}
	}
}

// hashicorp/go-retryablehttp#175. 508 is permanent, too: a loop does not go away.
func TestCase_CLS_3(t *testing.T) {
	for _, code := range []int{501, 505, 506, 508, 510, 511} {
		for _, method := range []string{"POST", "PUT", "GET"} {
			t.Run(fmt.Sprint(method, code), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					in := idem.Open()
					req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), method, "http://api/x", strings.NewReader("{}"))
					require.NoError(t, err)
					resp, _, err := r.send(req)
					require.NoError(t, err)
					require.Equal(t, code, resp.StatusCode)
					require.Equal(t, 1, r.count())
					if method != "GET" {
						require.Equal(t, idem.OutcomeUnknown, in.Outcome(), "a 5xx says nothing about the work")
						r.oneKey()
					}
				}, status(code), created)
			})
		}
	}
}

// margince/margince#2906
func TestCase_CLS_4(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		resp, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, 501, resp.StatusCode)
		require.Equal(t, 1, r.count())
		require.Zero(t, time.Since(start))
	}, status(501, "Retry-After", "1"), created)
}

// knative/specs#96
func TestCase_CLS_5(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		resp, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, 2, r.count())
		require.Equal(t, 2, r.dials())
		require.NotSame(t, r.all()[0].conn, r.all()[1].conn)
		r.oneKey()
	}, status(408, "Connection", "close"), created)
	t.Run("without close", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 2, r.count())
			r.oneKey()
		}, status(408), created)
	})
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Equal(t, 408, resp.StatusCode)
			require.Equal(t, 1, r.count())
		}, status(408), created)
	})
}

// sourcegraph/sourcegraph-public-snapshot#23460. A name that does not exist is
// tried three times; other faults of the resolver as often as anything.
func TestCase_CLS_6(t *testing.T) {
	for name, c := range map[string]struct {
		err   *net.DNSError
		tries int
	}{
		"not found": {&net.DNSError{Err: "no such host", Name: "name.invalid", IsNotFound: true}, 3},
		"temporary": {&net.DNSError{Err: "server misbehaving", Name: "name.invalid", IsTemporary: true}, 20},
		"timed out": {&net.DNSError{Err: "i/o timeout", Name: "name.invalid", IsTimeout: true}, 20},
	} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %v", name, keyed), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					tries := 0
					r.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
						tries++
						return nil, &net.OpError{Op: "dial", Net: "tcp", Err: c.err}
					}
					r.transport.MaxAttempts = 20
					var in *idem.Intent
					if keyed {
						in = idem.Open()
					}
					_, _, err := r.send(keyedPost(t, in, "http://name.invalid/", strings.NewReader("{}")))
					e := theError(t, err)
					var dns *net.DNSError
					require.ErrorAs(t, err, &dns)
					require.Equal(t, c.tries, tries)
					require.Equal(t, c.tries, e.Attempts)
					require.Zero(t, e.Sends)
					require.Equal(t, idem.NotExecuted, e.Outcome)
					require.Contains(t, e.Error(), "never sent")
				})
			})
		}
	}
}

// stripe/stripe-go#954
func TestCase_CLS_7(t *testing.T) {
	for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry", "x-should-retry"} {
		for _, c := range []struct {
			code int
			say  string
			hits int
		}{{500, "false", 1}, {503, "false", 1}, {429, "false", 1}, {409, "false", 1}, {400, "true", 2}, {501, "true", 2}, {404, "true", 2}, {422, "true", 1}, {500, "maybe", 2}, {500, "", 2}} {
			t.Run(fmt.Sprint(name, c.code, c.say), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					resp, _, err := r.post(t.Context(), idem.Open(), "{}")
					require.NoError(t, err)
					require.Equal(t, c.hits, r.count())
					if c.hits == 1 {
						require.Equal(t, c.code, resp.StatusCode)
					}
					r.oneKey()
				}, status(c.code, name, c.say), created)
			})
		}
	}
	t.Run("switched off", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Hints = []contract.Hint{}
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 2, r.count())
		}, status(500, "X-Should-Retry", "false"), created)
	})
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Equal(t, 1, r.count(), "advice does not make a write without a key repeatable")
		}, status(500, "X-Should-Retry", "true"), created)
	})
}

// stripe/stripe-php#447
func TestCase_CLS_8(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, 3, r.count())
		require.Equal(t, 1, r.done())
		r.oneKey()
		list := in.Attempts()
		require.Equal(t, idem.NotExecuted, list[0].Outcome)
		require.Equal(t, idem.NotExecuted, list[1].Outcome)
		require.Equal(t, idem.Answered, list[2].Outcome)
	}, status(429), status(429), created)
	t.Run("stored all the same", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 429, resp.StatusCode)
			require.Equal(t, 2, r.count(), "a stored answer does not change")
			require.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
			r.oneKey()
		}, status(429), status(429, "Idempotent-Replayed", "true"))
	})
}

// stripe/stripe-go#1829
func TestCase_CLS_9(t *testing.T) {
	for _, code := range []int{500, 502, 503, 504, 507, 520, 599} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, 2, r.count())
				r.oneKey()
			}, status(code), status(200))
		})
		t.Run(fmt.Sprintf("%d marked as a replay", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, 1, r.count())
				require.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
				require.NotEqual(t, idem.NotExecuted, in.Outcome())
			}, status(code, "Idempotent-Replayed", "true"), status(200))
		})
		t.Run(fmt.Sprintf("%d, unkeyed POST and PUT", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, _, err := r.post(t.Context(), nil, "{}")
				require.NoError(t, err)
				require.Equal(t, 1, r.count())
			}, status(code), status(200))
			bubble(t, func(t *testing.T, r *rig) {
				req, _ := http.NewRequest(http.MethodPut, "http://api/x", strings.NewReader("{}"))
				resp, _, err := r.send(req)
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, 2, r.count())
			}, status(code), status(200))
		})
	}
}

// inyutin/aiohttp_retry#42. The list is the contract's Answers.
func TestCase_CLS_10(t *testing.T) {
	only503 := []contract.Match{{Status: 503, Means: contract.Transient}, {Means: contract.Final}}
	for code, hits := range map[int]int{500: 1, 502: 1, 504: 1, 429: 1, 409: 1, 408: 1, 422: 1, 400: 1, 503: 2} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Contract.Answers = only503
				resp, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, hits, r.count())
				if hits == 1 {
					require.Equal(t, code, resp.StatusCode)
				}
				r.oneKey()
			}, status(code), created)
		})
	}
}
