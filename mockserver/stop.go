package mockserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Close ends every connection, every request that is held and every goroutine of
// the server, within a second. It returns an error if a handler did not return
// by then. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed.Err() != nil {
		s.mu.Unlock()
		return nil
	}
	s.close()
	_ = s.listener.Close()
	s.hub.wake()
	scopes := slices.Collect(maps.Values(s.scopes))
	s.dialDone.Broadcast()
	conns, transports := s.cutAll(), s.transports
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	_ = s.hs.Close()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.under.Wait() // then no scope begins anything
		for _, sub := range scopes {
			sub.under.Wait()
		}
	}()
	limit := time.NewTimer(900 * time.Millisecond)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return errors.New("mockserver: Close: a handler has not returned")
	}
}

// Restart is the death of the server's process and a new one in its place: what
// is dialled meanwhile is refused, every connection is cut, requests that are
// held or at work get no answer and their claims stay until the lease is over.
// What is stored stays (see [Server.Forget]), and so does the answer of a request
// that has had an effect by then: a good server commits both together. One that
// does not is made with "crash@worked". The address is the same.
func (s *Server) Restart() error {
	s.mu.Lock()
	if s.closed.Err() != nil {
		s.mu.Unlock()
		return errClosed()
	}
	s.kill()
	s.process, s.kill = context.WithCancel(s.closed)
	s.holds = nil
	if s.listener == nil { // a scope: its process ends, the network is not its own
		s.mu.Unlock()
		return nil
	}
	_ = s.listener.Close()
	conns := s.cutAll()
	l, err := s.listen(s.addr)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	s.listener = l
	s.under.Add(1)
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	go func() { defer s.under.Done(); s.accept(l) }()
	return nil
}

// begin enters a request or a connection; whoever gets true calls under.Done. It
// returns what ends with the process.
func (s *Server) begin() (<-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return nil, false
	}
	s.under.Add(1)
	return s.process.Done(), true
}

// addConn enters a connection; false if the server is closed.
func (s *Server) addConn(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Err() != nil {
		return false
	}
	s.nconns++
	c.id = s.nconns
	s.conns[c] = true
	return true
}

func (s *Server) forgetConn(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	var begun []headID
	for id := range s.heads {
		if id.c == c {
			begun = append(begun, id)
		}
	}
	s.mu.Unlock()
	for _, id := range begun {
		s.endHead(id, int(c.refused.Load()), c.gone.Load() && c.refused.Load() == 0)
	}
}

// cutAll takes all connections out; the caller closes them. s.mu is held.
func (s *Server) cutAll() (list []*conn) {
	for c := range s.conns {
		list = append(list, c)
	}
	clear(s.conns)
	return list
}

func errClosed() error { return errors.New("mockserver: the server is closed") }
