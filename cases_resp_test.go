package idem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hashicorp/go-retryablehttp#156
func TestCase_RESP_1(t *testing.T) {
	for _, code := range []int{500, 502, 503, 504, 429, 408, 409, 425} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, text, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, "why", text)
				require.Equal(t, 3, r.count())
				r.oneKey()
				res := idem.ResultOf(resp)
				require.Equal(t, 3, res.Attempts)
				require.Equal(t, 3, res.Sends)
				require.ErrorIs(t, in.Attempts()[2].Reason, idem.ErrExhausted)
			}, statusBody(code, "why"))
		})
	}
}

// amikos-tech/chroma-go#539
func TestCase_RESP_2(t *testing.T) {
	for name, answers := range map[string]step{
		"known length": statusBody(429, "slow down"),
		"JSON":         statusBody(429, `{"a":"slow down"}`, "Content-Type", "application/json"),
		"chunked": func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, "slow")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, " down")
		},
		"longer than MaxResponse": statusBody(429, "slow down"+strings.Repeat(" ", 3<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 2
				resp, text, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, 429, resp.StatusCode)
				require.Contains(t, text, "slow down")
				require.Equal(t, 2, r.count())
				r.oneKey()
				require.Equal(t, idem.NotExecuted, idem.ResultOf(resp).Outcome)
			}, answers)
		})
	}
}

// google/go-containerregistry#2264
func TestCase_RESP_3(t *testing.T) {
	k := contract.Default()
	k.Answers = []contract.Match{{Status: 409, Path: "error.code", Value: "insufficient_funds", Means: contract.Final}}
	front := `{"error":{"code":"insufficient_funds"},"pad":"` + strings.Repeat("x", 40_000) + `"}`
	back := `{"pad":"` + strings.Repeat("x", 40_000) + `","error":{"code":"insufficient_funds"}}`
	small := `{"error":{"code":"insufficient_funds"}}`
	send := func(text string, chunked bool) step {
		return func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(409)
			if chunked {
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, text)
		}
	}
	for name, text := range map[string]string{"small": small, "code in front": front, "code at the back": back} {
		for _, chunked := range []bool{false, true} {
			for _, most := range []int64{0, -1} {
				t.Run(fmt.Sprintf("%s, chunked %v, MaxResponse %d", name, chunked, most), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						r.transport.Contract, r.transport.MaxResponse = k, most
						resp, got, err := r.post(t.Context(), idem.Open(), "{}")
						require.NoError(t, err)
						require.Equal(t, 409, resp.StatusCode)
						require.Equal(t, got, text, "the caller reads every byte")
						r.oneKey()
						if name == "code at the back" && most < 0 {
							return // past the prefix that may be peeked: judged as a bare 409
						}
						require.Equal(t, 1, r.count())
					}, send(text, chunked))
				})
			}
		}
	}
}

// closes is a Base that counts the bodies it handed out and their Closes.
type closes struct {
	http.RoundTripper
	out, closed, read atomic.Int64
}

func (c *closes) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && resp.Body != nil && resp.Body != http.NoBody {
		c.out.Add(1)
		resp.Body = &countedStream{ReadCloser: resp.Body, of: c}
	}
	return resp, err
}

type countedStream struct {
	io.ReadCloser
	of     *closes
	closed atomic.Bool
}

func (s *countedStream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.of.read.Add(int64(n))
	return n, err
}

func (s *countedStream) Close() error {
	if !s.closed.Swap(true) {
		s.of.closed.Add(1)
	}
	return s.ReadCloser.Close()
}

