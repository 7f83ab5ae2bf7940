package idem_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every kind of source gives the same bytes on every attempt, however the
// request was put together.
func TestBody_Sources(t *testing.T) {
	const text = "the same bytes each time"
	opened := func(t *testing.T) *os.File { t.Helper(); return tempFile(t, []byte(text), 0) }
	for name, build := range map[string]func(*testing.T, *http.Request){
		"NopCloser of strings.Reader": func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(strings.NewReader(text)) },
		"NopCloser of bytes.Reader":   func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(bytes.NewReader([]byte(text))) },
		"NopCloser of bytes.Buffer":   func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(bytes.NewBufferString(text)) },
		"NopCloser of a stream":       func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(bufio.NewReader(strings.NewReader(text))) },
		"NopCloser twice":             func(_ *testing.T, r *http.Request) { r.Body = io.NopCloser(io.NopCloser(strings.NewReader(text))) },
		"strings.Reader, partly read": func(_ *testing.T, r *http.Request) {
			s := strings.NewReader("xx" + text)
			_, _ = s.Seek(2, io.SeekStart)
			r.Body = io.NopCloser(s)
		},
		"LimitedReader": func(_ *testing.T, r *http.Request) {
			r.Body = io.NopCloser(io.LimitReader(strings.NewReader(text+"more"), int64(len(text))))
		},
		"opaque": func(_ *testing.T, r *http.Request) { r.Body = newOpaque(text) },
		"one byte at a time": func(_ *testing.T, r *http.Request) {
			s := strings.NewReader(text)
			r.Body = &opaque{r: readerFunc(func(p []byte) (int, error) {
				if len(p) > 1 {
					p = p[:1]
				}
				return s.Read(p)
			})}
		},
		"data and EOF at once": func(_ *testing.T, r *http.Request) {
			done := false
			r.Body = &opaque{r: readerFunc(func(p []byte) (int, error) {
				if done {
					return 0, io.EOF
				}
				done = true
				return copy(p, text), io.EOF
			})}
		},
		"reads of nothing": func(_ *testing.T, r *http.Request) {
			s, n := strings.NewReader(text), 0
			r.Body = &opaque{r: readerFunc(func(p []byte) (int, error) {
				if n++; n%2 == 1 {
					return 0, nil
				}
				return s.Read(p)
			})}
		},
		"GetBody": func(_ *testing.T, r *http.Request) {
			r.Body = newOpaque(text)
			r.GetBody = func() (io.ReadCloser, error) { return newOpaque(text), nil }
		},
		"GetBody over a stale position": func(_ *testing.T, r *http.Request) {
			p := &position{data: []byte(text)}
			r.Body = newOpaque(text)
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(p, 0, int64(len(text)))), nil }
		},
		"file":                func(t *testing.T, r *http.Request) { r.Body = opened(t) },
		"NopCloser of a file": func(t *testing.T, r *http.Request) { r.Body = io.NopCloser(opened(t)) },
		"section": func(_ *testing.T, r *http.Request) {
			r.Body = io.NopCloser(io.NewSectionReader(strings.NewReader("xx"+text+"yy"), 2, int64(len(text))))
		},
		"at an offset": func(_ *testing.T, r *http.Request) { r.Body = &position{data: []byte(text)} },
		"pipe": func(_ *testing.T, r *http.Request) {
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, text); _ = pw.Close() }()
			r.Body = pr
		},
	} {
		for _, length := range []int64{int64(len(text)), 0, -1} {
			t.Run(fmt.Sprintf("%s, ContentLength %d", name, length), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					req := keyedPost(t, idem.Open(), "http://api/x", nil)
					req.ContentLength = length
					build(t, req)
					body := req.Body
					resp, _, err := r.send(req)
					require.NoError(t, err)
					require.Equal(t, 201, resp.StatusCode)
					require.Equal(t, 3, r.count())
					require.Equal(t, text, r.all()[0].body)
					r.oneKey()
					if o, ok := body.(*opaque); ok {
						closedOnce(t, o, name)
					}
				}, status(503), drop, created)
			})
		}
	}
}

