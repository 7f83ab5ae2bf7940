package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cloudfoundry/cli#1015
func TestCase_BODY_1(t *testing.T) {
	const text = `{"amount":4200}`
	half := bytes.NewBufferString("skipped" + text)
	half.Next(len("skipped"))
	bodies := map[string]func() io.Reader{
		"bytes.Buffer":              func() io.Reader { return bytes.NewBufferString(text) },
		"bytes.Buffer, read partly": func() io.Reader { return half },
		"bytes.Reader":              func() io.Reader { return bytes.NewReader([]byte(text)) },
		"strings.Reader":            func() io.Reader { return strings.NewReader(text) },
		"opaque":                    func() io.Reader { return newOpaque(text) },
	}
	for name, body := range bodies {
		for _, keepGetBody := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, GetBody %v", name, keepGetBody), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if name == "bytes.Buffer, read partly" && !keepGetBody {
						half = bytes.NewBufferString("skipped" + text)
						half.Next(len("skipped"))
					}
					req := keyedPost(t, idem.Open(), "http://api/charges", body())
					if !keepGetBody {
						req.GetBody = nil
					}
					resp, _, err := r.send(req)
					require.NoError(t, err)
					require.Equal(t, 201, resp.StatusCode)
					require.Equal(t, 2, r.count())
					r.oneKey()
					for i, h := range r.all() {
						require.Equal(t, text, h.body, "hit %d", i+1)
					}
				}, status(503), created)
			})
		}
	}
}

// stripe/stripe-go#647
func TestCase_BODY_2(t *testing.T) {
	for name, body := range map[string]func(string) io.Reader{
		"in memory": func(s string) io.Reader { return strings.NewReader(s) },
		"opaque":    func(s string) io.Reader { return newOpaque(s) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 4
				text := strings.Repeat("0123456789abcdef", 1000)
				resp, _, err := r.send(keyedPost(t, idem.Open(), "http://api/charges", body(text)))
				require.NoError(t, err)
				require.Equal(t, 201, resp.StatusCode)
				require.Equal(t, 4, r.count())
				r.oneKey()
				require.Equal(t, text, r.all()[3].body)
				require.Equal(t, 1, r.done())
			}, statusBody(409, `{"code":"in_progress"}`), status(503), drop, created)
		})
	}
}

// gophercloud/utils#151
func TestCase_BODY_3(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.base.ResponseHeaderTimeout = 50 * time.Millisecond
		body := newOpaque("the whole body")
		resp, _, err := r.send(keyedPost(t, idem.Open(), "http://api/charges", body))
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Equal(t, 2, r.count())
		r.oneKey()
		require.Equal(t, "the whole body", r.all()[1].body)
		require.Equal(t, 2, idem.ResultOf(resp).Attempts)
		closedOnce(t, body, "opaque")
	}, stall, created)
}

// position is a seekable body that is not safe for concurrent use, as files are
// not: the race detector sees two users of it at once.
type position struct {
	data      []byte
	at        int64
	seeks     atomic.Int32
	reads     atomic.Int32
	sections  atomic.Int32
	lateSeeks atomic.Int32 // after the first ReadAt
	closes    atomic.Int32
}

func (p *position) Read(b []byte) (int, error) {
	p.reads.Add(1)
	if p.at >= int64(len(p.data)) {
		return 0, io.EOF
	}
	n := copy(b, p.data[p.at:])
	p.at += int64(n)
	return n, nil
}

func (p *position) Seek(offset int64, whence int) (int64, error) {
	p.seeks.Add(1)
	if p.sections.Load() > 0 {
		p.lateSeeks.Add(1)
	}
	switch whence {
	case io.SeekCurrent:
		offset += p.at
	case io.SeekEnd:
		offset += int64(len(p.data))
	}
	p.at = offset
	return offset, nil
}

