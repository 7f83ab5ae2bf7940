package mockserver

import (
	"fmt"
	"net"
	"sync"
)

// listen opens the network.
func (s *Server) listen(addr string) (net.Listener, error) {
	if s.memory != nil {
		s.memory = newMemory()
		return s.memory, nil
	}
	l, err := new(net.ListenConfig).Listen(s.closed, "tcp", addr)
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
	if s.http2 {
		c.frames = newFrames(c)
	}
	if !s.addConn(c) {
		_ = raw.Close()
		return
	}
	p := s.claimDialled(raw)
	if p == nil {
		p = &dialPlan{step: &step{}}
	}
	for _, f := range p.clauses {
		if f.at != Dial {
			continue
		}
		switch f.action {
		case "refuse": // too late for that
			reset(raw)
			_ = c.Close()
			return
		case "drop", "reset": // not before the first byte: net/http itself races with that
			c.silent = true
			c.awaitFirst()
			if f.action == "reset" {
				reset(raw)
			}
			linger(raw)
			_ = c.Close()
			return
		}
	}
	if s.authority != nil {
		due, _ := s.meet(p, Handshake)
		t, err := s.handshake(s.closed, raw, due)
		if err != nil {
			_ = c.Close()
			return
		}
		state := t.ConnectionState()
		c.Conn, c.state = t, &state
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
