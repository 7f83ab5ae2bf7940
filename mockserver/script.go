package mockserver

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// A Script says which attempts meet which faults. [Server.On] makes one; its
// methods return it, so that it is written in one line. It may be changed while
// requests arrive.
//
// A Script counts the attempts that meet it for each caller and key by itself:
// the n-th attempt of a key meets the n-th fault of [Script.Then], whatever
// other keys do meanwhile. What net/http sends again by itself, without being
// asked, is the same attempt and meets the same fault (see [Request.Send] and
// the option send=). That takes the stamp of [Server.Transport]; from another
// client each request that arrives counts as an attempt.
type Script struct {
	s           *Server
	id          int // of all scripts of the server, from 1
	pattern     string
	mux         *http.ServeMux // holds the pattern alone
	key, caller *string
	then        []*step
	always      *step
	odds        float64
	seed        uint64
	sometimes   []*step
	counts      map[scope]int  // attempts met, by caller and key
	stamps      map[string]int // stamp: which of them it was
}

// step is what one attempt meets.
type step struct {
	script  string
	text    Fault
	clauses []clause
	used    []bool // clause by clause
	hits    int    // how often a clause was met
}

// scope is whose key it is: the same key of two callers is two keys.
type scope struct{ caller, key string }

// On makes a Script for the requests that match pattern, which is one of
// [http.ServeMux]: "POST /charges", "/charges/{id}", "/". Where several
// match, the most specific is asked first, one with a key or a caller before one
// without; a Script that has nothing to say to this attempt passes it on to the
// next. A pattern that cannot be ends the test, or panics without one.
func (s *Server) On(pattern string) *Script {
	sc, err := s.newScript(pattern)
	if err != nil {
		s.reject(err)
	}
	s.enlist(sc)
	return sc
}

func (s *Server) newScript(pattern string) (*Script, error) {
	sc := &Script{s: s, pattern: pattern, mux: http.NewServeMux(), counts: map[scope]int{}, stamps: map[string]int{}}
	return sc, handle(sc.mux, pattern)
}

// enlist puts a script in force.
func (s *Server) enlist(sc *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nscripts++
	sc.id = s.nscripts
	s.scripts = append(s.scripts, sc)
	s.notify()
}

// handle registers pattern and returns what ServeMux says against it.
func handle(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("mockserver: %v", r)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// Key narrows the script to one key, as the client knows it (see
// contract.Contract.Unwire). The empty key is that of requests without one.
func (sc *Script) Key(key string) *Script {
	sc.s.mu.Lock()
	defer sc.s.mu.Unlock()
	sc.key = &key
	return sc
}

// Caller narrows the script to one caller: the credential of its requests, as
// in [Request.Caller].
func (sc *Script) Caller(caller string) *Script {
	sc.s.mu.Lock()
	defer sc.s.mu.Unlock()
	sc.caller = &caller
	return sc
}

// Then appends what the next attempts of each key meet, one fault an attempt.
// Later attempts meet none, unless Sometimes or Always say so. A fault that is
// not valid ends the test, or panics without one.
func (sc *Script) Then(faults ...Fault) *Script {
	steps := sc.steps(faults)
	sc.s.mu.Lock()
	defer sc.s.mu.Unlock()
	sc.then = append(sc.then, steps...)
	return sc
}

// Always sets what every attempt meets that Then and Sometimes leave alone.
func (sc *Script) Always(fault Fault) *Script {
	steps := sc.steps([]Fault{fault})
	sc.s.mu.Lock()
	defer sc.s.mu.Unlock()
	sc.always = steps[0]
	return sc
}

// Sometimes lets an attempt that Then leaves alone meet one of faults with
// probability p. It draws from a hash of seed, caller, key and the number of
// the attempt, never from a generator that requests share: the order in which
// goroutines run changes nothing, and the same seed gives the same faults.
func (sc *Script) Sometimes(p float64, seed uint64, faults ...Fault) *Script {
	if !(p >= 0 && p <= 1) || len(faults) == 0 {
		sc.s.reject(fmt.Errorf("mockserver: Sometimes(%v) with %d faults: a probability from 0 to 1 and a fault are wanted", p, len(faults)))
	}
	steps := sc.steps(faults)
	sc.s.mu.Lock()
	defer sc.s.mu.Unlock()
	sc.odds, sc.seed, sc.sometimes = p, seed, steps
	return sc
}

func (sc *Script) steps(faults []Fault) []*step {
	steps := make([]*step, 0, len(faults))
	for _, f := range faults {
		st, err := sc.s.step(sc.pattern, f)
		if err != nil {
			sc.s.reject(err)
		}
		steps = append(steps, st)
	}
	return steps
}

// step makes a step of a fault that this server can show.
func (s *Server) step(script string, f Fault) (*step, error) {
	clauses, err := f.parse()
	for _, c := range clauses {
		switch {
		case (c.at == Dial || c.at == Handshake) && (s.parent != nil || script == faultHeader):
			err = f.wrong("a request that is read already has no %s to come", c.at)
		case c.at == Handshake && !s.tls():
			err = f.wrong("there is no handshake without Config.TLS")
		}
	}
	return &step{script: script, text: f, clauses: clauses, used: make([]bool, len(clauses))}, err
}

// step returns what the attempt with this stamp meets, nil for nothing. With
// commit it counts the attempt, otherwise it only looks.
func (sc *Script) step(who scope, stamp string, commit bool) *step {
	n := sc.stamps[stamp]
	if n == 0 {
		n = sc.counts[who] + 1
		if commit {
			sc.counts[who] = n
			if stamp != "" {
				sc.stamps[stamp] = n
			}
		}
	}
	if n <= len(sc.then) {
		return sc.then[n-1]
	}
	if len(sc.sometimes) > 0 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%q\n%q\n%d", sc.seed, who.caller, who.key, n))
		draw := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
		if draw < sc.odds {
			return sc.sometimes[binary.BigEndian.Uint64(sum[8:16])%uint64(len(sc.sometimes))]
		}
	}
	return sc.always
}

// unused returns an error for each scripted fault that no attempt has met.
// Those of Sometimes may stay unmet. s.mu is held.
func (s *Server) unused() (list []error) {
	for _, sc := range s.scripts {
		for _, st := range sc.unused() {
			where := "Always"
			if n := slices.Index(sc.then, st); n >= 0 {
				where = fmt.Sprintf("step %d", n+1)
			}
			list = append(list, fmt.Errorf("the fault %q of On(%q), %s, was not met", st.text, sc.pattern, where))
		}
	}
	return list
}

func (sc *Script) unused() (list []*step) {
	for _, st := range append(slices.Clone(sc.then), sc.always) {
		if st != nil && slices.Contains(st.used, false) {
			list = append(list, st)
		}
	}
	return list
}

// reject ends the test, or panics where there is none.
func (s *Server) reject(err error) {
	if s.t == nil {
		panic(err)
	}
	s.t.Helper()
	s.t.Fatalf("%v", err)
	panic(errors.New("mockserver: Fatalf has returned"))
}
