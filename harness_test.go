package idem_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// A hit is one request that reached the server, whole.
type hit struct {
	method, path string
	keys         []string // the values of all key headers, of any case
	header       http.Header
	body         string
	at           time.Time
	conn         net.Conn
}

// A step is what the server does with one hit. It may call s.exec to do the work.
type step func(s *server, w http.ResponseWriter, r *http.Request, h hit)

// A server plays steps, one a hit, the last one for ever, and keeps the contract
// where a step calls exec: one effect a key, the stored answer afterwards.
type server struct {
	t     testing.TB
	steps []step

	mu      sync.Mutex
	hits    []hit
	effects map[string]int // by key; "" for requests without one

}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client left in the middle: not a hit
	}
	h := hit{method: r.Method, path: r.URL.RequestURI(), header: r.Header.Clone(), body: string(body), at: time.Now()}
	h.conn, _ = r.Context().Value(connKey{}).(net.Conn)
	for name, values := range r.Header {
		if strings.EqualFold(name, "Idempotency-Key") {
			h.keys = append(h.keys, values...)
		}
	}
	s.mu.Lock()
	n := len(s.hits)
	s.hits = append(s.hits, h)
	step := s.steps[min(n, len(s.steps)-1)]
	s.mu.Unlock()
	step(s, w, r, h)
}

// exec does the work, once a key.
func (s *server) exec(h hit) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.Join(h.keys, ",")
	if key != "" && s.effects[key] > 0 {
		return false
	}
	s.effects[key]++
	return true
}

// count returns the number of hits so far.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hits)
}

// all returns the hits so far.
func (s *server) all() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]hit(nil), s.hits...)
}

// done returns the number of effects, over all keys.
func (s *server) done() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range maps.Values(s.effects) {
		n += e
	}
	return n
}

// gaps returns the times between one hit and the next.
func (s *server) gaps() (gaps []time.Duration) {
	hits := s.all()
	for i := 1; i < len(hits); i++ {
		gaps = append(gaps, hits[i].at.Sub(hits[i-1].at))
	}
	return gaps
}

// oneKey checks what holds for every call with an Intent: each hit has the same
// key on exactly one line, and the same bytes.
func (s *server) oneKey() {
	s.t.Helper()
	hits := s.all()
	for i, h := range hits {
		require.Len(s.t, h.keys, 1, "hit %d", i+1)
		require.Equal(s.t, hits[0].keys, h.keys, "hit %d has another key", i+1)
		require.Equal(s.t, hits[0].body, h.body, "hit %d has another body", i+1)
	}
}

// answer sends a status with header pairs and a body.
func answer(w http.ResponseWriter, status int, body string, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		w.Header().Set(pairs[i], pairs[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// status answers without doing anything.
func status(code int, pairs ...string) step { return statusBody(code, "", pairs...) }

func statusBody(code int, body string, pairs ...string) step {
	return func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) { answer(w, code, body, pairs...) }
}

// created does the work and answers 201, or replays that.
func created(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
	if !s.exec(h) {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	answer(w, http.StatusCreated, `{"id":"ch_1"}`, "Content-Type", "application/json")
}

// drop closes the connection without an answer; lost does the work before.
func drop(*server, http.ResponseWriter, *http.Request, hit) { panic(http.ErrAbortHandler) }

func lost(s *server, _ http.ResponseWriter, _ *http.Request, h hit) {
	s.exec(h)
	panic(http.ErrAbortHandler)
}

// stall keeps the request without an answer until the client leaves.
func stall(_ *server, _ http.ResponseWriter, r *http.Request, _ hit) { <-r.Context().Done() }

// cut does the work and sends k bytes of a body of n.
func cut(k, n int) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, strings.Repeat("x", k))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// raw does the work, writes bytes as they are and closes.
func raw(text string) step {
	return func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

type connKey struct{}

// pipes is a network in memory, for synctest bubbles: hosts by name.
type pipes struct {
	mu    sync.Mutex
	hosts map[string]*pipeListener
	dials int
}

type pipeListener struct {
	host  string
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.gone) }); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr(l.host) }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