// Without a body, and with an empty one, in every spelling.
func TestBody_Empty(t *testing.T) {
	for name, build := range map[string]func(*http.Request){
		"nil":                 func(r *http.Request) { r.Body = nil },
		"NoBody":              func(r *http.Request) { r.Body = http.NoBody },
		"nil, with a GetBody": func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil } },
		"empty in memory":     func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("")) },
		"empty stream":        func(r *http.Request) { r.Body = newOpaque("") },
		"empty, unknown":      func(r *http.Request) { r.Body, r.ContentLength = newOpaque(""), -1 },
		"empty GetBody": func(r *http.Request) {
			r.Body, r.GetBody = newOpaque(""), func() (io.ReadCloser, error) { return newOpaque(""), nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				req := keyedPost(t, idem.Open(), "http://api/x", nil)
				build(req)
				resp, _, err := r.send(req)
				require.NoError(t, err)
				require.Equal(t, 201, resp.StatusCode)
				require.Equal(t, 3, r.count())
				r.oneKey()
				require.Empty(t, r.all()[0].body)
			}, status(503), drop, created)
		})
	}
}

// A stream over MaxBody is sent once; the reason says why, and a limit that is
// just met is enough.
func TestBody_MaxBody(t *testing.T) {
	const size = 1000
	text := strings.Repeat("x", size)
	for _, known := range []bool{true, false} {
		for _, most := range []int64{size, math.MaxInt64, size - 1, -1, 1} {
			t.Run(fmt.Sprintf("length known %v, MaxBody %d", known, most), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxBody = most
					in := idem.Open()
					body := newOpaque(text)
					req := keyedPost(t, in, "http://api/x", body)
					if known {
						req.ContentLength = size
					}
					resp, _, err := r.send(req)
					require.NoError(t, err)
					if most >= size {
						require.Equal(t, 201, resp.StatusCode)
						require.Equal(t, 2, r.count())
					} else {
						require.Equal(t, 503, resp.StatusCode)
						require.Equal(t, 1, r.count())
						require.ErrorIs(t, in.Attempts()[0].Reason, idem.ErrNotRepeatable)
						require.Contains(t, in.Attempts()[0].Reason.Error(), "stream")
					}
					require.Equal(t, text, r.all()[0].body)
					r.oneKey()
					closedOnce(t, body, "stream")
				}, status(503), created)
			})
		}
	}
	t.Run("a refused dial", func(t *testing.T) {
		// Nothing was read of it, but net/http has closed it: it is not sent
		// again, and surely was not sent.
		bubble(t, func(t *testing.T, r *rig) {
			r.down("api")
			r.transport.MaxBody = 1
			body := newOpaque(text)
			_, _, err := r.send(keyedPost(t, idem.Open(), "http://api/x", body))
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrNotRepeatable)
			require.Equal(t, idem.NotExecuted, e.Outcome)
			closedOnce(t, body, "stream")
		})
	})
	t.Run("not sent again by net/http either", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxBody = 1
			warmFor(t, r, 3, onPooled(lost, created))
			_, _, err := r.send(keyedPost(t, idem.Open(), "http://api/x", newOpaque(text)))
			e := theError(t, err)
			require.Equal(t, 1, r.count())
			require.Equal(t, 1, e.Sends)
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
		})
	})
	t.Run("the second call with a stream", func(t *testing.T) {
		// Two streams cannot be compared; the second request must not look like
		// the first by accident where lengths tell them apart.
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxBody = 1
			in := idem.Open()
			_, _, err := r.send(keyedPost(t, in, "http://api/x", newOpaque(text)))
			require.NoError(t, err)
			_, _, err = r.send(keyedPost(t, in, "http://api/y", newOpaque(text)))
			require.ErrorIs(t, err, idem.ErrIntentReused)
		}, created)
	})
}