func (p *position) ReadAt(b []byte, off int64) (int, error) {
	p.sections.Add(1)
	if p.closes.Load() > 0 {
		return 0, os.ErrClosed
	}
	if off >= int64(len(p.data)) {
		return 0, io.EOF
	}
	n := copy(b, p.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p *position) Close() error { p.closes.Add(1); return nil }

// hashicorp/go-retryablehttp#145. The body is sent once, and nothing of it is
// kept beyond MaxBody.
func TestCase_BODY_6(t *testing.T) {
	const size = 1 << 30
	for name, length := range map[string]int64{"length known": size, "length not known": -1} {
		t.Run(name, func(t *testing.T) {
			var got int64
			hits := 0
			tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
				hits++
				n, err := io.Copy(io.Discard, r.Body)
				got = n
				_ = r.Body.Close()
				return nil, errors.Join(err, errors.New("connection reset"))
			})}
			in := idem.Open()
			body := &opaque{r: io.LimitReader(zeros{}, size)}
			req := keyedPost(t, in, "http://api/upload", body)
			req.ContentLength = length
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := (&http.Client{Transport: tr}).Do(req) //nolint:bodyclose // there is none
			runtime.ReadMemStats(&after)
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrNotRepeatable)
			assert.Contains(t, e.Error(), "MaxBody")
			assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
			assert.Equal(t, 1, hits)
			assert.Equal(t, 1, e.Attempts)
			assert.EqualValues(t, size, got)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
			closedOnce(t, body, name)
		})
	}
	t.Run("the answer is handed over", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			r.transport.MaxBody = 10
			body := newOpaque(strings.Repeat("x", 11))
			resp, text, err := r.send(keyedPost(t, in, "http://api/upload", body))
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, "why", text)
			require.Equal(t, 1, r.count())
			r.oneKey()
			require.Len(t, r.all()[0].body, 11)
			require.ErrorIs(t, in.Attempts()[0].Reason, idem.ErrNotRepeatable)
			require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			closedOnce(t, body, "over MaxBody")
		}, statusBody(503, "why"))
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// tempFile returns a file with data, positioned at from.
func tempFile(t testing.TB, data []byte, from int64) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "upload")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	_, err = f.Seek(from, io.SeekStart)
	require.NoError(t, err)
	return f
}

// isClosed reports whether the file was closed.
func isClosed(f *os.File) bool {
	_, err := f.Stat()
	return errors.Is(err, os.ErrClosed)
}

// ankraio/ankra-cli#329
func TestCase_BODY_7(t *testing.T) {
	text := strings.Repeat("line of a file\n", 5000)
	t.Run("drop", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			f := tempFile(t, []byte(text), 0)
			resp, _, err := r.send(keyedPost(t, idem.Open(), "http://api/upload", f))
			require.NoError(t, err)
			require.Equal(t, 201, resp.StatusCode)
			require.Equal(t, 2, r.count())
			r.oneKey()
			require.Equal(t, text, r.all()[1].body)
			require.True(t, isClosed(f))
		}, drop, created)
	})
	t.Run("the first cause is told", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			f := tempFile(t, []byte(text), 0)
			cause := &net.DNSError{Err: "no such host", Name: "api", IsNotFound: true}
			r.base.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: cause}
			}
			_, _, err := r.send(keyedPost(t, idem.Open(), "http://api/upload", f))
			var dns *net.DNSError
			require.ErrorAs(t, err, &dns)
			require.NotErrorIs(t, err, os.ErrClosed)
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			require.True(t, isClosed(f))
		}, created)
	})
}

// isola-run/isola#176
func TestCase_BODY_8(t *testing.T) {
	data := make([]byte, 5000)
	for i := range data {
		data[i] = 'a' + byte(i%26)
	}
	for name, c := range map[string]struct{ from, length, want int64 }{
		"length not given": {100, 0, 4900},
		"length given":     {100, 4900, 4900},
		"from the start":   {0, 0, 5000},
		"nothing left":     {5000, 0, 0},
		"the last byte":    {4999, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				f := tempFile(t, data, c.from)
				req := keyedPost(t, idem.Open(), "http://api/upload", f)
				req.ContentLength = c.length
				resp, _, err := r.send(req)
				require.NoError(t, err)
				require.Equal(t, 201, resp.StatusCode)
				require.Equal(t, 2, r.count())
				r.oneKey()
				require.Equal(t, string(data[c.from:c.from+c.want]), r.all()[0].body)
				require.True(t, isClosed(f))
			}, status(503), created)
		})
	}
}

