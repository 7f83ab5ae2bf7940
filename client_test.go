package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewClient_AllFaultsAtOnce(t *testing.T) {
	bad := contract.Default()
	bad.MinKey, bad.MaxKey = 10, 5
	_, err := idem.NewClient(idem.Config{
		BaseURL:   "ftp://x",
		Header:    http.Header{"Idempotency-Key": {"k"}, "X-A": {"a\nSECRET"}, "X B": {"b"}},
		Transport: &idem.Transport{MaxAttempts: -1, MaxRetryAfter: -1, Contract: bad},
	})
	require.Error(t, err)
	for _, part := range []string{"BaseURL", "Idempotency-Key", "X-A", "X B", "MaxAttempts", "MaxRetryAfter", "Contract"} {
		require.Contains(t, err.Error(), part)
	}
	require.NotContains(t, err.Error(), "SECRET")
}

func TestNewClient_BaseURL(t *testing.T) {
	for _, good := range []string{"http://api", "https://api/", "https://api.example.com/v1", "http://[::1]:8080/a/b/", "HTTP://api"} {
		_, err := idem.NewClient(idem.Config{BaseURL: good})
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "api", "//api", "/v1", "http:", "http://", "http:///v1", "http://:80", "ftp://api", "unix:///x", "mailto:a@b",
		"http://api?x=1", "http://api?", "http://api#f", "http://api/%zz", "http://a b", "http://api\n", "https:api", "http://api:port",
	} {
		c, err := idem.NewClient(idem.Config{BaseURL: bad})
		assert.Error(t, err, bad)
		assert.Nil(t, c, bad)
	}
}

func TestNewClient_Header(t *testing.T) {
	for name, header := range map[string]http.Header{
		"key":               {"Idempotency-Key": {"k"}},
		"key in lower case": {"idempotency-key": {"k"}},
		"LF":                {"X-A": {"a\nb"}},
		"CR":                {"X-A": {"a\rb"}},
		"NUL":               {"X-A": {"a\x00b"}},
		"DEL":               {"X-A": {"a\x7fb"}},
		"control byte":      {"X-A": {"a\x01b"}},
		"name with a space": {"X A": {"a"}},
		"name with a colon": {"X:A": {"a"}},
		"empty name":        {"": {"a"}},
		"name with umlaut":  {"X-\u00c4": {"a"}},
		"name with a slash": {"X/A": {"a"}},
	} {
		_, err := idem.NewClient(idem.Config{BaseURL: "http://api", Header: header})
		assert.Error(t, err, name)
	}
	t.Run("sent, copied, overridden by nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			header := http.Header{"X-Version": {"2024", "2025"}, "Accept": {"text/plain"}, "content-type": {"application/vnd.x+json"}, "X-Empty": {""}, "X-None": nil}
			c := r.api(t, func(cfg *idem.Config) { cfg.Header = header })
			header.Set("X-Version", "changed")
			header["X-Late"] = []string{"a"}
			_, err := c.Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			require.NoError(t, err)
			got := r.all()[0].header
			require.Equal(t, []string{"2024", "2025"}, got["X-Version"])
			require.Equal(t, []string{"text/plain"}, got["Accept"])
			require.Equal(t, []string{"application/vnd.x+json"}, got["Content-Type"])
			require.NotContains(t, got, "X-Late")
		}, created)
	})
}