// A ContentLength that lies: never another body under the key, never a send of
// half a body that counts as one, and no second try at a fault of the caller.
func TestBody_ContentLengthLies(t *testing.T) {
	const text = "0123456789"
	for _, length := range []int64{3, 9, 11, 2000} {
		for name, build := range map[string]func(*http.Request){
			"in memory": func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(text)) },
			"buffer":    func(r *http.Request) { r.Body = io.NopCloser(bytes.NewBufferString(text)) },
			"opaque":    func(r *http.Request) { r.Body = newOpaque(text) },
			"GetBody": func(r *http.Request) {
				r.Body, r.GetBody = newOpaque(text), func() (io.ReadCloser, error) { return newOpaque(text), nil }
			},
			"at an offset": func(r *http.Request) { r.Body = &position{data: []byte(text)} },
		} {
			for _, most := range []int64{0, -1} {
				t.Run(fmt.Sprintf("%s, length %d, MaxBody %d", name, length, most), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						r.transport.MaxBody = most
						r.transport.AttemptTimeout = time.Second
						req := keyedPost(t, idem.Open(), "http://api/x", nil)
						req.ContentLength = length
						build(req)
						body := req.Body
						_, _, err := r.send(req)
						if err != nil {
							e := theError(t, err)
							if e.Sends == 0 {
								require.Equal(t, idem.NotExecuted, e.Outcome)
							}
							require.LessOrEqual(t, e.Attempts, 1, "%v", e)
						}
						// What arrived whole is a prefix the caller asked for, or
						// the whole; and each time the same.
						for _, h := range r.all() {
							require.True(t, h.body == text || length < int64(len(text)) && h.body == text[:length], h.body)
						}
						if r.count() > 0 {
							r.oneKey()
						}
						if o, ok := body.(*opaque); ok {
							closedOnce(t, o, name)
						}
					}, status(503), created)
				})
			}
		}
	}
}

// GetBody that lies: other bytes, an error on a later call, a used-up reader.
func TestBody_GetBodyLies(t *testing.T) {
	const text = "0123456789"
	n := 0
	for name, getBody := range map[string]func() (io.ReadCloser, error){
		"a counter in it": func() (io.ReadCloser, error) { n++; return newOpaque(fmt.Sprintf("012345678%d", n%10)), nil },
		"shorter later": func() (io.ReadCloser, error) {
			n++
			return newOpaque(text[:max(1, 10-n)]), nil
		},
		"longer later": func() (io.ReadCloser, error) { n++; return newOpaque(text + strings.Repeat("x", max(0, n-1))), nil },
		"empty later": func() (io.ReadCloser, error) {
			if n++; n > 1 {
				return http.NoBody, nil
			}
			return newOpaque(text), nil
		},
		"error later": func() (io.ReadCloser, error) {
			if n++; n > 1 {
				return nil, errDisk
			}
			return newOpaque(text), nil
		},
		"read error later": func() (io.ReadCloser, error) {
			if n++; n > 1 {
				return &opaque{r: failing("012")}, nil
			}
			return newOpaque(text), nil
		},
		"closed later": func() (io.ReadCloser, error) {
			n++
			b := newOpaque(text)
			if n > 1 {
				b.closes.Store(1)
			}
			return b, nil
		},
		"nil later": func() (io.ReadCloser, error) {
			if n++; n > 1 {
				return nil, nil
			}
			return newOpaque(text), nil
		},
	} {
		for _, length := range []int64{10, -1} {
			t.Run(fmt.Sprintf("%s, length %d", name, length), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					n = 0
					r.transport.MaxAttempts = 4
					body := newOpaque(text)
					req := keyedPost(t, idem.Open(), "http://api/x", body)
					req.ContentLength, req.GetBody = length, getBody
					resp, _, err := r.send(req)
					for i, h := range r.all() {
						require.Equal(t, text, h.body, "hit %d", i+1)
					}
					if err == nil {
						require.Contains(t, []int{201, 503}, resp.StatusCode)
					} else {
						e := theError(t, err)
						require.NotContains(t, e.Error(), "0123", "no body in the text")
						require.NotEqual(t, idem.Answered, e.Outcome)
						if r.count() > 0 {
							require.Equal(t, idem.OutcomeUnknown, e.Outcome)
						}
						if name == "error later" || name == "read error later" {
							require.ErrorIs(t, err, errDisk)
						}
					}
					closedOnce(t, body, name)
				}, status(503), status(503), created)
			})
		}
	}
}