// google/go-github#4318
func TestCase_BODY_9(t *testing.T) {
	text := strings.Repeat("0123456789", 50_000)
	parallel := func(t *testing.T, req *http.Request) {
		t.Helper()
		require.NotNil(t, req.GetBody)
		var wg sync.WaitGroup
		for range 2 {
			body, err := req.GetBody()
			require.NoError(t, err)
			wg.Go(func() {
				defer body.Close()
				data, err := io.ReadAll(body)
				assert.NoError(t, err)
				assert.Equal(t, string(data), text, "a copy has other bytes")
			})
		}
		wg.Wait()
	}
	for name, body := range map[string]func() io.Reader{
		"at an offset": func() io.Reader { return &position{data: []byte(text)} },
		"file":         func() io.Reader { return tempFile(t, []byte(text), 0) },
		"in memory":    func() io.Reader { return bytes.NewBufferString(text) },
		"stream":       func() io.Reader { return newOpaque(text) },
	} {
		for _, where := range []string{"Base", "Layer"} {
			t.Run(name+" in "+where, func(t *testing.T) {
				tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
					if where == "Base" {
						parallel(t, r)
					}
					data, err := consume(r)
					if err == nil && string(data) != text {
						err = errors.New("other bytes")
					}
					return reply(r, 200, ""), err
				})}
				if where == "Layer" {
					tr.Around = func(next http.RoundTripper) http.RoundTripper {
						return baseFunc(func(r *http.Request) (*http.Response, error) {
							parallel(t, r)
							return next.RoundTrip(r)
						})
					}
				}
				resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/upload", body()))
				require.NoError(t, err)
				resp.Body.Close()
			})
		}
	}
}

// snyk/go-application-framework#622
func TestCase_BODY_10(t *testing.T) {
	const before, after = `{"amount":400}`, `{"amount":900}`
	stale := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(before)), nil }
	for name, swap := range map[string]func(*http.Request){
		"GetBody nil":              func(r *http.Request) { r.Body, r.GetBody = newOpaque(after), nil },
		"GetBody nil, in memory":   func(r *http.Request) { r.Body, r.GetBody = io.NopCloser(strings.NewReader(after)), nil },
		"GetBody stale":            func(r *http.Request) { r.Body, r.GetBody = newOpaque(after), stale },
		"GetBody stale, in memory": func(r *http.Request) { r.Body, r.GetBody = io.NopCloser(strings.NewReader(after)), stale },
		"GetBody stale, longer": func(r *http.Request) {
			r.Body, r.GetBody, r.ContentLength = newOpaque(after+" "), stale, int64(len(after)+1)
		},
		"GetBody stale, no length": func(r *http.Request) { r.Body, r.GetBody, r.ContentLength = newOpaque(after), stale, -1 },
		"GetBody empties the body": func(r *http.Request) {
			r.Body = newOpaque(after)
			r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
		},
		"GetBody, the same reader": func(r *http.Request) {
			b := newOpaque(after)
			r.Body = b
			r.GetBody = func() (io.ReadCloser, error) { return b, nil }
		},
		"GetBody fails": func(r *http.Request) {
			r.Body = newOpaque(after)
			r.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrNoProgress }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				req := keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader(before))
				swap(req)
				want := after
				if name == "GetBody stale, longer" {
					want += " "
				}
				resp, _, err := r.send(req)
				if err == nil {
					require.Equal(t, 201, resp.StatusCode)
					require.Equal(t, 2, r.count())
				} else {
					t.Logf("refused: %v", theError(t, err)) // allowed; other bytes are not
				}
				for i, h := range r.all() {
					require.Equal(t, want, h.body, "hit %d", i+1)
				}
				if r.count() > 0 {
					r.oneKey()
				}
			}, status(503), created)
		})
	}
}

var errDisk = errors.New("disk on fire")