// openai/openai-go#495
func TestCase_RESP_4(t *testing.T) {
	for _, size := range []int{0, 1, 2048, 4096, 4097, 64<<10 - 1, 64 << 10} {
		for _, chunked := range []bool{false, true} {
			for _, keyed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d bytes, chunked %v, keyed %v", size, chunked, keyed), func(t *testing.T) {
					unavailable := func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
						w.WriteHeader(503)
						if chunked {
							_ = http.NewResponseController(w).Flush()
						}
						_, _ = io.WriteString(w, strings.Repeat("x", size))
					}
					bubble(t, func(t *testing.T, r *rig) {
						counted := &closes{RoundTripper: r.base}
						r.transport.Base = counted
						req := keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}"))
						if !keyed {
							req, _ = http.NewRequest(http.MethodPut, "http://api/charges", strings.NewReader("{}"))
						}
						resp, _, err := r.send(req)
						require.NoError(t, err)
						require.Equal(t, 200, resp.StatusCode)
						require.Equal(t, 3, r.count())
						if keyed {
							r.oneKey()
						}
						require.Equal(t, 1, r.dials(), "connections")
						require.Equal(t, counted.out.Load(), counted.closed.Load(), "bodies closed")
					}, unavailable, unavailable, statusBody(200, "done"))
				})
			}
		}
	}
}

// alpacax/alpacon-cli#298
func TestCase_RESP_5(t *testing.T) {
	slowly := func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
		w.Header().Set("Content-Length", "65536")
		w.WriteHeader(503)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
		}
	}
	never := func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
		w.WriteHeader(503)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, first := range map[string]step{"slowly": slowly, "never": never} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, 201, resp.StatusCode)
				require.Equal(t, 2, r.count())
				r.oneKey()
				require.LessOrEqual(t, r.gaps()[0], 50*time.Millisecond+150*time.Millisecond)
			}, first, created)
		})
	}
	t.Run("last attempt", func(t *testing.T) {
		// It is handed over: the caller decides how long to read. Of known
		// length it is read inside the attempt, which has its own clock.
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			r.transport.MaxResponse = -1
			req := keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}"))
			start := time.Now()
			resp, err := r.client().Do(req)
			require.NoError(t, err)
			require.Zero(t, time.Since(start))
			require.NoError(t, resp.Body.Close())
			require.LessOrEqual(t, time.Since(start), 150*time.Millisecond)
		}, slowly)
	})
}

// hashicorp/go-retryablehttp#82
func TestCase_RESP_6(t *testing.T) {
	for name, length := range map[string]int64{"length known": 1 << 30, "length not known": -1} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, keyed %v", name, keyed), func(t *testing.T) {
				virtual(t, func(t *testing.T) {
					hits := 0
					counted := &closes{RoundTripper: baseFunc(func(r *http.Request) (*http.Response, error) {
						_, _ = consume(r)
						if hits++; hits == 2 {
							return reply(r, 200, "done"), nil
						}
						resp := reply(r, 503, "", "Content-Type", "application/json")
						resp.ContentLength = length
						resp.Body = io.NopCloser(io.LimitReader(zeros{}, 1<<30))
						return resp, nil
					})}
					method := http.MethodPut
					ctx := t.Context()
					if keyed {
						ctx = idem.WithIntent(ctx, idem.Open())
					}
					req, err := http.NewRequestWithContext(ctx, method, "http://api/", strings.NewReader("{}"))
					require.NoError(t, err)
					resp, err := (&idem.Transport{Base: counted}).RoundTrip(req)
					require.NoError(t, err)
					resp.Body.Close()
					require.Equal(t, 200, resp.StatusCode)
					require.Equal(t, 2, hits)
					require.LessOrEqual(t, counted.read.Load(), int64(70<<10))
					require.Equal(t, counted.out.Load(), counted.closed.Load())
				})
			})
		}
	}
	t.Run("the connection is closed", func(t *testing.T) {
		var wrote atomic.Int64
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, 2, r.dials())
			r.oneKey()
			synctest.Wait()
			require.Less(t, wrote.Load(), int64(1<<20))
		}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.WriteHeader(503)
			for range 1 << 15 {
				n, err := w.Write(make([]byte, 32<<10))
				wrote.Add(int64(n))
				if err != nil {
					return
				}
			}
		}, created)
	})
}