// A file that is changed between two attempts is not sent again.
func TestBody_FileChanged(t *testing.T) {
	const text = "0123456789"
	for name, change := range map[string]func(string) error{
		"rewritten, same length": func(f string) error { return os.WriteFile(f, []byte("9876543210"), 0o600) },
		"longer":                 func(f string) error { return os.WriteFile(f, []byte(text+"x"), 0o600) },
		"shorter":                func(f string) error { return os.Truncate(f, 3) },
		"empty":                  func(f string) error { return os.Truncate(f, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := tempFile(t, []byte(text), 0)
				r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) {
					if a.Number == 1 {
						time.Sleep(time.Millisecond)
						assert.NoError(t, change(f.Name()))
						// In case the clock of the file system is coarse.
						later := time.Now().Add(time.Hour)
						_ = os.Chtimes(f.Name(), later, later)
					}
				}
				_, _, err := r.send(keyedPost(t, idem.Open(), "http://api/x", f))
				require.ErrorIs(t, err, idem.ErrNotRepeatable)
				require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
				require.Equal(t, 1, r.count())
				require.Equal(t, text, r.all()[0].body)
				require.True(t, isClosed(f))
			}, status(503), created)
		})
	}
	t.Run("closed by the caller meanwhile", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			f := tempFile(t, []byte(text), 0)
			r.transport.OnAttempt = func(context.Context, idem.Attempt) { _ = f.Close() }
			_, _, err := r.send(keyedPost(t, idem.Open(), "http://api/x", f))
			e := theError(t, err)
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
			require.Equal(t, 1, r.count())
		}, status(503), created)
	})
}

// Buffers that the caller changes after the call do not change what the Intent
// is bound to, and those that change during it stop it: one key, one body.
func TestBody_CallerReusesBuffer(t *testing.T) {
	t.Run("between calls", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			var b bytes.Buffer
			b.WriteString("400")
			_, _, err := r.send(keyedPost(t, in, "http://api/x", &b))
			require.NoError(t, err)
			b.Reset()
			b.WriteString("900")
			_, _, err = r.send(keyedPost(t, in, "http://api/x", &b))
			require.ErrorIs(t, err, idem.ErrIntentReused)
			b.Reset()
			b.WriteString("400")
			_, _, err = r.send(keyedPost(t, in, "http://api/x", &b))
			require.NoError(t, err)
			require.Equal(t, 2, r.count())
			r.oneKey()
		}, created)
	})
	t.Run("in the wait", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			data := []byte("400")
			in := idem.Open()
			r.transport.OnAttempt = func(context.Context, idem.Attempt) { copy(data, "900") }
			_, _, err := r.send(keyedPost(t, in, "http://api/x", bytes.NewReader(data)))
			if err != nil {
				require.ErrorIs(t, err, idem.ErrNotRepeatable)
				require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			}
			r.oneKey()
			require.Equal(t, "400", r.all()[0].body)
		}, status(503), created)
	})
}

// A body that comes slowly does not outlast the caller while it is buffered.
func TestBody_SlowWhileBuffered(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		pr, pw := io.Pipe()
		defer pw.Close()
		go func() { _, _ = io.WriteString(pw, "abc") }()
		req, err := http.NewRequestWithContext(idem.WithIntent(ctx, idem.Open()), "POST", "http://api/x", pr)
		require.NoError(t, err)
		start := time.Now()
		_, _, err = r.send(req)
		e := theError(t, err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, e.Timeout())
		require.Equal(t, idem.NotExecuted, e.Outcome)
		require.Equal(t, time.Second, time.Since(start))
		require.Zero(t, r.count())
		require.Zero(t, e.Attempts)
	}, created)
}

// Nor does it outlast the old Request.Cancel.
func TestBody_CancelledWhileBuffered(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		pr, pw := io.Pipe()
		defer pw.Close()
		cancel := make(chan struct{})
		in := idem.Open()
		req := keyedPost(t, in, "http://api/x", pr)
		req.Cancel = cancel //nolint:staticcheck // some still use it
		time.AfterFunc(time.Second, func() { close(cancel) })
		start := time.Now()
		_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, idem.NotExecuted, in.Outcome())
		require.Zero(t, r.count())
	}, created)
}

// Expect: 100-continue: the body is sent only when the server asks for it.
func TestBody_ExpectContinue(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.base.ExpectContinueTimeout = time.Second
		body := newOpaque("hello")
		req := keyedPost(t, idem.Open(), "http://api/x", body)
		req.Header.Set("Expect", "100-continue")
		resp, _, err := r.send(req)
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		r.oneKey()
		require.Equal(t, 2, r.count())
		closedOnce(t, body, "stream")
	}, status(503), created)
}