// failing gives text and then errDisk.
func failing(text string) io.Reader {
	return io.MultiReader(strings.NewReader(text), readerFunc(func([]byte) (int, error) { return 0, errDisk }))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// golang/go#18239
func TestCase_BODY_11(t *testing.T) {
	cases := map[string]func() *http.Request{
		"length not known": func() *http.Request {
			return keyedPost(t, idem.Open(), "http://api/charges", &opaque{r: failing("abc")})
		},
		"length known": func() *http.Request {
			r := keyedPost(t, idem.Open(), "http://api/charges", &opaque{r: failing("abc")})
			r.ContentLength = 100
			return r
		},
		"GetBody": func() *http.Request {
			r := keyedPost(t, idem.Open(), "http://api/charges", &opaque{r: failing("abc")})
			r.ContentLength = 100
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(failing("abc")), nil }
			return r
		},
		"over MaxBody": func() *http.Request {
			r := keyedPost(t, idem.Open(), "http://api/charges", &opaque{r: failing(strings.Repeat("x", 2<<20))})
			r.ContentLength = 4 << 20
			return r
		},
		"over MaxBody, length not known": func() *http.Request {
			return keyedPost(t, idem.Open(), "http://api/charges", &opaque{r: failing(strings.Repeat("x", 2<<20))})
		},
		"unkeyed PUT": func() *http.Request {
			r, _ := http.NewRequest(http.MethodPut, "http://api/charges", &opaque{r: failing("abc")})
			return r
		},
		"unkeyed": func() *http.Request {
			r, _ := http.NewRequest(http.MethodPost, "http://api/charges", &opaque{r: failing("abc")})
			return r
		},
	}
	for name, build := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				start := time.Now()
				req := build()
				_, _, err := r.send(req)
				e := theError(t, err)
				require.ErrorIs(t, err, errDisk)
				require.LessOrEqual(t, e.Attempts, 1)
				require.Zero(t, r.count(), "a body that broke off must not arrive whole")
				require.Less(t, time.Since(start), 5*time.Millisecond, "no backoff")
				if e.Sends == 0 {
					require.Equal(t, idem.NotExecuted, e.Outcome)
				} else {
					require.Equal(t, idem.OutcomeUnknown, e.Outcome)
				}
				closedOnce(t, req.Body.(*opaque), name)
			}, created)
		})
	}
}