func TestCall_JSON(t *testing.T) {
	type charge struct {
		Amount int    `json:"amount"`
		Note   string `json:"note,omitempty"`
	}
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		var out charge
		res, err := r.api(t).Call(t.Context(), in, "POST", "/charges", charge{42, "<&>"}, &out)
		require.NoError(t, err)
		require.Equal(t, charge{43, "ok"}, out)
		require.Equal(t, idem.Result{Key: in.Key(), Status: 200, Outcome: idem.Answered, Attempts: 1, Sends: 1}, res)
		h := r.all()[0]
		require.Equal(t, "POST", h.method)
		require.Equal(t, "/charges", h.path)
		require.JSONEq(t, `{"amount":42,"note":"<&>"}`, h.body)
		require.Equal(t, "application/json", h.header.Get("Content-Type"))
		require.Contains(t, h.header.Get("Accept"), "application/json")
		require.Equal(t, []string{in.Key()}, h.keys)
		require.Equal(t, fmt.Sprint(len(h.body)), h.header.Get("Content-Length"))
	}, statusBody(200, `{"amount":43,"note":"ok"}`, "Content-Type", "application/json"))

	t.Run("raw JSON, in and out", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var out json.RawMessage
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", json.RawMessage(`{"a": 1}`), &out)
			require.NoError(t, err)
			require.JSONEq(t, `{"b":2}`, string(out))
			require.JSONEq(t, `{"a":1}`, r.all()[0].body)
		}, statusBody(200, "  {\"b\":2}\n\n"))
	})
	t.Run("no body is not an empty one", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", nil, nil)
			require.NoError(t, err)
			require.Empty(t, r.all()[0].body)
			require.Empty(t, r.all()[0].header.Get("Content-Type"))
		}, status(204))
	})
	t.Run("typed nil is null", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", (*charge)(nil), nil)
			require.NoError(t, err)
			require.Equal(t, "null", r.all()[0].body)
		}, status(204))
	})
	for name, body := range map[string]any{"channel": make(chan int), "NaN": math.NaN(), "function": func() {}} {
		t.Run("does not encode: "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				res, err := r.api(t).Call(t.Context(), in, "POST", "/x", body, nil)
				e := theError(t, err)
				require.Equal(t, idem.NotExecuted, e.Outcome)
				require.Equal(t, e.Result, res)
				require.Zero(t, r.count())
				require.Equal(t, idem.NotExecuted, in.Outcome())
			}, created)
		})
	}
	for name, s := range map[string]step{
		"204":        status(204),
		"200, empty": status(200),
		"205":        status(205),
		"201, empty, chunked": func(s *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(201)
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				out := charge{Amount: 7}
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
				require.NoError(t, err, "an answer without a body leaves out as it is")
				require.Equal(t, charge{Amount: 7}, out)
				require.Equal(t, idem.Answered, res.Outcome)
			}, s)
		})
	}
	t.Run("out nil reads nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			require.NoError(t, err)
			require.Equal(t, 200, res.Status)
			_, err = r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			require.NoError(t, err)
			require.Equal(t, 1, r.dials(), "the connection is used again")
		}, statusBody(200, "<html>not JSON</html>"))
	})
}