var errRefused = errors.New("connection refused")

func (p *pipes) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	p.dials++
	l := p.hosts[addr]
	p.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: errRefused}
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.gone:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: errRefused}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Addr: pipeAddr(addr), Err: ctx.Err()}
	}
}

// A rig is a server, a network and a Transport over them, in one bubble.
type rig struct {
	*server
	net       *pipes
	base      *http.Transport
	transport *idem.Transport
	stops     map[string]func()
}

// newRig serves steps at http://api. Its Transport waits 10 to 50 ms and makes
// at most 3 attempts; change it before the first use.
func newRig(t testing.TB, steps ...step) *rig {
	t.Helper()
	r := &rig{net: &pipes{hosts: map[string]*pipeListener{}}, stops: map[string]func(){}}
	r.base = &http.Transport{DialContext: r.net.DialContext, MaxIdleConnsPerHost: 100}
	r.transport = &idem.Transport{Base: r.base, MaxAttempts: 3, Backoff: idem.Exponential(10*time.Millisecond, 50*time.Millisecond)}
	r.server = &server{t: t, steps: steps, effects: map[string]int{}}
	r.serve("api", r.server)
	t.Cleanup(func() {
		r.base.CloseIdleConnections()
		for _, stop := range r.stops {
			stop()
		}
	})
	return r
}

// serve lets handler answer at http://host.
func (r *rig) serve(host string, handler http.Handler) {
	l := &pipeListener{host: host, conns: make(chan net.Conn), gone: make(chan struct{})}
	r.net.mu.Lock()
	r.net.hosts[host+":80"] = l
	r.net.mu.Unlock()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler: handler, Protocols: protocols,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	go func() { _ = srv.Serve(l) }()
	r.stops[host] = func() {
		_ = srv.Close()
		_ = l.Close()
		r.net.mu.Lock()
		defer r.net.mu.Unlock()
		delete(r.net.hosts, host+":80")
	}
}

// down stops answering at http://host: dials are refused from now on.
func (r *rig) down(host string) { r.stops[host]() }

// client is an http.Client over the rig's Transport.
func (r *rig) client() *http.Client { return &http.Client{Transport: r.transport} }

// post sends body as one of in (nil: without an Intent) and returns the status,
// the whole body of the answer and the error.
func (r *rig) post(ctx context.Context, in *idem.Intent, body string) (*http.Response, string, error) {
	if in != nil {
		ctx = idem.WithIntent(ctx, in)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api/charges", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	return r.send(req)
}

// send sends req through http.Client and reads the answer.
func (r *rig) send(req *http.Request) (*http.Response, string, error) {
	resp, err := r.client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

// warm leaves n idle connections in the pool.
func (r *rig) warm(t testing.TB, n int) {
	t.Helper()
	r.server.mu.Lock()
	steps := r.steps
	gate := make(chan struct{})
	r.steps = []step{func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) { <-gate; w.WriteHeader(204) }}
	r.server.mu.Unlock()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			resp, err := (&http.Client{Transport: r.base}).Get("http://api/warm")
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	synctest.Wait()
	close(gate)
	wg.Wait()
	synctest.Wait()
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	require.Len(t, r.hits, n, "warm-up")
	r.hits, r.steps = nil, steps
}

// bubble runs f in virtual time, with a rig.
func bubble(t *testing.T, f func(t *testing.T, r *rig), steps ...step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newRig(t, steps...)) })
}

// theError returns the *idem.Error in err.
func theError(t testing.TB, err error) *idem.Error {
	t.Helper()
	var e *idem.Error
	require.ErrorAs(t, err, &e)
	return e
}

// countedBody counts its Closes.
type countedBody struct {
	io.Reader
	mu     sync.Mutex
	closes int
}

func newCountedBody(text string) *countedBody {
	return &countedBody{Reader: bytes.NewReader([]byte(text))}
}

func (b *countedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closes++
	return nil
}

func (b *countedBody) closed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closes
}

// since is a time for keys whose past does not matter.
func since() time.Time { return time.Now().Add(-time.Minute) }
