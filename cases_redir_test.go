package idem_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// moved redirects, without doing anything.
func moved(code int, location string) step {
	return status(code, "Location", location)
}

// google/go-github#4190
func TestCase_REDIR_1(t *testing.T) {
	credential := func(c *idem.Config) {
		c.Header = http.Header{"Authorization": {"Bearer SECRET"}, "Cookie": {"s=SECRET"}}
	}
	t.Run("keyed write", func(t *testing.T) {
		// A hop of a keyed write to another origin is refused before the network.
		bubble(t, func(t *testing.T, r *rig) {
			other := r.host("other", created)
			in := idem.Open()
			res, err := r.api(t, credential).Call(t.Context(), in, "POST", "/charges", 1, nil)
			require.ErrorIs(t, err, idem.ErrCrossOrigin)
			require.Equal(t, idem.OutcomeUnknown, res.Outcome)
			require.Equal(t, 1, r.count())
			require.Zero(t, other.count())
			r.oneKey()
		}, moved(307, "http://other/charges"))
	})
	t.Run("GET", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			other := r.host("other", status(503), statusBody(200, "{}"))
			_, err := r.api(t, credential).Call(t.Context(), nil, "GET", "/charges", nil, nil)
			require.NoError(t, err)
			require.Equal(t, 2, other.count())
			for _, h := range other.all() {
				require.Empty(t, h.header["Authorization"])
				require.Empty(t, h.header["Cookie"])
			}
			require.Equal(t, "Bearer SECRET", r.all()[0].header.Get("Authorization"))
		}, moved(302, "http://other/charges"))
	})
}

// go-resty/resty#1128. The rule for the key: a keyed write does not go to
// another origin at all.
func TestCase_REDIR_2(t *testing.T) {
	for _, code := range []int{307, 308} {
		for _, adopted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, adopted %v", code, adopted), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					other := r.host("other", created)
					var in *idem.Intent
					if !adopted {
						in = idem.Open()
					}
					req := keyedPost(t, in, "http://api/charges", strings.NewReader("{}"))
					if adopted {
						req.Header.Set("Idempotency-Key", "mine-1")
					}
					req.Header.Set("X-Api-Key", "SECRET")
					_, _, err := r.send(req)
					e := theError(t, err)
					require.ErrorIs(t, err, idem.ErrCrossOrigin)
					require.Contains(t, e.Error(), "http://api")
					require.Contains(t, e.Error(), "http://other")
					require.Equal(t, idem.OutcomeUnknown, e.Outcome, "the first host may have done it")
					require.Equal(t, 1, e.Attempts)
					require.Equal(t, 1, r.count())
					require.Zero(t, other.count())
					r.oneKey()
				}, moved(code, "http://other/charges"))
			})
		}
	}
	t.Run("through a GET-like detour and back", func(t *testing.T) {
		// api → api → other: the second hop counts, whatever was between.
		bubble(t, func(t *testing.T, r *rig) {
			other := r.host("other", moved(307, "http://api/c"))
			in := idem.Open()
			_, _, err := r.send(keyedPost(t, in, "http://api/a", strings.NewReader("{}")))
			require.ErrorIs(t, err, idem.ErrCrossOrigin)
			require.Equal(t, 2, r.count())
			require.Zero(t, other.count())
			require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			r.oneKey()
		}, moved(307, "/b"), moved(308, "http://other/b"), created)
	})
	t.Run("unkeyed write", func(t *testing.T) {
		// No key, no rule of ours: as net/http does, and no key is made up.
		bubble(t, func(t *testing.T, r *rig) {
			other := r.host("other", created)
			resp, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Empty(t, other.all()[0].keys)
		}, moved(307, "http://other/charges"))
	})
}

// parnurzeal/gorequest#298. Origin is scheme, host and port.
func TestCase_REDIR_3(t *testing.T) {
	for location, same := range map[string]bool{
		"http://api:8080/b":  false,
		"https://api/b":      false,
		"http://sub.api/b":   false,
		"http://api.:80/b":   false,
		"http://api:80/b":    true,
		"http://API/b":       true,
		"HTTP://api/b":       true,
		"//api/b":            true,
		"/b":                 true,
		"?b":                 true,
		"http://u:p@api/b":   true,
		"http://api@other/b": false,
	} {
		t.Run(location, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				other := r.host("other", created)
				r.alias("other", "api:8080")
				r.alias("other", "sub.api:80")
				r.alias("other", "api:443")
				r.alias("other", "api.:80")
				r.alias("api", "API:80")
				in := idem.Open()
				resp, _, err := r.send(keyedPost(t, in, "http://api/a", strings.NewReader("{}")))
				require.Zero(t, other.count())
				r.oneKey()
				if !same {
					require.ErrorIs(t, err, idem.ErrCrossOrigin)
					require.Equal(t, 1, r.count())
					require.NotContains(t, theError(t, err).Error(), "u:p")
					return
				}
				require.NoError(t, err)
				require.Equal(t, 201, resp.StatusCode)
				require.Equal(t, 2, r.count())
				require.Equal(t, idem.Answered, in.Outcome())
			}, moved(308, location), created)
		})
	}
}

