package mockserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Belief is what a client told its caller about the effect of a key.
type Belief uint8

const (
	Unsure  Belief = iota // it does not know; fits any ledger
	Done                  // the effect exists
	NotDone               // there is no effect and there will be none
)

// A Breach is one finding of [Server.Verify]. It is an error of one line.
type Breach struct { //nolint:errname // a finding that is an error, not an error by name
	Kind string // the first word of the line, such as "doubled"
	Key  string // the key concerned; empty: none
	Text string // what was found
}

func (b *Breach) Error() string { return "mockserver: " + b.Kind + ": " + b.Text }

// Believe notes what the client believes of key, for [Server.Verify]. The last
// word counts; a key that nothing is believed of is Unsure.
func (s *Server) Believe(key string, b Belief) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beliefs[key] = b
}

// Verify compares what the clients did and believe with what really happened,
// and returns every breach, joined, or nil; each is a [*Breach].
//
//	doubled     a key has effects from more than one request; or a request without
//	            a key was repeated after its answer was lost, and worked twice
//	lost        believed Done, but there is no effect
//	phantom     believed NotDone, yet there is an effect
//	altered     a key came again with another request
//	rekeyed     the same request of the same caller came under a new key while the
//	            outcome of the first was unknown
//	early       an attempt came before the Retry-After of the last answer was over,
//	            or before the contract's Gap
//	hurried     an attempt came without backoff after a failure, or five clients
//	            and more waited equally long
//	storm       more attempts of a key than Config.MaxAttempts, or more than 32
//	            sends of one attempt by net/http
//	unfinished  a claim whose work never ended
//	unused      a scripted fault that no attempt has met
//
// Verify first waits, for a second at most, until no request is under way but
// those that a fault holds. For rekeyed, let the requests of different intents
// differ in a byte.
func (s *Server) Verify() error {
	limit := make(chan struct{})
	t := time.AfterFunc(time.Second, func() { close(limit) })
	defer t.Stop()
	_ = s.until(limit, func() bool { return s.active <= len(s.holds) })

	s.mu.Lock()
	defer s.mu.Unlock()
	v := &verifier{s: s, keys: map[scope][]*Request{}, worked: map[int]bool{}}
	for _, r := range s.log {
		who := scope{r.Caller, r.Key}
		if v.keys[who] == nil && r.Key != "" {
			v.order = append(v.order, who)
		}
		v.keys[who] = append(v.keys[who], r)
	}
	for _, e := range s.effects {
		v.worked[e.Request] = true
	}
	v.effects()
	v.unkeyed()
	v.beliefs()
	for _, who := range v.order {
		v.altered(who)
		v.waits(who)
		v.storm(who)
	}
	v.rekeyed()
	v.jitter()
	for _, who := range v.order {
		if c := s.claims[who]; c != nil && c.kept == nil {
			v.breachf("unfinished", who.key, "key %q is claimed and its work has not ended", who.key)
		}
	}
	for _, err := range s.unused() {
		v.breachf("unused", "", "%v", err)
	}
	return errors.Join(v.found...)
}

// verifier holds what the checks share. The server is locked meanwhile.
type verifier struct {
	s      *Server
	order  []scope // the keys in the order of their first request
	keys   map[scope][]*Request
	worked map[int]bool // requests with an effect, by Seq
	found  []error
}

func (v *verifier) breachf(kind, key, format string, args ...any) {
	v.found = append(v.found, &Breach{kind, key, fmt.Sprintf(format, args...)})
}

