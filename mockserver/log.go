package mockserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// A Request is one request that reached the server, as it arrived. It is in the
// log from its first byte on, whether or not its head and its body come whole and
// the client stays for the answer; without a whole head, Method and all that a
// head tells is empty. What [Server.Requests] returns are copies; their Header and
// Body are shared and must not be changed. Times are those of the server's clock.
// What a fault at Dial takes has not reached the server.
type Request struct {
	Seq     int    // of all requests of the server, from 1; zero: its head may still come whole
	Attempt int    // of this caller's key, from 1; what net/http sends again is the same attempt
	Send    int    // of this attempt, from 1; above 1, net/http has sent it again by itself
	Copy    bool   // sent by the gateway of a copy or forward= fault, not by the client
	Conn    int    // which connection it came on, from 1; 0 for a request not taken from the server's own network
	Reused  bool   // the connection had carried a request before
	Scope   string // the Mock-Scope that it named; empty: none
	Caller  string // the credential: Authorization without its scheme, or X-Api-Key
	Key     string // as the client knows it; empty: none, or one that the contract does not allow
	Proto   string // "HTTP/1.1" or "HTTP/2.0"
	Method  string
	Host    string
	URL     string // path and query
	Header  http.Header
	Body    []byte
	Print   string // a digest of method, path, query and body; empty: the body did not come whole

	Points map[Point]time.Time // the points it has reached so far, and when
	Fault  Fault               // what it met; empty: nothing
	Answer Answer              // who answered
	Status int                 // what was answered; zero: nothing, or not yet
	Left   bool                // the client went away before the answer was written
	Start  time.Time           // of its first byte
	End    time.Time           // its answer was handed to the network, or it ended without; zero: not yet

	ahead      time.Duration // of the server's clock when it came
	met        []met
	script     string    // the pattern of the script that gave Fault
	reply      *answer   // what was answered; nil: nothing yet
	done       bool      // its life has ended
	over       time.Time // when the client could know how it ended; zero: not yet
	retryAfter string    // of the answer
	unanswered bool      // a fault took the answer or a part of it
}

// Answer says where an answer came from.
type Answer string

const (
	Unanswered Answer = ""           // no answer was written
	Fresh      Answer = "fresh"      // from the handler
	Replayed   Answer = "replayed"   // the stored answer again
	Busy       Answer = "busy"       // the first request with this key is in progress
	Mismatched Answer = "mismatched" // the key came before with another request
	Refused    Answer = "refused"    // the key is not one that the contract allows, or the head is not HTTP
	Injected   Answer = "injected"   // from a scripted fault
)

// String returns the word, or "unanswered".
func (a Answer) String() string {
	if a == Unanswered {
		return "unanswered"
	}
	return string(a)
}

// Requests returns the requests with this key in the order of their arrival,
// those of every caller; the empty key means all requests of the server, at the
// end those of which no whole head has come so far.
func (s *Server) Requests(key string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Request
	for _, r := range s.log {
		if key == "" || r.Key == key {
			c := *r
			c.Points = maps.Clone(r.Points)
			list = append(list, c)
		}
	}
	if key == "" {
		list = append(list, s.headsUnderWay()...)
	}
	return list
}

// Await waits until attempt n of key has reached point, and returns ctx's error
// if that ends first. An attempt that a fault holds at point is held by then, so
// that [Server.Release] finds it. Await is for a client that runs in another
// goroutine. The points of a connection, Dial and Handshake, are reached only by
// attempts that a fault concerns there.
func (s *Server) Await(ctx context.Context, key string, n int, point Point) error {
	switch {
	case !slices.Contains(points(), point):
		return fmt.Errorf("mockserver: Await: there is no point %q; there are %v", point, points())
	case n < 1:
		return fmt.Errorf("mockserver: Await: attempts are counted from 1, not %d", n)
	}
	err := s.until(ctx.Done(), func() bool {
		return s.connected[attemptPoint{key, n, point}] || slices.ContainsFunc(s.log, func(r *Request) bool {
			_, there := r.Points[point]
			return there && r.Key == key && r.Attempt == n
		})
	})
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("mockserver: Await: attempt %d of key %q has not reached %s: %w", n, key, point, err)
}

// until waits until is reports true, which it is asked whenever something
// changed, under s.mu. It returns an error if stop is closed first, or the server.
func (s *Server) until(stop <-chan struct{}, is func() bool) error {
	for {
		s.mu.Lock()
		if is() {
			s.mu.Unlock()
			return nil
		}
		s.waiters++
		changed, closed := s.changed, s.closed.Done()
		s.mu.Unlock()
		select {
		case <-changed:
		case <-stop:
			return errors.New("mockserver: the wait has ended")
		case <-closed:
			return errClosed()
		}
	}
}

// notify wakes those who wait for a change. s.mu is held.
func (s *Server) notify() {
	s.hub.wake()
	if s.waiters > 0 {
		s.waiters = 0
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// arrive puts a request into the log, as far as its head tells. start is the
// clean start that the log began with.
func (s *Server) arrive(r *http.Request, h head) (rec *Request, start int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec = h.request(s.ahead)
	rec.Seq, rec.Scope, rec.Caller, rec.Key = len(s.log)+1, s.scope, credential(r.Header), s.keyOf(r.Header, nil)
	rec.Proto, rec.Method, rec.Host, rec.URL, rec.Header = r.Proto, r.Method, r.Host, r.URL.RequestURI(), r.Header // the handler gets a copy
	s.log = append(s.log, rec)
	s.active++
	s.notify()
	return rec, s.starts
}

// number completes the record once the body is read, and finds what the request
// meets by script. Of a body that did not come whole there is no digest. The
// stamp is empty if it did not come from the server's own Transport. What brings
// its own fault along meets no script.
func (s *Server) number(r *http.Request, rec *Request, body []byte, whole bool, stamp string, own bool) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec.Body = body; whole {
		rec.Print = digest(rec.Method, rec.URL, body)
	}
	rec.Key = s.keyOf(rec.Header, body)
	who := scope{rec.Caller, rec.Key}
	s.count(who, 1, 0)
	rec.Attempt, rec.Send = s.attempt(who, stamp), 1
	if stamp != "" {
		s.sends[stamp]++
		rec.Send = s.sends[stamp]
	}
	if own {
		return nil
	}
	return s.plan(r, who, stamp, true)
}

// tally is how much there was of a key of one caller.
type tally struct{ requests, effects int }

// count adds to a tally. s.mu is held.
func (s *Server) count(who scope, requests, effects int) {
	t := s.tallies[who]
	s.tallies[who] = tally{t.requests + requests, t.effects + effects}
}

// attempt returns the number of the attempt with this stamp. s.mu is held.
func (s *Server) attempt(who scope, stamp string) int {
	n := s.stamps[stamp]
	if n == 0 {
		s.attempts[who]++
		n = s.attempts[who]
		if stamp != "" {
			s.stamps[stamp] = n
		}
	}
	return n
}
