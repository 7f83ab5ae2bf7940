package mockserver

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Dial connects to the server, whatever the address says: it fits
// http.Transport.DialContext and lets clients of other kinds reach a server in
// memory. What dial and handshake faults do to such a connection is scripted by
// On("/") without a key, as no request is known yet.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	p, _ := ctx.Value(dialKey{}).(*dialPlan)
	if p == nil {
		p = s.planUnknown()
	}
	due, held := s.meet(p, Dial)
	for _, f := range due {
		switch f.action {
		case "refuse":
			return nil, refused(s.listenAddr())
		case "hang", "delay":
			if err := s.stall(ctx, f, held); err != nil {
				return nil, opError("dial", nil, s.listenAddr(), err)
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
		s.dialled[c.LocalAddr().String()] = p
	}
	s.dialDone.Broadcast()
	return c, err
}

// dialPlan is what a connection meets, and the attempt that it is dialled for.
type dialPlan struct {
	*step
	key     string
	attempt int
}

// dialKey carries the dialPlan of a request whose connection a fault concerns.
type dialKey struct{}

// attemptPoint is a point of the connection of an attempt.
type attemptPoint struct {
	key     string
	attempt int
	point   Point
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

// stall lets a dial wait.
func (s *Server) stall(ctx context.Context, f clause, held *hold) error {
	var elapsed <-chan time.Time
	var released chan struct{}
	if f.action == "delay" {
		t := time.NewTimer(f.wait)
		defer t.Stop()
		elapsed = t.C
	} else {
		released = held.released
		defer s.dropHold(held)
	}
	select {
	case <-elapsed:
		return nil
	case <-released:
		return nil
	case <-s.closed.Done():
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meet returns the faults at a point of the connection, and notes that it was
// reached.
func (s *Server) meet(p *dialPlan, at Point) (due []clause, held *hold) {
	if p == nil || !p.touches() {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range p.clauses {
		if c.at == at {
			p.used[i] = true
			due = append(due, c)
			if c.action == "hang" {
				held = s.addHold(p.key, p.attempt)
			}
		}
	}
	s.connected[attemptPoint{p.key, p.attempt, at}] = true
	s.notify()
	return due, held
}

// touches reports whether the step concerns the connection.
func (st *step) touches() bool {
	return st != nil && slices.ContainsFunc(st.clauses, func(c clause) bool {
		return c.at == Dial || c.at == Handshake
	})
}

// planUnknown finds what a connection meets of which no request is known.
func (s *Server) planUnknown() *dialPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range s.scripts {
		if sc.pattern == "/" && sc.key == nil && sc.caller == nil {
			if st := sc.step(scope{}, "", false); st.touches() {
				return &dialPlan{step: sc.step(scope{}, "", true)}
			}
		}
	}
	return nil
}

// claimDialled returns what the accepted connection brings with it. A connection
// of one of the own clients may be accepted before its dial has returned.
func (s *Server) claimDialled(raw net.Conn) *dialPlan {
	from := raw.RemoteAddr().String()
	s.mu.Lock()
	for {
		p, own := s.dialled[from]
		if own || s.dialling == 0 {
			delete(s.dialled, from)
			s.mu.Unlock()
			if own {
				return p
			}
			return s.planUnknown()
		}
		s.dialDone.Wait()
	}
}

// target finds what the connection of a request meets, before the request is
// sent; nil for nothing. Only then the attempt is counted already.
func (s *Server) target(r *http.Request, key string, stamp string) *dialPlan {
	probe := &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}}
	if probe.Host == "" {
		probe.Host = r.URL.Host
	}
	if probe.Method == "" {
		probe.Method = http.MethodGet
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
	return &dialPlan{s.plan(probe, who, stamp, true), key, s.attempt(who, stamp)}
}
