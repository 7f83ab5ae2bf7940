package idem_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubernetes/kubernetes#113933. The first write may still be reading when the
// second attempt begins; -race sees whether they share a reader.
func TestCase_BODY_4(t *testing.T) {
	const size = 4 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for name, build := range map[string]func(*http.Request){
		"at an offset": func(r *http.Request) { r.Body = &position{data: data}; r.ContentLength = size },
		"GetBody": func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return &position{data: data}, nil }
			r.Body, _ = r.GetBody()
			r.ContentLength = size
		},
		"in memory": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), size
		},
		"stream": func(r *http.Request) { r.Body, r.ContentLength = &opaque{r: bytes.NewReader(data)}, size },
	} {
		t.Run(name, func(t *testing.T) {
			var hits atomic.Int32
			var mu sync.Mutex
			keys := map[string]int{}
			s := socketServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				keys[r.Header.Get("Idempotency-Key")]++
				mu.Unlock()
				if hits.Add(1) < 3 {
					w.WriteHeader(503) // without reading
					return
				}
				got, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(got, data) {
					w.WriteHeader(400)
					return
				}
				w.WriteHeader(201)
			}))
			for range 5 {
				hits.Store(0)
				tr, _ := socketTransport(t)
				tr.MaxAttempts = 10 // an early answer may be hidden by a write error
				tr.MaxBody = size
				in := idem.Open()
				req := keyedPost(t, in, s.URL, nil)
				build(req)
				resp, err := (&http.Client{Transport: tr}).Do(req)
				require.NoError(t, err)
				resp.Body.Close()
				require.Equal(t, 201, resp.StatusCode)
				mu.Lock()
				require.Len(t, keys, 1)
				clear(keys)
				mu.Unlock()
				if p, ok := req.Body.(*position); ok {
					assert.Zero(t, p.lateSeeks.Load(), "the shared position was moved")
					if name == "at an offset" {
						assert.Zero(t, p.reads.Load())
						assert.Eventually(t, func() bool { return p.closes.Load() == 1 }, 1e9, 1e6)
					}
				}
			}
		})
	}
}

// golang/go#51907
func TestCase_BODY_5(t *testing.T) {
	const size = 2 << 20
	s := socketServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200) }))
	for name, file := range map[string]bool{"GetBody": false, "at an offset": true} {
		t.Run(name, func(t *testing.T) {
			tr, _ := socketTransport(t)
			in := idem.Open()
			var mu sync.Mutex
			var all []*position
			make1 := func() *position {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, &position{data: make([]byte, size)})
				return all[len(all)-1]
			}
			req := keyedPost(t, in, s.URL, make1())
			req.ContentLength = size
			if !file {
				req.GetBody = func() (io.ReadCloser, error) { return make1(), nil }
			}
			for range 3 { // the same request again, while a write may still go on
				req.Body = make1()
				resp, err := (&http.Client{Transport: tr}).Do(req)
				if err != nil {
					theError(t, err)
					continue
				}
				resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			for i, p := range all {
				assert.Zero(t, p.lateSeeks.Load(), "reader %d was rewound while in use", i)
				if !file {
					assert.Zero(t, p.seeks.Load(), "reader %d was rewound", i)
				}
			}
		})
	}
}

// golang/go#48341
func TestCase_BODY_13(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for name, spoil := range map[string]func(*http.Request){
			"header value": func(r *http.Request) { r.Header["X-A"] = []string{"a\nb"} },
			"header name":  func(r *http.Request) { r.Header["X A"] = []string{"b"} },
			"trailer name": func(r *http.Request) { r.Trailer = http.Header{"X A": nil} },
			"method":       func(r *http.Request) { r.Method = "P\nT" },
			"keyed": func(r *http.Request) {
				*r = *r.WithContext(idem.WithIntent(r.Context(), idem.Open()))
				r.Header["X-A"] = []string{"a\x00b"}
			},
		} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				var hits atomic.Int32
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
				s.EnableHTTP2 = h2
				s.StartTLS()
				t.Cleanup(s.Close)
				calls := 0
				tr := &idem.Transport{Base: s.Client().Transport, OnAttempt: func(context.Context, idem.Attempt) { calls++ }}
				// A connection of the right protocol is in the pool.
				resp, err := s.Client().Get(s.URL)
				require.NoError(t, err)
				resp.Body.Close()
				require.Equal(t, h2, resp.ProtoMajor == 2)
				hits.Store(0)
				body := newOpaque("hello")
				req, err := http.NewRequest(http.MethodPost, s.URL, body)
				require.NoError(t, err)
				spoil(req)
				_, err = tr.RoundTrip(req) //nolint:bodyclose // there is none
				e := theError(t, err)
				require.LessOrEqual(t, calls, 1)
				require.Zero(t, hits.Load())
				if e.Sends == 0 { // net/http sends a bad method on HTTP/2, and the server breaks off
					require.Equal(t, idem.NotExecuted, e.Outcome)
				} else {
					require.Equal(t, "method", name)
					require.Equal(t, idem.OutcomeUnknown, e.Outcome)
				}
				closedOnce(t, body, name)
			})
		}
	}
}