// golang/oauth2#269
func TestCase_BODY_12(t *testing.T) {
	var ops = map[string]func(*http.Request) (*http.Request, *idem.Transport){}
	plain := func(change func(*http.Request) *http.Request) func(*http.Request) (*http.Request, *idem.Transport) {
		return func(r *http.Request) (*http.Request, *idem.Transport) { return change(r), nil }
	}
	with := func(r *http.Request, in *idem.Intent) *http.Request {
		return r.WithContext(idem.WithIntent(r.Context(), in))
	}
	ops["key with a space"] = plain(func(r *http.Request) *http.Request { r.Header.Set("Idempotency-Key", "a b"); return r })
	ops["key too long"] = plain(func(r *http.Request) *http.Request {
		r.Header.Set("Idempotency-Key", strings.Repeat("k", 256))
		return r
	})
	ops["nil UUID"] = plain(func(r *http.Request) *http.Request {
		r.Header.Set("Idempotency-Key", "00000000-0000-0000-0000-000000000000")
		return r
	})
	ops["two keys"] = plain(func(r *http.Request) *http.Request { r.Header["Idempotency-Key"] = []string{"a", "b"}; return r })
	ops["another key"] = plain(func(r *http.Request) *http.Request {
		r.Header.Set("Idempotency-Key", "a")
		return with(r, idem.Open())
	})
	ops["nil Intent"] = plain(func(r *http.Request) *http.Request { return with(r, nil) })
	ops["zero Intent"] = plain(func(r *http.Request) *http.Request { return with(r, new(idem.Intent)) })
	ops["child without a name"] = plain(func(r *http.Request) *http.Request { return with(r, idem.Open().Child("")) })
	ops["expired"] = plain(func(r *http.Request) *http.Request {
		in, err := idem.Adopt("k", time.Now().Add(-48*time.Hour))
		if err != nil {
			panic(err)
		}
		return with(r, in)
	})
	ops["context done"] = plain(func(r *http.Request) *http.Request {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		return with(r.WithContext(ctx), idem.Open())
	})
	ops["context done, unkeyed"] = plain(func(r *http.Request) *http.Request {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		return r.WithContext(ctx)
	})
	ops["Cancel closed"] = plain(func(r *http.Request) *http.Request {
		c := make(chan struct{})
		close(c)
		r.Cancel = c //nolint:staticcheck // still in use
		return with(r, idem.Open())
	})
	ops["no URL"] = plain(func(r *http.Request) *http.Request { r.URL = nil; return with(r, idem.Open()) })
	ops["no URL, unkeyed"] = plain(func(r *http.Request) *http.Request { r.URL = nil; return r })
	ops["no scheme"] = plain(func(r *http.Request) *http.Request {
		r.URL = &url.URL{Host: "h", Path: "/"}
		return with(r, idem.Open())
	})
	ops["no host"] = plain(func(r *http.Request) *http.Request {
		r.URL = &url.URL{Scheme: "http", Path: "/"}
		return with(r, idem.Open())
	})
	ops["other scheme"] = plain(func(r *http.Request) *http.Request { r.URL.Scheme = "ftp"; return with(r, idem.Open()) })
	ops["other scheme, unkeyed"] = plain(func(r *http.Request) *http.Request { r.URL.Scheme = "ftp"; return r })
	ops["bad header"] = plain(func(r *http.Request) *http.Request { r.Header["X-A"] = []string{"a\nb"}; return with(r, idem.Open()) })
	ops["bad header, unkeyed"] = plain(func(r *http.Request) *http.Request { r.Header["X-A"] = []string{"a\nb"}; return r })
	ops["bad method"] = plain(func(r *http.Request) *http.Request { r.Method = "PO ST"; return r })
	ops["bad fields"] = func(r *http.Request) (*http.Request, *idem.Transport) {
		return with(r, idem.Open()), &idem.Transport{MaxAttempts: -1}
	}
	ops["Intent reused"] = plain(func(r *http.Request) *http.Request {
		in := idem.Open()
		other := r.Clone(context.Background())
		other.Body, other.GetBody, other.ContentLength = io.NopCloser(strings.NewReader("other")), nil, 5
		if err := in.Bind(other); err != nil {
			panic(err)
		}
		return with(r, in)
	})
	ops["Layer answers by itself"] = func(r *http.Request) (*http.Request, *idem.Transport) {
		return with(r, idem.Open()), &idem.Transport{Around: func(http.RoundTripper) http.RoundTripper {
			return baseFunc(func(r *http.Request) (*http.Response, error) { return reply(r, 200, ""), nil })
		}}
	}
	ops["Layer fails by itself"] = func(r *http.Request) (*http.Request, *idem.Transport) {
		return with(r, idem.Open()), &idem.Transport{Around: func(http.RoundTripper) http.RoundTripper {
			return baseFunc(func(*http.Request) (*http.Response, error) { return nil, errDisk })
		}}
	}
	ops["dial refused"] = plain(func(r *http.Request) *http.Request { r.URL.Host = "nowhere"; return with(r, idem.Open()) })
	ops["dial refused, unkeyed"] = plain(func(r *http.Request) *http.Request { r.URL.Host = "nowhere"; return r })

	for name, op := range ops {
		for _, kind := range []string{"stream", "long stream", "length known", "GetBody", "NoBody length lies"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxBody = 1000
					text := "hello"
					if kind == "long stream" {
						text = strings.Repeat("x", 2000)
					}
					body := newOpaque(text)
					req, err := http.NewRequest(http.MethodPost, "http://api/charges", body)
					require.NoError(t, err)
					var copies []*opaque
					switch kind {
					case "length known":
						req.ContentLength = int64(len(text))
					case "GetBody":
						req.ContentLength = int64(len(text))
						req.GetBody = func() (io.ReadCloser, error) {
							copies = append(copies, newOpaque(text))
							return copies[len(copies)-1], nil
						}
					case "NoBody length lies":
						req.ContentLength = 3
					}
					req, tr := op(req)
					if tr == nil {
						tr = r.transport
					} else {
						tr.Base = r.base
					}
					resp, err := tr.RoundTrip(req)
					if err == nil {
						require.Equal(t, "Layer answers by itself", name)
						resp.Body.Close()
					}
					closedOnce(t, body, name)
					for _, c := range copies {
						closedOnce(t, c, "a copy of GetBody")
					}
					require.Zero(t, r.count())
				}, created)
			})
		}
	}
}
