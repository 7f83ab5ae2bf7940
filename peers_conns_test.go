package idem_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// Three attempts with a 64 KiB body of an error use one connection.
func TestPeers_DrainedConnection(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			if !keyed {
				in = nil
			}
			method := http.MethodPut
			req := keyedPost(t, in, "http://api/x", strings.NewReader("{}"))
			req.Method = method
			_, _, err := r.send(req)
			require.NoError(t, err)
			require.Equal(t, 3, r.count())
			require.Equal(t, 1, r.dials())
		}, statusBody(503, strings.Repeat("x", 64<<10)))
	}
}

// Giving up on host A leaves the pooled connection of host B alone, also after
// many calls that gave up.
func TestPeers_OtherHostsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		b := r.host("b", created)
		for range 5 {
			_, _, _ = r.post(t.Context(), idem.Open(), "{}")
			_, _, err := r.send(keyedPost(t, idem.Open(), "http://b/x", strings.NewReader("{}")))
			require.NoError(t, err)
		}
		for _, h := range b.all() {
			require.Same(t, b.all()[0].conn, h.conn)
		}
	}, lost)
}

// The caller's body is closed exactly once on every path on which something is
// sent; the request is left as it was.
func TestPeers_BodyClosedOnce(t *testing.T) {
	for name, steps := range map[string][]step{
		"answered": {created}, "422": {status(422)}, "retried": {status(503), created}, "exhausted": {status(503)},
		"drop": {drop}, "lost, then replayed": {lost, created}, "cut": {cut(1, 5), created}, "cut every time": {cut(1, 5)},
		"307": {moved(307, "/b"), created}, "303": {moved(303, "/b"), status(200)}, "307 elsewhere": {moved(307, "http://other/")},
		"wait too long": {status(503, "Retry-After", "9999")}, "malformed": {raw("x"), created},
	} {
		for _, keyed := range []bool{true, false} {
			for _, kind := range []string{"stream", "long stream", "GetBody"} {
				t.Run(fmt.Sprintf("%s, %s, keyed %v", name, kind, keyed), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						r.host("other", created)
						r.transport.MaxBody = 10
						text := "hello"
						if kind == "long stream" {
							text = strings.Repeat("x", 100)
						}
						in := idem.Open()
						if !keyed {
							in = nil
						}
						body := newOpaque(text)
						req := keyedPost(t, in, "http://api/x", body)
						var mu sync.Mutex
						var copies []*opaque
						if kind == "GetBody" {
							req.ContentLength = int64(len(text))
							req.GetBody = func() (io.ReadCloser, error) {
								mu.Lock()
								defer mu.Unlock()
								copies = append(copies, newOpaque(text))
								return copies[len(copies)-1], nil
							}
						}
						before := req.Header.Clone()
						resp, err := r.client().Do(req)
						if err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
						require.Equal(t, before, req.Header)
						if r.count() > 1 && strings.HasPrefix(name, "30") || name == "303" || name == "307 elsewhere" {
							// http.Client itself closes the body of a request
							// that it redirects, after RoundTrip has.
							require.Contains(t, []int32{1, 2}, body.closes.Load())
						} else {
							closedOnce(t, body, name)
						}
						require.Zero(t, body.afterwards.Load(), "read after Close")
						mu.Lock()
						defer mu.Unlock()
						for _, c := range copies {
							closedOnce(t, c, "a copy of GetBody")
						}
						if keyed && r.all()[0].method == "POST" && name != "303" {
							r.oneKey()
						}
					}, steps...)
				})
			}
		}
	}
}
