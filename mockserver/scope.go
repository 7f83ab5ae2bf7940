package mockserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// The headers by which a request asks for something of the server. They are
// neither logged nor shown to the handler.
const (
	// faultHeader is the fault that this very request meets, instead of a
	// script's: "reset@stored".
	faultHeader = "Mock-Fault"
	// scopeHeader names a part of the server that has scripts, keys, log, clock
	// and ledger of its own, so that parallel tests share one server.
	scopeHeader = "Mock-Scope"
)

// maxScopes bounds what the names in a header can make the server hold.
const maxScopes = 10000

// scoped returns the scope of that name, which begins with its first use; the
// empty name is the server itself.
func (s *Server) scoped(name string) (*Server, error) {
	if name == "" {
		return s, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.scopes[name]
	switch {
	case sub != nil:
		return sub, nil
	case s.closed.Err() != nil:
		return nil, errClosed()
	case len(s.scopes) >= maxScopes:
		return nil, errors.New("mockserver: there are too many scopes; DELETE /?scope=… ends one")
	}
	sub = &Server{
		URL: s.URL, t: s.t, parent: s, scope: name, hub: s.hub, contract: s.contract, kind: s.kind, spoken: s.spoken,
		given: s.given, http2: s.http2, maxAttempts: s.maxAttempts, changed: make(chan struct{}),
	}
	sub.dialDone = sync.NewCond(&sub.mu)
	sub.closed, sub.close = context.WithCancel(s.closed)
	sub.process, sub.kill = context.WithCancel(sub.closed)
	sub.empty()
	s.scopes[name] = sub
	return sub, nil
}

// serveScope serves a request of a scope.
func (s *Server) serveScope(name string, x *life, h head) {
	if _, ok := s.begin(); !ok {
		panic(http.ErrAbortHandler)
	}
	defer s.under.Done()
	sub, err := s.scoped(name)
	if err != nil {
		http.Error(x.w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	x.s = sub
	x.serve(h)
}

// all returns the server and its scopes by name.
func (s *Server) all() []*Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.SortedFunc(maps.Values(s.scopes), func(a, b *Server) int { return cmp.Compare(a.scope, b.scope) })
	return append([]*Server{s}, list...)
}

// clean makes the server as new: no script, key, request, effect or scope.
// Requests under way get no answer; connections stay. A scope is ended by it.
func (s *Server) clean() {
	s.mu.Lock()
	s.kill()
	s.process, s.kill = context.WithCancel(s.closed)
	s.starts++
	s.empty()
	subs := s.scopes
	if s.parent == nil {
		s.scopes = map[string]*Server{}
	}
	s.notify()
	s.mu.Unlock()
	for _, sub := range subs {
		sub.close()
	}
	if p := s.parent; p != nil {
		s.close()
		p.mu.Lock()
		delete(p.scopes, s.scope)
		p.mu.Unlock()
	}
}

// empty sets what a server knows to nothing. s.mu is held, or nobody else has s.
func (s *Server) empty() {
	s.handler = s.given
	if s.handler == nil {
		s.handler = Orders()
	}
	s.ahead, s.scripts, s.log, s.effects, s.holds, s.answers = 0, nil, nil, nil, nil, 0
	s.connected, s.attempts = map[attemptPoint]bool{}, map[scope]int{}
	s.tallies, s.heads = map[scope]tally{}, map[headID]head{}
	s.stamps, s.sends = map[string]int{}, map[string]int{}
	s.claims, s.beliefs = map[claimID]*claim{}, map[string]Belief{}
}

// wrongFault answers a request whose Mock-Fault is none.
func wrongFault(err error) *answer {
	body, _ := json.Marshal(map[string]any{"type": "about:blank", "title": err.Error(), "status": http.StatusBadRequest}) //nolint:errchkjson // strings
	return &answer{
		kind: Injected, status: http.StatusBadRequest,
		header: http.Header{"Content-Type": {"application/problem+json"}}, body: append(body, '\n'),
	}
}
