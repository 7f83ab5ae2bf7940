package mockserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// stampHeader carries the stamp of one RoundTrip. net/http sends it again when
// it sends the request again by itself; a client that tries again gets a new one.
const stampHeader = "Mock-Stamp"

// transport is an http.Transport that reaches the server under any host name
// and stamps each RoundTrip.
type transport struct {
	s    *Server
	id   int
	base *http.Transport

	mu   sync.Mutex
	n    int
	cold []*http.Transport
}

// Transport returns a client's transport with a connection pool of its own, one
// for each simulated client process. It reaches the server under any host name
// and trusts its certificates; http.Client.CloseIdleConnections works on it. The
// pool ends with the server. Each RoundTrip carries a stamp that the server
// removes again, so that what net/http sends again by itself is told from an
// attempt, and so that faults of the connection are met by the very attempt they
// are scripted for: such an attempt dials anew, whatever connections are idle.
func (s *Server) Transport() http.RoundTripper {
	t := &transport{s: s, base: &http.Transport{
		DialContext:         s.Dial,
		Protocols:           s.protocols(),
		MaxIdleConnsPerHost: 1 << 16,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	if s.authority != nil {
		t.base.TLSClientConfig = &tls.Config{RootCAs: s.authority.pool()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.id = len(s.transports) + 1
	s.transports = append(s.transports, t)
	return t
}

// Client returns a client with a [Server.Transport] of its own.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// protocols returns what the own clients speak.
func (s *Server) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!s.http2 || s.authority != nil)
	p.SetHTTP2(s.http2 && s.authority != nil)
	p.SetUnencryptedHTTP2(s.http2 && s.authority == nil)
	return p
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	t.n++
	stamp := fmt.Sprintf("%d.%d", t.id, t.n)
	t.mu.Unlock()

	var body []byte
	if r.GetBody != nil && t.s.inBody() {
		if b, err := r.GetBody(); err == nil {
			body, _ = io.ReadAll(b)
			_ = b.Close()
		}
	}
	base, ctx := t.base, r.Context()
	if p := t.s.target(r, t.s.keyOf(r.Header, body), stamp); p != nil {
		base, ctx = t.fresh(), context.WithValue(ctx, dialKey{}, p)
	}
	out := r.WithContext(ctx)
	if out.Header = r.Header.Clone(); out.Header == nil {
		out.Header = http.Header{}
	}
	out.Header.Set(stampHeader, stamp)
	resp, err := base.RoundTrip(out)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// fresh returns a transport without any connection, so that a fault of the
// connection cannot be missed by one that is idle.
func (t *transport) fresh() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.base.Clone()
	t.cold = append(t.cold, c)
	return c
}

// CloseIdleConnections closes what http.Client.CloseIdleConnections asks for.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.base.CloseIdleConnections()
	for _, c := range t.cold {
		c.CloseIdleConnections()
	}
}