// jdx/mise#12974
func TestCase_RESP_7(t *testing.T) {
	t.Run("buffered", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			resp, text, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, `{"id":"ch_1"}`, text)
			require.Equal(t, 2, r.count())
			require.Equal(t, 1, r.done())
			r.oneKey()
			res := idem.ResultOf(resp)
			require.Equal(t, idem.Replayed, res.Replay)
			require.Equal(t, 2, res.Attempts)
			require.Equal(t, idem.Answered, res.Outcome)
			require.ErrorIs(t, in.Attempts()[0].Err, io.ErrUnexpectedEOF)
		}, cut(10, 100), created)
	})
	for _, k := range []int{0, 1, 99} {
		t.Run(fmt.Sprintf("every time, after %d", k), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, _, err := r.post(t.Context(), idem.Open(), "{}")
				e := theError(t, err)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.ErrorIs(t, err, idem.ErrExhausted)
				require.Equal(t, 3, r.count())
				require.Equal(t, 200, e.Status)
				r.oneKey()
				// The head said 2xx: the work is done, only the answer could
				// not be read. Less is allowed, NotExecuted is not.
				require.NotEqual(t, idem.NotExecuted, e.Outcome)
				require.Len(t, e.Body, k)
			}, cut(k, 100))
		})
	}
	t.Run("streaming", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxResponse = -1
			in := idem.Open()
			resp, text, err := r.post(t.Context(), in, "{}")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Len(t, text, 10)
			require.Equal(t, 1, r.count())
			require.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
			resp, text, err = r.post(t.Context(), in, "{}") // the intent can be repeated
			require.NoError(t, err)
			require.Equal(t, `{"id":"ch_1"}`, text)
			require.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
			require.Equal(t, 1, r.done())
			r.oneKey()
		}, cut(10, 100), created)
	})
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, text, err := r.post(t.Context(), nil, "{}")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Len(t, text, 10)
			require.Equal(t, 1, r.count())
		}, cut(10, 100), created)
	})
}

// sagebind/isahc#246. A body that only the end of the connection delimits shows
// no cut, unless it is JSON: nobody can do better.
func TestCase_RESP_8(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
	t.Run("passed through", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, text, err := r.post(t.Context(), idem.Open(), "{}")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, "hello", text)
			require.Equal(t, 1, r.count())
			require.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		}, raw(head+"text/plain\r\n\r\n5\r\nhello\r\n"), created)
	})
	for name, text := range map[string]string{
		"JSON, in a chunk":          "application/json\r\n\r\n8\r\n{\"a\":",
		"JSON, between chunks":      "application/json\r\n\r\n7\r\n{\"a\":1}\r\n",
		"JSON, in the last chunk":   "application/json\r\n\r\n7\r\n{\"a\":1}\r\n0",
		"JSON, before the trailers": "application/json\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n",
		"problem+json":              "application/problem+json\r\n\r\n7\r\n{\"a\":1}\r\n",
		"JSON, no chunk":            "application/json\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, got, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				require.Equal(t, `{"id":"ch_1"}`, got)
				require.Equal(t, 2, r.count())
				require.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
				r.oneKey()
			}, raw(head+text), created)
		})
	}
	t.Run("JSON delimited by the close, cut", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, got, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, `{"id":"ch_1"}`, got)
			require.Equal(t, 2, r.count())
		}, raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"id\":"), created)
	})
	t.Run("text delimited by the close", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, got, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, "hel", got)
			require.Equal(t, 1, r.count())
		}, raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhel"), created)
	})
}

