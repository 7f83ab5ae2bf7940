package idem_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// baseFunc is a Base made of a function.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply is what a stub answers.
func reply(r *http.Request, status int, body string, pairs ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// consume reads and closes a request's body, as a Base must.
func consume(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// opaque is a body that nobody recognises: not in memory, not seekable. It
// counts reads and Closes, and fails the test if it is read after its Close.
type opaque struct {
	r          io.Reader
	reads      atomic.Int32
	closes     atomic.Int32
	afterwards atomic.Int32
}

func newOpaque(text string) *opaque { return &opaque{r: strings.NewReader(text)} }

func (o *opaque) Read(p []byte) (int, error) {
	o.reads.Add(1)
	if o.closes.Load() > 0 {
		o.afterwards.Add(1)
		return 0, errors.New("read after Close")
	}
	return o.r.Read(p)
}

func (o *opaque) Close() error { o.closes.Add(1); return nil }

// closedOnce waits until body was closed, which may be shortly after the call
// has ended, and checks that it is not closed again.
func closedOnce(t testing.TB, body *opaque, what string) {
	t.Helper()
	for range 200 {
		if body.closes.Load() > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	assert.EqualValues(t, 1, body.closes.Load(), "%s: times that the caller's body was closed", what)
}

// keyedPost is a POST of one Intent, body as the caller gives it.
func keyedPost(t testing.TB, in *idem.Intent, url string, body io.Reader) *http.Request {
	t.Helper()
	ctx := context.Background()
	if in != nil {
		ctx = idem.WithIntent(ctx, in)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	require.NoError(t, err)
	return req
}

// alias lets the server of one host answer at another address, with its port.
func (r *rig) alias(host, addr string) {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	r.net.hosts[addr] = r.net.hosts[host+":80"]
}

// dials returns the number of connections that were asked for.
func (r *rig) dials() int {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	return r.net.dials
}

// api is a Client at http://api over the rig's Transport.
func (r *rig) api(t testing.TB, change ...func(*idem.Config)) *idem.Client {
	t.Helper()
	cfg := idem.Config{BaseURL: "http://api", Transport: r.transport}
	for _, f := range change {
		f(&cfg)
	}
	c, err := idem.NewClient(cfg)
	require.NoError(t, err)
	return c
}

// host adds a second server to the rig, at http://name.
func (r *rig) host(name string, steps ...step) *server {
	s := &server{t: r.t, steps: steps, effects: map[string]int{}}
	r.serve(name, s)
	return s
}

// virtual runs f in virtual time, without a rig.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// socketServer is a server on a real port, closed at the end of the test.
func socketServer(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// socketTransport is a Transport with connections of its own and short waits.
func socketTransport(t testing.TB) (*idem.Transport, *http.Transport) {
	t.Helper()
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(base.CloseIdleConnections)
	return &idem.Transport{Base: base, MaxAttempts: 3, Backoff: idem.Exponential(2*time.Millisecond, 10*time.Millisecond)}, base
}

// told is what OnAttempt was told of.
type told struct {
	mu   sync.Mutex
	list []idem.Attempt
}

func (l *told) hook(_ context.Context, a idem.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, a)
}

func (l *told) all() []idem.Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]idem.Attempt(nil), l.list...)
}