// Trailers of the request are sent on every attempt.
func TestBody_Trailer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		req := keyedPost(t, idem.Open(), "http://api/x", newOpaque("hello"))
		req.ContentLength = -1
		req.Trailer = http.Header{"X-Sum": {"abc"}}
		resp, _, err := r.send(req)
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, 2, r.count())
		r.oneKey()
	}, status(503), func(s *server, w http.ResponseWriter, q *http.Request, h hit) {
		if q.Trailer.Get("X-Sum") != "abc" {
			s.t.Errorf("the trailer is lost: %v", q.Trailer)
		}
		created(s, w, q, h)
	})
}

// The same http.Request again, which the first call has read, is the same request:
// GetBody has its body. What GetBody has of another body is not taken for it.
func TestBody_RequestSentAgain(t *testing.T) {
	for name, body := range map[string]io.Reader{
		"strings.Reader": strings.NewReader("hello"),
		"bytes.Reader":   bytes.NewReader([]byte("hello")),
		"bytes.Buffer":   bytes.NewBufferString("hello"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				req := keyedPost(t, in, "http://api/x", body)
				_, _, err := r.send(req)
				require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
				require.NoError(t, in.Bind(req.Clone(req.Context())))
				_, _, err = r.send(req)
				require.NoError(t, err)
				require.Equal(t, 4, r.count())
				require.Equal(t, 1, r.done())
				require.Equal(t, "hello", r.all()[3].body)
				r.oneKey()
			}, lost, lost, lost, created)
		})
	}
	t.Run("partly read", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			req := keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("hello"))
			_, err := io.ReadFull(req.Body, make([]byte, 2))
			require.NoError(t, err)
			_, _, err = r.send(req)
			require.NoError(t, err)
			require.Equal(t, "hello", r.all()[0].body)
		}, created)
	})
	for name, change := range map[string]func(*http.Request){
		"another body":  func(q *http.Request) { q.Body = io.NopCloser(strings.NewReader("hey")) },
		"no GetBody":    func(q *http.Request) { q.Body, q.GetBody = io.NopCloser(strings.NewReader("")), nil },
		"GetBody fails": func(q *http.Request) { q.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe } },
		"GetBody of others": func(q *http.Request) {
			q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hell")), nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				req := keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("hello"))
				_, err := io.Copy(io.Discard, req.Body)
				require.NoError(t, err)
				change(req)
				_, _, err = r.send(req)
				require.ErrorContains(t, err, "ContentLength says 5")
				require.Zero(t, r.count())
			}, created)
		})
	}
}

// A layer above that has lost the body, but not its length, is found out before an
// empty write is sent.
func TestBody_LostAbove(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"NoBody": http.NoBody, "nil": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.base.Protocols = new(http.Protocols)
				r.base.Protocols.SetUnencryptedHTTP2(true)
				req := keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("hello"))
				req.Body = body
				resp, err := r.transport.RoundTrip(req)
				if err == nil {
					require.NoError(t, resp.Body.Close())
				}
				require.Zero(t, r.count(), "nothing was sent")
				require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			}, created)
		})
	}
}

// sizeless is a file that does not know its length, as those of devices and of
// /proc: it is 0, whatever there is to read.
type sizeless struct{ *bytes.Reader }

func (f sizeless) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return 0, nil
	}
	return f.Reader.Seek(offset, whence)
}

func (sizeless) Close() error { return nil }

// A file that says it is empty, and is not, is sent whole.
func TestBody_FileWithoutASize(t *testing.T) {
	for name, length := range map[string]int64{"length not known": 0, "length known": 5} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				req := keyedPost(t, idem.Open(), "http://api/x", sizeless{bytes.NewReader([]byte("hello"))})
				req.ContentLength = length
				_, _, err := r.send(req)
				require.NoError(t, err)
				require.Equal(t, 2, r.count())
				require.Equal(t, "hello", r.all()[1].body)
				r.oneKey()
			}, status(503), created)
		})
	}
	t.Run("of the system", func(t *testing.T) {
		const path = "/proc/self/cmdline"
		want, err := os.ReadFile(path)
		if err != nil {
			t.Skip("this system has no /proc")
		}
		bubble(t, func(t *testing.T, r *rig) {
			file, err := os.Open(path)
			require.NoError(t, err)
			_, _, err = r.send(keyedPost(t, idem.Open(), "http://api/x", file))
			require.NoError(t, err)
			require.Equal(t, string(want), r.all()[0].body)
		}, created)
	})
}