// projectdiscovery/retryablehttp-go#493
func TestCase_REDIR_4(t *testing.T) {
	text := `{"amount":"` + strings.Repeat("4", 5000) + `"}`
	for _, code := range []int{307, 308} {
		t.Run(fmt.Sprintf("Call, %d", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/charges", map[string]string{"amount": strings.Repeat("4", 5000)}, nil)
				require.NoError(t, err)
				require.Equal(t, 201, res.Status)
				require.Equal(t, 2, res.Attempts)
				require.Equal(t, idem.Answered, res.Outcome)
				require.Equal(t, 2, r.count())
				require.Equal(t, text, r.all()[1].body)
				require.Equal(t, "/v2/charges", r.all()[1].path)
				r.oneKey()
			}, moved(code, "/v2/charges"), created)
		})
		t.Run(fmt.Sprintf("retried before and after, %d", code), func(t *testing.T) {
			// The hops share the attempts of the call.
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 4
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/charges", "x", nil)
				require.NoError(t, err)
				require.Equal(t, 4, res.Attempts)
				require.Equal(t, 4, r.count())
				r.oneKey()
				for i, a := range in.Attempts() {
					require.Equal(t, i+1, a.Number)
				}
			}, status(503), moved(code, "/b"), status(503), created)
		})
		t.Run(fmt.Sprintf("attempts used up on the second hop, %d", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/charges", "x", nil)
				require.ErrorIs(t, err, idem.ErrExhausted)
				require.Equal(t, 3, res.Attempts)
				require.Equal(t, 3, r.count())
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
				r.oneKey()
			}, status(503), moved(code, "/b"), status(503), status(503), created)
		})
		t.Run(fmt.Sprintf("a body without GetBody, %d", code), func(t *testing.T) {
			// http.Client does not follow then: the redirect is handed over, and
			// is no answer.
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				body := newOpaque("hello")
				resp, err := r.api(t).Do(in, keyedPost(t, nil, "http://api/a", body))
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
				require.Equal(t, 1, r.count())
				closedOnce(t, body, "stream")
			}, moved(code, "/b"), created)
		})
		t.Run(fmt.Sprintf("the second hop is cut off, %d", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 2
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/charges", "x", nil)
				theError(t, err)
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
				require.Equal(t, idem.OutcomeUnknown, in.Outcome())
				r.oneKey()
			}, moved(code, "/b"), lost)
		})
	}
	t.Run("the next call begins at the first URL again", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in, c := idem.Open(), r.api(t)
			for range 2 {
				_, err := c.Call(t.Context(), in, "POST", "/a", "x", nil)
				require.NoError(t, err)
			}
			require.Equal(t, 4, r.count())
			require.Equal(t, 1, r.done())
			r.oneKey()
		}, moved(307, "/b"), created, moved(307, "/b"), created)
	})
}

// golang/go#70180
func TestCase_REDIR_5(t *testing.T) {
	for _, code := range []int{301, 302, 303} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, text, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, "page", text)
				hits := r.all()
				require.Len(t, hits, 3)
				require.Equal(t, "POST", hits[0].method)
				require.Len(t, hits[0].keys, 1)
				for _, h := range hits[1:] {
					require.Equal(t, "GET", h.method)
					require.Empty(t, h.keys)
					require.Empty(t, h.body)
					require.Equal(t, "/done", h.path)
				}
				require.Equal(t, idem.OutcomeUnknown, in.Outcome(), "a GET is not the answer of the write")
				require.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			}, moved(code, "/done"), drop, statusBody(200, "page"))
		})
		t.Run(fmt.Sprintf("%d, key header of the caller", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				req := keyedPost(t, nil, "http://api/a", strings.NewReader("{}"))
				req.Header.Set("Idempotency-Key", "mine-1")
				_, _, err := r.send(req)
				require.NoError(t, err)
				require.Equal(t, "GET", r.all()[1].method)
				require.Empty(t, r.all()[1].keys, "a GET never carries the key")
			}, moved(code, "/done"), statusBody(200, "page"))
		})
		t.Run(fmt.Sprintf("%d to another origin", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				other := r.host("other", statusBody(200, "page"))
				_, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, "GET", other.all()[0].method)
				require.Empty(t, other.all()[0].keys)
				require.Empty(t, other.all()[0].body)
			}, moved(code, "http://other/done"))
		})
	}
}

// ClickHouse/ClickHouse#58967
func TestCase_REDIR_6(t *testing.T) {
	loop := moved(307, "/a")
	t.Run("http.Client", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 30
			in := idem.Open()
			_, _, err := r.send(keyedPost(t, in, "http://api/a", strings.NewReader("{}")))
			require.ErrorContains(t, err, "10 redirects")
			require.Equal(t, 10, r.count())
			require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			r.oneKey()
		}, loop)
	})
	t.Run("Client", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 30
			in := idem.Open()
			res, err := r.api(t).Call(t.Context(), in, "POST", "/a", "x", nil)
			require.ErrorContains(t, err, "10 redirects")
			require.Equal(t, 10, r.count())
			require.Equal(t, idem.OutcomeUnknown, res.Outcome)
			require.Equal(t, 10, res.Attempts)
			require.Equal(t, in.Key(), res.Key)
			r.oneKey()
		}, loop)
	})
	t.Run("GET", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), nil, "GET", "/a", nil, nil)
			theError(t, err)
			require.Equal(t, 10, r.count())
		}, loop)
	})
	t.Run("more hops than attempts", func(t *testing.T) {
		// Following is not repeating: three attempts do not end five hops.
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.send(keyedPost(t, idem.Open(), "http://api/a", strings.NewReader("{}")))
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, 6, r.count())
			r.oneKey()
		}, loop, loop, loop, loop, loop, created)
	})
}