// A 2xx whose JSON cannot be read is done, and an error.
func TestCall_WrongJSON(t *testing.T) {
	for name, body := range map[string]string{
		"HTML": "<html></html>", "cut": `{"id":"ch_`, "two values": `{"id":"a"}{"id":"b"}`, "garbage behind": `{"id":"a"} x`,
		"wrong type": `{"id":[1]}`, "array": `[1]`, "another number": `{"n":1e999}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				var out struct {
					ID string
					N  int
				}
				res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, &out)
				e := theError(t, err)
				require.Equal(t, idem.Answered, res.Outcome)
				require.Equal(t, e.Result, res)
				require.Equal(t, 200, res.Status)
				require.Equal(t, 1, res.Attempts)
				require.Equal(t, "v", e.Header.Get("X-H"))
				require.Error(t, e.Last)
				require.Equal(t, idem.Answered, in.Outcome())
				require.Equal(t, 1, r.count())
				require.NotContains(t, e.Error(), "\n")
			}, statusBody(200, body, "X-H", "v", "Content-Type", "application/json"))
		})
	}
	t.Run("cut on the wire, then replayed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var out struct{ ID string }
			res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
			require.NoError(t, err)
			require.Equal(t, "ch_1", out.ID)
			require.Equal(t, idem.Replayed, res.Replay)
			require.Equal(t, 2, res.Attempts)
		}, cut(5, 50), created)
	})
	t.Run("cut on the wire, without buffering", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxResponse = -1
			var out struct{ ID string }
			res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
			require.Error(t, err)
			require.Equal(t, idem.Answered, res.Outcome)
			require.NotContains(t, theError(t, err).Error(), "{")
		}, cut(5, 50))
	})
}

func TestCall_Paths(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"http://api", "/charges", "/charges"},
		{"http://api/", "/charges", "/charges"},
		{"http://api/v1", "/charges", "/v1/charges"},
		{"http://api/v1/", "/charges", "/v1/charges"},
		{"http://api/v1", "/", "/v1/"},
		{"http://api", "/", "/"},
		{"http://api/v1", "/charges?a=1&b=%20c", "/v1/charges?a=1&b=%20c"},
		{"http://api", "/a%2Fb/c", "/a%2Fb/c"},
		{"http://api/t%2Fx", "/a%2Fb", "/t%2Fx/a%2Fb"},
		{"http://api/t%2Fx", "/a", "/t%2Fx/a"},
		{"http://api/v1", "/a b", "/v1/a%20b"},
		{"http://api/v1", "/a%20b?q=x y", ""},
		{"http://api/v1", "/\u00fc", "/v1/%C3%BC"},
		{"http://api/v1", "/a//b/", "/v1/a//b/"},
		{"http://api/v1", "/a?", "/v1/a"},
		{"http://api/v1", "/a%3Fb", "/v1/a%3Fb"},
		{"http://api/v1", "/a;b=c,d", "/v1/a;b=c,d"},
		{"http://api/v1", "/a:b", "/v1/a:b"},
		{"http://api/v1", "/x:1/y@z", "/v1/x:1/y@z"},
	} {
		t.Run(c.base+c.path, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				client := r.api(t, func(cfg *idem.Config) { cfg.BaseURL = c.base })
				_, err := client.Call(t.Context(), idem.Open(), "POST", c.path, 1, nil)
				if c.want == "" {
					if err == nil {
						require.NotContains(t, r.all()[0].path, " ")
					}
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.want, strings.TrimSuffix(r.all()[0].path, "?"))
			}, created)
		})
	}
	t.Run("dots cannot leave the base path", func(t *testing.T) {
		for _, path := range []string{"/../admin", "/a/../../admin", "/..", "/./x", "/%2e%2e/admin"} {
			bubble(t, func(t *testing.T, r *rig) {
				client := r.api(t, func(cfg *idem.Config) { cfg.BaseURL = "http://api/v1" })
				_, err := client.Call(t.Context(), idem.Open(), "POST", path, 1, nil)
				if err == nil {
					require.True(t, strings.HasPrefix(r.all()[0].path, "/v1/"), r.all()[0].path)
				}
			}, created)
		}
	})
}

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

// An answer that is not 2xx is an *Error with all that was answered.
func TestCall_NotOK(t *testing.T) {
	problem := `{"type":"https://e/no-funds","title":"No funds","status":402,"detail":"30 of 50","instance":"/i/1","balance":30,"accounts":["/a"]}`
	for _, code := range []int{400, 401, 402, 403, 404, 409, 410, 418, 422, 429, 500, 501, 503, 304, 300} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				out := map[string]any{"kept": true}
				res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, &out)
				e := theError(t, err)
				require.Equal(t, e.Result, res)
				require.Equal(t, code, res.Status)
				require.Equal(t, in.Key(), res.Key)
				require.Equal(t, r.count(), res.Attempts)
				require.Equal(t, "v", e.Header.Get("X-H"))
				require.Equal(t, map[string]any{"kept": true}, out, "out is not written to")
				if code != 304 {
					require.Equal(t, problem, string(e.Body))
					require.NotNil(t, e.Problem)
					require.Equal(t, "https://e/no-funds", e.Problem.Type)
					require.Equal(t, "No funds", e.Problem.Title)
					require.Equal(t, 402, e.Problem.Status)
					require.Equal(t, "30 of 50", e.Problem.Detail)
					require.Equal(t, "/i/1", e.Problem.Instance)
					require.Equal(t, map[string]json.RawMessage{"balance": json.RawMessage("30"), "accounts": json.RawMessage(`["/a"]`)}, e.Problem.Extra)
				}
				require.NotContains(t, e.Error(), "30 of 50")
				require.Contains(t, e.Error(), fmt.Sprint("status ", code))
				if code == 409 {
					require.ErrorIs(t, err, idem.ErrInProgress)
				}
				if code == 422 {
					require.ErrorIs(t, err, idem.ErrMismatch)
					require.Equal(t, 1, r.count())
				}
				r.oneKey()
			}, statusBody(code, problem, "Content-Type", "application/problem+json; charset=utf-8", "X-H", "v"))
		})
	}
	t.Run("outcomes", func(t *testing.T) {
		for code, outcome := range map[int]idem.Outcome{
			400: idem.Answered, 402: idem.Answered, 403: idem.Answered, 404: idem.Answered,
			401: idem.NotExecuted, 413: idem.NotExecuted, 429: idem.NotExecuted,
			409: idem.OutcomeUnknown, 500: idem.OutcomeUnknown, 501: idem.OutcomeUnknown, 302: idem.OutcomeUnknown, 408: idem.OutcomeUnknown,
		} {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
				require.Error(t, err)
				require.Equal(t, outcome, res.Outcome, code)
			}, status(code))
		}
	})
	t.Run("GET", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			res, err := r.api(t).Call(t.Context(), nil, "GET", "/x", nil, nil)
			require.Equal(t, 404, theError(t, err).Status)
			require.Equal(t, 404, res.Status)
			require.Empty(t, res.Key)
		}, statusBody(404, "no"))
	})
}

func TestCall_HugeErrorBody(t *testing.T) {
	for name, s := range map[string]step{
		"length known": statusBody(400, strings.Repeat("x", 5<<20)),
		"chunked": func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.WriteHeader(400)
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("x", 50_000)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
				e := theError(t, err)
				require.Len(t, e.Body, 64<<10)
				require.Equal(t, 400, res.Status)
				require.Nil(t, e.Problem)
			}, s)
		})
	}
	t.Run("endless", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			res, err := r.api(t).Call(ctx, idem.Open(), "POST", "/x", 1, nil)
			require.Error(t, err)
			require.Equal(t, 400, res.Status)
			require.LessOrEqual(t, time.Since(start), time.Hour)
		}, func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, "why")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	})
}

// RFC 9457: members of a wrong type are ignored; nothing else is lost.
func TestCall_Problem(t *testing.T) {
	for body, want := range map[string]*idem.Problem{
		`{}`: {Type: "about:blank"},
		`{"type":1,"title":[],"status":"402","detail":null,"instance":{}}`: {Type: "about:blank"},
		`{"type":"urn:x","title":"T","status":402.5}`:                      {Type: "urn:x", Title: "T"},
		`{"type":"urn:x","status":1e2}`:                                    nil, // 100, or ignored
		`{"Title":"T"}`:                                                    {Type: "about:blank", Extra: map[string]json.RawMessage{"Title": json.RawMessage(`"T"`)}},
		`{"title":"T","x":{"y":[1]}}`:                                      {Type: "about:blank", Title: "T", Extra: map[string]json.RawMessage{"x": json.RawMessage(`{"y":[1]}`)}},
		`{"type":""}`:                                                      {Type: ""},
		`{"type":null}`:                                                    {Type: "about:blank"},
	} {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			e := theError(t, err)
			if want == nil {
				require.NotNil(t, e.Problem)
				return
			}
			require.Equal(t, want, e.Problem, body)
		}, statusBody(400, body, "Content-Type", "Application/Problem+JSON"))
	}
	for body, media := range map[string]string{
		`[1]`:           "application/problem+json",
		`null`:          "application/problem+json",
		`"x"`:           "application/problem+json",
		``:              "application/problem+json",
		`{"title":`:     "application/problem+json",
		`{"title":"T"}`: "application/json",
		`{"title":"U"}`: "",
	} {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			e := theError(t, err)
			require.Nil(t, e.Problem, body)
			require.Equal(t, body, string(e.Body))
		}, statusBody(400, body, "Content-Type", media))
	}
	t.Run("the title in the text", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			text := theError(t, err).Error()
			require.NotContains(t, text, "\n")
			require.Less(t, len(text), 500)
		}, statusBody(400, `{"title":"line\nbreak `+strings.Repeat("long", 1000)+`"}`, "Content-Type", "application/problem+json"))
	})
}

// Without an answer the Result is filled in as well.
func TestCall_NoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, nil)
		e := theError(t, err)
		require.Equal(t, idem.Result{Key: in.Key(), Attempts: 3, Sends: 3}, res)
		require.Equal(t, e.Result, res)
		require.ErrorIs(t, err, idem.ErrExhausted)
		require.Nil(t, e.Header)
		require.Nil(t, e.Problem)
		var same *idem.Error
		require.ErrorAs(t, err, &same)
		require.IsType(t, &idem.Error{}, err, "without a *url.Error around it")
		r.oneKey()
	}, lost)
	t.Run("deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the shop closes"))
			defer cancel()
			in := idem.Open()
			res, err := r.api(t).Call(ctx, in, "POST", "/x", 1, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "the shop closes")
			require.True(t, theError(t, err).Timeout())
			require.Equal(t, idem.Result{Key: in.Key(), Attempts: 1, Sends: 1}, res)
		}, stall)
	})
	t.Run("cancel on entry", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			res, err := r.api(t).Call(ctx, idem.Open(), "POST", "/x", 1, nil)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, idem.NotExecuted, res.Outcome)
			require.Zero(t, r.count())
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

// An answer that the contract knows as "done before" is no error.
func TestCall_DoneBefore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract.Answers = []contract.Match{{Status: 409, Path: "code", Value: "duplicate", Means: contract.Done}}
		var out struct{ ID string }
		res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
		require.NoError(t, err)
		require.Equal(t, "ch_1", out.ID)
		require.Equal(t, 409, res.Status)
		require.Equal(t, idem.Answered, res.Outcome)
		require.Equal(t, idem.Replayed, res.Replay)
	}, statusBody(409, `{"code":"duplicate","id":"ch_1"}`, "Content-Type", "application/json"))
}