// workers returns the numbers of those requests that had an effect.
func (v *verifier) workers(list []*Request) (seqs []int) {
	for _, r := range list {
		if v.worked[r.Seq] {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

func (v *verifier) effects() {
	for _, who := range v.order {
		if w := v.workers(v.keys[who]); len(w) > 1 {
			v.breachf("doubled", who.key, "key %q has effects from %d requests: %v", who.key, len(w), w)
		}
	}
}

// unkeyed finds requests without a key that were repeated and worked twice.
func (v *verifier) unkeyed() {
	same := map[string][]*Request{}
	for who, list := range v.keys {
		if who.key != "" {
			continue
		}
		for _, r := range list {
			if v.s.contract.Keys(r.Method) {
				same[r.Caller+" "+r.Print] = append(same[r.Caller+" "+r.Print], r)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(same)) {
		list := same[id]
		w := v.workers(list)
		first := slices.IndexFunc(list, func(r *Request) bool { return v.worked[r.Seq] })
		if len(w) > 1 && !list[first].known() {
			v.breachf("doubled", "", "%s %s without a key has effects from %d requests: %v", list[0].Method, list[0].URL, len(w), w)
		}
	}
}

// known reports whether this request told the client how it ended.
func (r *Request) known() bool {
	return r.Status != 0 && !r.unanswered && !r.Left && !r.failed()
}

// failed reports whether the client may take the attempt for one to repeat.
func (r *Request) failed() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusLocked:
		return true
	}
	return r.unanswered || r.Left || r.Status == 0 || r.Status >= 500 || r.Answer == Busy
}

func (v *verifier) beliefs() {
	for _, key := range slices.Sorted(maps.Keys(v.s.beliefs)) {
		n := 0
		for _, e := range v.s.effects {
			if e.Key == key {
				n++
			}
		}
		switch b := v.s.beliefs[key]; {
		case b == Done && n == 0:
			v.breachf("lost", key, "key %q is believed done, but there is no effect", key)
		case b == NotDone && n > 0:
			v.breachf("phantom", key, "key %q is believed not done, yet there are effects: %d", key, n)
		}
	}
}

func (v *verifier) altered(who scope) {
	list := v.keys[who]
	for _, r := range list {
		if r.Print != list[0].Print && r.Print != "" && list[0].Print != "" {
			v.breachf("altered", who.key, "key %q came with %s %s in request %d and with another request in %d",
				who.key, list[0].Method, list[0].URL, list[0].Seq, r.Seq)
			return
		}
	}
}

// rekeyed finds a new key for a request whose outcome was unknown.
func (v *verifier) rekeyed() {
	last := map[string]scope{} // caller and print: the newest key
	for _, who := range v.order {
		id := who.caller + " " + v.keys[who][0].Print
		if old, ok := last[id]; ok {
			before, now := v.keys[old], v.keys[who][0]
			final := before[len(before)-1]
			if !slices.ContainsFunc(before, (*Request).known) && !final.over.IsZero() && !now.Start.Before(final.over) {
				v.breachf("rekeyed", who.key, "request %d under key %q repeats request %d under key %q, whose outcome was unknown",
					now.Seq, who.key, before[0].Seq, old.key)
			}
		}
		last[id] = who
	}
}

// pairs calls f for each two attempts of a key that follow each other: the last
// request of one and the first of the next.
func (v *verifier) pairs(who scope, f func(before, after *Request)) {
	var before *Request
	for _, r := range v.keys[who] {
		if r.Copy || r.Attempt == 0 {
			continue
		}
		if before != nil && r.Attempt > before.Attempt && !before.over.IsZero() && !r.Start.Before(before.over) {
			f(before, r)
		}
		before = r
	}
}

func (v *verifier) waits(who scope) {
	v.pairs(who, func(before, after *Request) {
		waited := after.Start.Sub(before.over)
		asked, ok := before.asked()
		switch {
		case ok && waited < asked:
			v.breachf("early", who.key, "attempt %d of key %q came after %v, the server had asked for %v", after.Attempt, who.key, waited, asked)
		case after.Start.Sub(before.Start) < v.s.contract.Gap:
			v.breachf("early", who.key, "attempt %d of key %q came %v after the last, the contract's gap is %v",
				after.Attempt, who.key, after.Start.Sub(before.Start), v.s.contract.Gap)
		case before.failed() && waited < time.Millisecond:
			v.breachf("hurried", who.key, "attempt %d of key %q came after %v, without backoff", after.Attempt, who.key, waited)
		}
	})
}

// asked returns the wait that the server's answer asks for.
func (r *Request) asked() (time.Duration, bool) {
	if r.retryAfter == "" || r.unanswered || r.Left {
		return 0, false
	}
	if n, err := strconv.Atoi(strings.TrimSpace(r.retryAfter)); err == nil {
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(r.retryAfter)
	return at.Sub(r.over), err == nil
}

// jitter finds clients that all wait equally long.
func (v *verifier) jitter() {
	waits := map[int][]time.Duration{} // by the number of the attempt
	for _, who := range v.order {
		v.pairs(who, func(before, after *Request) {
			if _, asked := before.asked(); !asked && before.failed() && after.Start.After(before.over) {
				waits[before.Attempt] = append(waits[before.Attempt], after.Start.Sub(before.over))
			}
		})
	}
	for _, n := range slices.Sorted(maps.Keys(waits)) {
		least, most := slices.Min(waits[n]), slices.Max(waits[n])
		if len(waits[n]) >= 5 && most-least <= least/100 {
			v.breachf("hurried", "", "%d keys waited %v to %v after attempt %d, without jitter", len(waits[n]), least, most, n)
		}
	}
}

func (v *verifier) storm(who scope) {
	most, sends := 0, 0
	for _, r := range v.keys[who] {
		most, sends = max(most, r.Attempt), max(sends, r.Send)
	}
	if most > v.s.maxAttempts {
		v.breachf("storm", who.key, "key %q came in %d attempts", who.key, most)
	}
	if sends > 32 {
		v.breachf("storm", who.key, "an attempt of key %q was sent %d times", who.key, sends)
	}
}
