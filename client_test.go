package idem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

func TestCall_Refusals(t *testing.T) {
	var ctx context.Context
	for name, call := range map[string]func(*idem.Client, *idem.Intent) (idem.Result, error){
		"method and path swapped": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "/charges", "POST", 1, nil)
		},
		"no method": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "", "/charges", 1, nil)
		},
		"bad method": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "PO ST", "/charges", 1, nil)
		},
		"no path": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "", 1, nil)
		},
		"path without a slash": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "charges", 1, nil)
		},
		"whole URL": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "http://evil/charges", 1, nil)
		},
		"another host": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "//evil/charges", 1, nil)
		},
		"userinfo only": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "//u@/charges", 1, nil)
		},
		"fragment": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "/charges#f", 1, nil)
		},
		"bad escape": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "/%zz", 1, nil)
		},
		"control byte": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "/a\n", 1, nil)
		},
		"control byte in the query": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), in, "POST", "/a?b=\r\nX: y", 1, nil)
		},
		"nil context": func(c *idem.Client, in *idem.Intent) (idem.Result, error) {
			return c.Call(ctx, in, "POST", "/a", 1, nil)
		},
		"zero Client": func(_ *idem.Client, in *idem.Intent) (idem.Result, error) {
			return new(idem.Client).Call(context.Background(), in, "POST", "/a", 1, nil)
		},
		"zero Intent": func(c *idem.Client, _ *idem.Intent) (idem.Result, error) {
			return c.Call(context.Background(), new(idem.Intent), "POST", "/a", 1, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				res, err := call(r.api(t), in)
				e := theError(t, err)
				require.Equal(t, idem.NotExecuted, res.Outcome)
				require.Equal(t, e.Result, res)
				require.Zero(t, res.Attempts)
				require.Zero(t, r.count())
				require.Contains(t, e.Error(), "never sent")
				require.Equal(t, idem.NotExecuted, in.Outcome())
			}, created)
		})
	}
}

// A nil Intent for a write: ErrNoIntent, and nothing is sent.
func TestCall_NilIntent(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE", "post", "Post"} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), nil, method, "/x", 1, nil)
				require.ErrorIs(t, err, idem.ErrNoIntent)
				require.Equal(t, idem.NotExecuted, res.Outcome)
				require.Zero(t, r.count())
				body := newOpaque("x")
				req, _ := http.NewRequest(method, "http://api/x", body)
				_, err = r.api(t).Do(nil, req) //nolint:bodyclose // there is none
				require.ErrorIs(t, err, idem.ErrNoIntent)
				require.Zero(t, r.count())
				closedOnce(t, body, method)
			}, created)
		})
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		for _, in := range []*idem.Intent{nil, idem.Open()} {
			t.Run(fmt.Sprint(method, in), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					res, err := r.api(t).Call(t.Context(), in, method, "/x", nil, nil)
					require.NoError(t, err)
					require.Empty(t, r.all()[0].keys)
					require.Empty(t, res.Key)
				}, status(200))
			})
		}
	}
	t.Run("an Intent in the context does not count", func(t *testing.T) {
		// The parameter says it, so that it is seen where the call is made.
		bubble(t, func(t *testing.T, r *rig) {
			ctx := idem.WithIntent(t.Context(), idem.Open())
			_, err := r.api(t).Call(ctx, nil, "POST", "/x", 1, nil)
			require.ErrorIs(t, err, idem.ErrNoIntent)
			require.Zero(t, r.count())
			in := idem.Open()
			res, err := r.api(t).Call(ctx, in, "POST", "/x", 1, nil)
			require.NoError(t, err)
			require.Equal(t, in.Key(), res.Key)
		}, created)
	})
}

// 301, 302 and 303 are not followed from a keyed write; they are no answer.
// 307 and 308 are followed within the origin. A GET follows all.
func TestCall_Redirects(t *testing.T) {
	for _, code := range []int{301, 302, 303} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			t.Run(fmt.Sprint(method, code), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					in := idem.Open()
					res, err := r.api(t).Call(t.Context(), in, method, "/a", 1, nil)
					e := theError(t, err)
					require.Equal(t, code, res.Status)
					require.Equal(t, 1, r.count())
					require.Equal(t, idem.OutcomeUnknown, res.Outcome)
					require.Equal(t, idem.OutcomeUnknown, in.Outcome())
					require.Equal(t, "/b", e.Header.Get("Location"))
					require.Equal(t, in.Key(), res.Key)
				}, moved(code, "/b"), created)
			})
		}
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint("GET ", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), nil, "GET", "/a", nil, nil)
				require.NoError(t, err)
				require.Equal(t, 200, res.Status)
				require.Equal(t, 2, r.count())
			}, moved(code, "/b"), status(200))
		})
	}
	for _, code := range []int{307, 308} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			t.Run(fmt.Sprint(method, code), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					res, err := r.api(t).Call(t.Context(), idem.Open(), method, "/a", 1, nil)
					require.NoError(t, err)
					require.Equal(t, idem.Answered, res.Outcome)
					require.Equal(t, 2, r.count())
					require.Equal(t, method, r.all()[1].method)
					r.oneKey()
				}, moved(code, "/b"), created)
			})
		}
		t.Run(fmt.Sprint("to another origin ", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				other := r.host("other", created)
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/a", 1, nil)
				e := theError(t, err)
				require.ErrorIs(t, err, idem.ErrCrossOrigin)
				require.Zero(t, other.count())
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
				require.Equal(t, in.Key(), res.Key)
				require.Equal(t, 1, res.Attempts)
				require.Equal(t, 1, res.Sends)
				require.NotContains(t, e.Error(), "not sent:")
			}, moved(code, "http://other/b"))
		})
		t.Run(fmt.Sprint("without a Location ", code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/a", 1, nil)
				theError(t, err)
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
				require.Equal(t, 1, r.count())
			}, status(code))
		})
	}
}

