package mockserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// dialKey carries the step of a request whose connection a fault concerns.
type dialKey struct{}

// Dial connects to the server, whatever the address says: it fits
// http.Transport.DialContext and makes clients of other kinds reach a server in
// memory. What dial and handshake faults do to such a connection is scripted by
// On("/") without a key: no request is known yet.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	st, _ := ctx.Value(dialKey{}).(*step)
	if st == nil {
		st = s.planUnknown()
	}
	for _, f := range s.meet(st, Dial) {
		switch f.action {
		case "refuse":
			return nil, refused(s.listenAddr())
		case "hang", "delay":
			if err := s.stall(ctx, f); err != nil {
				return nil, &net.OpError{Op: "dial", Net: network, Addr: s.listenAddr(), Err: err}
			}
		}
	}
	s.mu.Lock()
	s.dialling++
	s.mu.Unlock()
	c, err := s.dialRaw(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialling--
	if err == nil {
		s.dialled[c.LocalAddr().String()] = st
	}
	s.dialDone.Broadcast()
	return c, err
}

func (s *Server) dialRaw(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	m, addr := s.memory, s.listener.Addr()
	s.mu.Unlock()
	if m != nil {
		return m.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr.String())
}

// stall holds a dial.
func (s *Server) stall(ctx context.Context, f clause) error {
	var elapsed <-chan time.Time
	if f.action == "delay" {
		t := time.NewTimer(f.wait)
		defer t.Stop()
		elapsed = t.C
	}
	select {
	case <-elapsed:
		return nil
	case <-s.closed.Done():
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meet returns the faults that a step has at a point of the connection, and notes
// that they were met.
func (s *Server) meet(st *step, p Point) (due []clause) {
	if st == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range st.clauses {
		if c.at == p {
			st.used[i] = true
			due = append(due, c)
		}
	}
	return due
}

// touches reports whether the step concerns the connection.
func (st *step) touches() bool {
	if st != nil {
		for _, c := range st.clauses {
			if c.at == Dial || c.at == Handshake {
				return true
			}
		}
	}
	return false
}

// planUnknown finds what a connection meets of which no request is known.
func (s *Server) planUnknown() *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range s.scripts {
		if sc.pattern == "/" && sc.key == nil && sc.caller == nil {
			if st := sc.step(scope{}, "", false); st.touches() {
				return sc.step(scope{}, "", true)
			}
		}
	}
	return nil
}

// claimDialled returns what the accepted connection brings with it. A connection
// of one of the own clients may be accepted before its dial has returned.
func (s *Server) claimDialled(raw net.Conn) *step {
	from := raw.RemoteAddr().String()
	s.mu.Lock()
	for {
		st, own := s.dialled[from]
		if own || s.dialling == 0 {
			delete(s.dialled, from)
			s.mu.Unlock()
			if own {
				return st
			}
			return s.planUnknown()
		}
		s.dialDone.Wait()
	}
}

// listen opens the network.
func (s *Server) listen(addr string) (net.Listener, error) {
	if s.memory != nil {
		s.memory = newMemory()
		return s.memory, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	return l, nil
}

// accept takes connections until the listener is closed.
func (s *Server) accept(l net.Listener) {
	for {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		if _, ok := s.begin(); !ok {
			_ = raw.Close()
			return
		}
		go func() {
			defer s.under.Done()
			s.welcome(raw)
		}()
	}
}

// welcome lets a connection through its faults and hands it to http.Server.
func (s *Server) welcome(raw net.Conn) {
	c := &conn{Conn: raw, raw: raw, s: s, closed: make(chan struct{})}
	if !s.addConn(c) {
		_ = raw.Close()
		return
	}
	st := s.claimDialled(raw)
	for _, f := range s.meet(st, Dial) {
		switch f.action {
		case "refuse": // too late for that
			reset(raw)
			_ = c.Close()
			return
		case "drop", "reset": // at the first byte: net/http itself races with an earlier end
			_, _ = raw.Read(make([]byte, 1))
			if f.action == "reset" {
				reset(raw)
			}
			linger(raw)
			_ = c.Close()
			return
		}
	}
	if s.authority != nil {
		t, err := s.handshake(s.closed, raw, s.meet(st, Handshake))
		if err != nil {
			_ = c.Close()
			return
		}
		state := t.ConnectionState()
		c.Conn, c.state = t, &state
	}
	if s.http2 {
		c.frames = newFrames(&c.wmu)
	}
	select {
	case s.ready.conns <- c:
	case <-s.closed.Done():
		_ = c.Close()
	}
}

// readyListener hands connections to http.Server.
type readyListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (l *readyListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *readyListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *readyListener) Addr() net.Addr { return l.addr }

// target finds what a request of one of the own clients meets before it is sent.
func (s *Server) target(r *http.Request, key string, stamp string) *step {
	probe := &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}}
	if probe.Host == "" {
		probe.Host = r.URL.Host
	}
	if !strings.HasPrefix(probe.URL.Path, "/") {
		probe.URL.Path = "/" + probe.URL.Path
	}
	who := scope{credential(r.Header), key}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.plan(probe, who, stamp, false).touches() {
		return nil
	}
	s.attempt(who, stamp)
	return s.plan(probe, who, stamp, true)
}
