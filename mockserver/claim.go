package mockserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem/contract"
)

// A Kind says in what a server departs from its contract in ways that
// [contract.Contract] has no word for. The zero Kind keeps it. Other departures
// are contracts: Stored, Lease and Replayed say them, Methods that is empty and
// not nil ignores keys, and [Server.Forget] loses them.
type Kind struct {
	// Wait lets a request wait while the first with its key is in progress,
	// instead of being refused.
	Wait bool
	// Loose takes any request under a key for the first one: no mismatch.
	Loose bool
	// Done answers a repeat of finished work with the contract's own answer for
	// it, the first of its Answers that means Done, instead of a replay.
	Done bool
	// Repeat is the status of a replay, over the stored header and body;
	// zero: the stored status.
	Repeat int
}

// claim is what the key layer knows of one key of one caller.
type claim struct {
	print  string    // of the first request
	born   time.Time // when it came; the window runs from here
	lease  time.Time // until then its worker is taken to be alive
	holder *life     // who works on it; nil once the answer is kept
	kept   *answer
}

// enter asks the key layer whether this request may work. It returns an answer
// if not; otherwise the claim is x's, until settle. It reports false if the
// process ended while the request waited for another.
func (s *Server) enter(x *life) (found *answer, alive bool) {
	err := s.until(x.end, func() bool {
		var wait bool
		found, wait = s.claim(x)
		return !wait
	})
	return found, err == nil
}

// claim is one look at the key, and takes the claim in the same moment if it is
// free. s.mu is held.
func (s *Server) claim(x *life) (found *answer, wait bool) {
	who, now := scope{x.rec.Caller, x.rec.Key}, s.now()
	c := s.claims[who]
	if c != nil && s.contract.Window > 0 && now.Sub(c.born) >= s.contract.Window {
		c = nil // forgotten: the same key is a new request
	}
	switch {
	case c == nil:
		c = &claim{print: x.rec.Print, born: now}
		s.claims[who] = c
	case c.print != x.rec.Print && !s.kind.Loose:
		return s.refusal(contract.Mismatch), false
	case c.kept != nil && s.kind.Done:
		return s.refusal(contract.Done), false
	case c.kept != nil:
		return s.replay(c, x.rec.Key), false
	case now.Before(c.lease) && s.kind.Wait:
		// Nothing else may happen before the lease is over.
		time.AfterFunc(c.lease.Sub(now), func() { s.mu.Lock(); s.notify(); s.mu.Unlock() })
		return nil, true
	case now.Before(c.lease):
		return s.refusal(contract.InProgress), false
	}
	c.holder, c.lease = x, now.Add(s.contract.Lease) // a stale claim changes hands
	return nil, false
}

// settle ends x's claim with its answer: kept, or the key is free again. A
// worker that has lost its claim changes nothing.
func (s *Server) settle(x *life, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := scope{x.rec.Caller, x.rec.Key}
	c := s.claims[who]
	if c == nil || c.holder != x {
		return
	}
	c.holder = nil
	// What the contract lists as given before any work is not an outcome of it.
	if s.contract.Stored.Keeps(a.status) && !s.contract.Refuses(a.status) {
		c.kept = a
	} else {
		delete(s.claims, who)
	}
	s.notify()
}

// replay is the stored answer with the contract's mark.
func (s *Server) replay(c *claim, key string) *answer {
	a := *c.kept
	a.kind = Replayed
	a.header = a.header.Clone()
	if s.kind.Repeat != 0 {
		a.status = s.kind.Repeat
	}
	s.mark(a.status, a.header, true, key)
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

// refusal is the contract's own answer with this meaning.
func (s *Server) refusal(means contract.Meaning) *answer {
	status, kind, title := http.StatusConflict, Busy, "A request is outstanding for this key"
	switch means {
	case contract.Mismatch:
		status, kind, title = http.StatusUnprocessableEntity, Mismatched, "This key is already used with another request"
	case contract.KeyRefused:
		status, kind, title = http.StatusBadRequest, Refused, "This key is not allowed"
	case contract.Done:
		kind, title = Replayed, "The work of this key was done before"
	}
	problem := map[string]any{"type": "about:blank", "title": title}
	for _, m := range s.contract.Answers {
		if m.Means != means {
			continue
		}
		if m.Status != 0 {
			status = m.Status
		}
		if m.Path != "" {
			put(problem, strings.Split(m.Path, "."), m.Value)
		}
		break
	}
	if _, taken := problem["status"]; !taken {
		problem["status"] = status
	}
	body, _ := json.Marshal(problem) //nolint:errchkjson // a map of strings and a number
	h := http.Header{"Content-Type": {"application/problem+json"}}
	if means == contract.InProgress {
		h.Set("Retry-After", "1")
	}
	return &answer{kind: kind, status: status, header: h, body: append(body, '\n')}
}

// put sets the member at path to value, or to true where any value will do.
func put(object map[string]any, path []string, value string) {
	for ; len(path) > 1; path = path[1:] {
		inner := map[string]any{}
		object[path[0]] = inner
		object = inner
	}
	if object[path[0]] = any(value); value == "" {
		object[path[0]] = true
	}
}

// Advance moves the server's clock forward by d, in which keys are forgotten and
// claims go stale. Timers and the clients' clocks stay; in a testing/synctest
// bubble a sleep moves all of them.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
	s.notify()
}

// Forget drops every claim and every stored answer, as a server does that fails
// over to a replica without them. The log and the ledger stay.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.claims)
	s.notify()
}
