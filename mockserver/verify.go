package mockserver

import (
	"errors"
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
// differ in a byte. Each Mock-Scope is verified by itself.
func (s *Server) Verify() error {
	var found []error
	for _, one := range s.all() {
		one.settled()
		found = append(found, one.check()...)
	}
	return errors.Join(found...)
}

// settled waits until no request is under way but those that a fault holds.
func (s *Server) settled() {
	limit := make(chan struct{})
	t := time.AfterFunc(time.Second, func() { close(limit) })
	defer t.Stop()
	_ = s.until(limit, func() bool { return s.active <= len(s.holds) })
}

// check returns every breach as it stands.
func (s *Server) check() []error {
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
	unfinished := map[scope]bool{}
	for _, c := range s.claims {
		unfinished[c.of] = unfinished[c.of] || c.kept == nil
	}
	for _, who := range v.order {
		if unfinished[who] {
			v.breachf("unfinished", who.key, "key %q is claimed and its work has not ended", who.key)
		}
	}
	for _, err := range s.unused() {
		v.breachf("unused", "", "%v", err)
	}
	return v.found
}