func TestDo(t *testing.T) {
	t.Run("an answer of any status is no error", func(t *testing.T) {
		for _, code := range []int{200, 302, 404, 422, 503} {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				req, _ := http.NewRequest("POST", "http://api/a", strings.NewReader("hello"))
				resp, err := r.api(t).Do(in, req)
				require.NoError(t, err)
				defer resp.Body.Close()
				data, _ := io.ReadAll(resp.Body)
				require.Equal(t, "why", string(data))
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, in.Key(), idem.ResultOf(resp).Key)
				_, has := idem.IntentFromContext(req.Context())
				require.False(t, has, "the caller's request is left as it is")
				require.Empty(t, req.Header)
			}, statusBody(code, "why"))
		}
	})
	t.Run("does not use BaseURL and Header", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			other := r.host("other", created)
			c := r.api(t, func(cfg *idem.Config) { cfg.Header = http.Header{"X-A": {"a"}} })
			resp, err := c.Do(idem.Open(), keyedPost(t, nil, "http://other/a", strings.NewReader("x")))
			require.NoError(t, err)
			resp.Body.Close()
			require.Empty(t, other.all()[0].header["X-A"])
		}, created)
	})
	t.Run("refusals", func(t *testing.T) {
		body := newOpaque("x")
		req, _ := http.NewRequest("POST", "http://api/a", body)
		_, err := new(idem.Client).Do(idem.Open(), req) //nolint:bodyclose // there is none
		require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		closedOnce(t, body, "zero Client")
		c, _ := idem.NewClient(idem.Config{BaseURL: "http://api"})
		_, err = c.Do(idem.Open(), nil) //nolint:bodyclose // there is none
		require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		body = newOpaque("x")
		req, _ = http.NewRequest("POST", "http://api/a", body)
		req.RequestURI = "/a"           // what http.Client refuses
		_, err = c.Do(idem.Open(), req) //nolint:bodyclose // there is none
		e := theError(t, err)
		require.Equal(t, idem.NotExecuted, e.Outcome, "nothing was sent: %v", e)
		closedOnce(t, body, "RequestURI")
		body = newOpaque("x")
		req, _ = http.NewRequest("POST", "http://api/a", body)
		req.URL = nil
		_, err = c.Do(idem.Open(), req) //nolint:bodyclose // there is none
		e = theError(t, err)
		require.Equal(t, idem.NotExecuted, e.Outcome, "nothing was sent: %v", e)
		closedOnce(t, body, "nil URL")
	})
	t.Run("an Intent used twice", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in, c := idem.Open(), r.api(t)
			_, err := c.Call(t.Context(), in, "POST", "/a", 1, nil)
			require.NoError(t, err)
			for _, again := range []struct {
				path string
				body any
			}{{"/a", 2}, {"/b", 1}, {"/a?x=1", 1}, {"/a", nil}} {
				res, err := c.Call(t.Context(), in, "POST", again.path, again.body, nil)
				require.ErrorIs(t, err, idem.ErrIntentReused)
				require.Equal(t, idem.NotExecuted, res.Outcome)
				require.Equal(t, idem.Answered, in.Outcome())
			}
			_, err = c.Call(t.Context(), in, "PUT", "/a", 1, nil)
			require.ErrorIs(t, err, idem.ErrIntentReused)
			require.Equal(t, 1, r.count())
		}, created)
	})
}

// HTTP is for generated clients: there the Intent travels in the context.
func TestHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		h := r.api(t).HTTP()
		resp, err := h.Do(keyedPost(t, in, "http://api/a", strings.NewReader("x")))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 303, resp.StatusCode, "not followed")
		require.Equal(t, []string{in.Key()}, r.all()[0].keys)
	}, moved(303, "/b"))
}

// Cookies, as http.Client keeps them, are not part of what binds an Intent.
func TestHTTP_Cookies(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		h := r.api(t).HTTP()
		h.Jar, _ = cookiejar.New(nil)
		in := idem.Open()
		for range 2 {
			resp, err := h.Do(keyedPost(t, in, "http://api/a", strings.NewReader("x")))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		require.Equal(t, "s=1", r.all()[1].header.Get("Cookie"))
		r.oneKey()
	}, func(s *server, w http.ResponseWriter, q *http.Request, h hit) {
		w.Header().Set("Set-Cookie", "s=1")
		created(s, w, q, h)
	})
}
