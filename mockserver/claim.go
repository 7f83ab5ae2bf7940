package mockserver

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/idem-go/idem/contract"
)

// claimID is whose key it is, to the key layer.
type claimID struct {
	scope, key string
	print      string // with Kind.PerRequest
}

// claim is what the key layer knows of one key.
type claim struct {
	print  string    // of the first request
	of     scope     // of the request that took it last
	born   time.Time // when it came; the window runs from here
	lease  time.Time // until then its worker is taken to be alive
	holder *life     // who works on it; nil once the answer is kept
	kept   *answer
}

// enter asks the key layer whether this request may work. It returns an answer
// if not; otherwise the claim is x's, until settle. It reports false if the
// process ended while the request waited for another.
func (s *Server) enter(x *life) (found *answer, alive bool) {
	x.identify()
	err := s.until(x.end, func() bool {
		var wait bool
		found, wait = s.claim(x)
		return !wait
	})
	return found, err == nil
}

// identify finds out whose key it is and what makes the request the same as
// another. The functions of a Kind are called outside of every lock.
func (x *life) identify() {
	k := x.s.kind
	x.claim, x.print = claimID{scope: x.rec.Caller, key: x.rec.Key}, x.rec.Print
	if k.Scope != nil {
		x.claim.scope = k.Scope(x.r)
	}
	if k.Print != nil {
		x.print = k.Print(x.r, x.rec.Body)
	}
	if k.PerRequest {
		x.claim.print = x.print
	}
}

// claim is one look at the key, and takes the claim in the same moment if it is
// free. s.mu is held.
func (s *Server) claim(x *life) (found *answer, wait bool) {
	now := s.now()
	c := s.claims[x.claim]
	if c != nil && s.contract.Window > 0 && now.Sub(c.born) >= s.contract.Window {
		c = nil // forgotten: the same key is a new request
	}
	switch {
	case c == nil:
		c = &claim{print: x.print, born: now}
		s.claims[x.claim] = c
	case c.print != x.print && !s.kind.Loose:
		return s.refusal(contract.Mismatch, nil), false
	case c.kept != nil && (s.kind.Done || s.spoken.again != nil):
		return s.refusal(contract.Done, c.kept), false
	case c.kept != nil:
		return s.replay(c, x.rec.Key), false
	case now.Before(c.lease) && s.kind.Wait:
		// Nothing else may happen before the lease is over.
		time.AfterFunc(c.lease.Sub(now), func() { s.mu.Lock(); s.notify(); s.mu.Unlock() })
		return nil, true
	case now.Before(c.lease):
		return s.refusal(contract.InProgress, nil), false
	}
	c.holder, c.lease = x, now.Add(s.contract.Lease) // a stale claim changes hands
	c.of = scope{x.rec.Caller, x.rec.Key}
	return nil, false
}

// settle ends x's claim with its answer: kept, or the key is free again. A
// worker that has lost its claim changes nothing.
func (s *Server) settle(x *life, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[x.claim]
	if c == nil || c.holder != x {
		return
	}
	c.holder = nil
	switch {
	case s.kind.Poison != 0 && a.status >= s.kind.Poison:
	// What the contract lists as given before any work is not an outcome of it.
	case s.contract.Stored.Keeps(a.status) && !s.contract.Refuses(a.status):
		c.kept = a
	default:
		delete(s.claims, x.claim)
	}
	s.notify()
}

// replay is the stored answer with the contract's mark.
func (s *Server) replay(c *claim, key string) *answer {
	a := *c.kept
	a.kind = Replayed
	a.header = a.header.Clone()
	success := a.status < 300
	if s.kind.Repeat != 0 && success {
		a.status = s.kind.Repeat
	}
	s.mark(a.status, a.header, true, key)
	if !success {
		s.hint(&a, false)
	}
	return &a
}

// mark sets the headers by which the contract tells a replay from a first
// answer: its first marker, as a server has one.
func (s *Server) mark(status int, h http.Header, replayed bool, key string) {
	if len(s.contract.Replayed) == 0 {
		return
	}
	m := s.contract.Replayed[0]
	if m.Success && (status < 200 || status > 299) {
		return
	}
	s.answers++
	switch {
	case m.DiffersFrom != "": // Original-Request and Request-Id
		id := "req_" + strconv.Itoa(s.answers)
		h.Set(m.DiffersFrom, id)
		if h.Get(m.Header) == "" {
			h.Set(m.Header, id)
		}
	case replayed && len(m.Yes) > 0:
		h.Set(m.Header, m.Yes[0])
	case replayed:
		h.Set(m.Header, key)
	case s.contract.PromisesMarker && len(m.No) > 0:
		h.Set(m.Header, m.No[0])
	}
}

// Advance moves the server's clock forward by d, in which keys are forgotten and
// claims go stale. Timers and the clients' clocks stay; in a testing/synctest
// bubble a sleep moves all of them.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.ahead
	if s.ahead += d; d > 0 && s.ahead < before {
		s.ahead = math.MaxInt64 // some 292 years
	}
	s.shifts++
	s.notify()
}

// Forget drops every claim and every stored answer, as a server does that fails
// over to a replica without them. The log and the ledger stay.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.claims)
	s.shifts++
	s.notify()
}