// hashicorp/go-retryablehttp#215. The hook is data here: a Hint with a Path.
func TestCase_RESP_9(t *testing.T) {
	k := contract.Default()
	k.Hints = []contract.Hint{{Path: "retryable", Retry: "true", Stop: "false"}}
	stop := `{"retryable":false,"why":"` + strings.Repeat("x", 3000) + `"}`
	again := `{"retryable":true,"why":"busy"}`
	t.Run("stop", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			resp, text, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 429, resp.StatusCode)
			require.Equal(t, stop, text)
			require.Equal(t, 1, r.count())
		}, statusBody(429, stop, "Content-Type", "application/json"), created)
	})
	t.Run("again", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, 2, r.count())
			require.Equal(t, 1, r.dials(), "a body that was looked into is still read to its end")
			r.oneKey()
		}, statusBody(400, again, "Content-Type", "application/json"), created)
	})
	t.Run("never for 422", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			resp, text, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 422, resp.StatusCode)
			require.Equal(t, again, text)
			require.Equal(t, 1, r.count())
		}, statusBody(422, again, "Content-Type", "application/json"), created)
	})
	t.Run("a body that never comes", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			r.transport.AttemptTimeout = time.Second
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, 2, r.count())
			require.Less(t, r.gaps()[0], 2*time.Second)
		}, func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(429)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, created)
	})
}

// circonus-labs/circonus-gometrics#23
func TestCase_RESP_10(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, text, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "body of the 200", text)
		require.Equal(t, 3, r.count())
		r.oneKey()
		last := in.Attempts()[2]
		require.NoError(t, last.Err)
		require.NoError(t, last.Reason)
		require.False(t, last.Retry)
		require.Equal(t, idem.Answered, in.Outcome())
		require.Equal(t, 200, idem.ResultOf(resp).Status)
	}, statusBody(503, "not yet"), statusBody(503, "not yet"), statusBody(200, "body of the 200"))
	t.Run("Call", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var out struct{ ID string }
			res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/charges", map[string]int{"a": 1}, &out)
			require.NoError(t, err)
			require.Equal(t, "ch_1", out.ID)
			require.Equal(t, 3, res.Attempts)
		}, status(503), status(503), created)
	})
}

// Azure/go-autorest#617
func TestCase_RESP_11(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		t.Run(fmt.Sprintf("keyed %v", keyed), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				hits := 0
				tr := &idem.Transport{MaxAttempts: 3, Base: baseFunc(func(r *http.Request) (*http.Response, error) {
					hits++
					_, _ = consume(r)
					return nil, nil
				})}
				var in *idem.Intent
				if keyed {
					in = idem.Open()
				}
				_, err := (&http.Client{Transport: tr}).Do(keyedPost(t, in, "http://api/", strings.NewReader("{}"))) //nolint:bodyclose // there is none
				e := theError(t, err)
				require.Equal(t, idem.OutcomeUnknown, e.Outcome)
				require.NotZero(t, hits)
				if !keyed {
					require.Equal(t, 1, hits)
				}
				require.Equal(t, hits, e.Attempts)
			})
		})
	}
}

// palantir/dialogue#1814
func TestCase_RESP_12(t *testing.T) {
	headers := func(media string) step {
		return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
			s.exec(h)
			w.Header().Set("Content-Type", media)
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
	for _, h2 := range []bool{false, true} {
		for _, media := range []string{"text/event-stream", "text/plain"} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", media, h2), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if h2 {
						r.base.Protocols = new(http.Protocols)
						r.base.Protocols.SetUnencryptedHTTP2(true)
					}
					resp, err := r.client().Do(keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}")))
					require.NoError(t, err)
					require.Equal(t, h2, resp.ProtoMajor == 2)
					start := time.Now()
					require.NoError(t, resp.Body.Close())
					require.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
					require.NoError(t, resp.Body.Close(), "again")
					_, err = resp.Body.Read(make([]byte, 1))
					require.Error(t, err)
				}, headers(media))
			})
		}
	}
	t.Run("read and Close at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, err := r.client().Do(keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}")))
			require.NoError(t, err)
			done := make(chan error)
			go func() {
				_, err := io.ReadAll(resp.Body)
				done <- err
			}()
			synctest.Wait()
			require.NoError(t, resp.Body.Close())
			require.Error(t, <-done)
		}, headers("text/plain"))
	})
	t.Run("the caller's context ends the stream", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err := r.post(ctx, idem.Open(), "{}")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, io.EOF)
		}, headers("text/plain"))
	})
}
