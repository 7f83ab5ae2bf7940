package idem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/require"
)

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
				require.Equal(t, body, string(e.Body), "what the server said is not lost")
				require.Equal(t, idem.Answered, in.Outcome())
				require.Equal(t, 1, r.count())
				require.NotContains(t, e.Error(), "\n")
				require.True(t, strings.HasPrefix(e.Error(), "idem: answered (key "), "nobody gave up: %v", e)
			}, statusBody(200, body, "X-H", "v", "Content-Type", "application/json"))
		})
	}
	t.Run("HTML that passes through", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var out struct{}
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
			require.Equal(t, "<html></html>", string(theError(t, err).Body))
		}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "<html></html>")
		})
	})
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

// An out that cannot take the answer is found before there is one.
func TestCall_OutIsNoPointer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for _, out := range []any{struct{ ID string }{}, map[string]any{}, (*string)(nil), make(chan int), new(bytes.Buffer), new(strings.Builder)} {
			in := idem.Open()
			res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, out)
			require.ErrorContains(t, err, "out is not a pointer")
			require.Equal(t, idem.NotExecuted, res.Outcome)
			require.Equal(t, idem.NotExecuted, in.Outcome())
		}
		require.Zero(t, r.count())
	}, created)
}

// A body that encoding/json would make something else of is refused; one that says
// how it is encoded is not.
func TestCall_BodyIsNoValue(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for _, body := range []any{[]byte(`{"a":1}`), strings.NewReader(`{"a":1}`), new(bytes.Buffer), http.NoBody} {
			in := idem.Open()
			res, err := r.api(t).Call(t.Context(), in, "POST", "/x", body, nil)
			require.ErrorContains(t, err, "the body is ")
			require.Equal(t, idem.NotExecuted, res.Outcome)
		}
		require.Zero(t, r.count())
		var out json.RawMessage
		for _, body := range []any{json.RawMessage(`{"a":1}`), "text", []string{"a"}, time.Unix(0, 0)} {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", body, &out)
			require.NoError(t, err)
		}
		require.Equal(t, 4, r.count())
	}, created)
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

// A long answer whose value has come, and whose end does not, says why: the time
// that is over is not another value.
func TestCall_AnswerWithoutEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxResponse = 4
		r.transport.AttemptTimeout = time.Second
		var out struct{ ID string }
		_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, &out)
		require.True(t, theError(t, err).Timeout(), err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		res, err := r.api(t).Call(ctx, idem.Open(), "POST", "/x", 1, &out)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, idem.Answered, res.Outcome)
	}, func(_ *server, w http.ResponseWriter, q *http.Request, _ hit) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"ch_1"}`)
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	})
}
