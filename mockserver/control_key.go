package mockserver

import "net/http"

// keyDoc is a key of one caller in the control API.
type keyDoc struct {
	Scope    string    `json:"scope,omitempty"`
	Caller   string    `json:"caller"`
	Key      string    `json:"key"`
	State    string    `json:"state"` // free, claimed, stale, stored, expired
	Born     instant   `json:"born"`
	Lease    instant   `json:"lease"`   // until when its worker is taken to be alive
	Expires  instant   `json:"expires"` // null: for ever
	Requests int       `json:"requests"`
	Attempts int       `json:"attempts"`
	Effects  int       `json:"effects"`
	Stored   *replyDoc `json:"stored,omitempty"`
}

// The states of a key, as the key layer sees it.
const (
	keyFree    = "free"    // it is not known
	keyClaimed = "claimed" // its first request is at work
	keyStale   = "stale"   // its worker is taken to be dead
	keyStored  = "stored"  // its answer is kept
	keyExpired = "expired" // it is forgotten
)

// claimsByKey returns the newest claim of each caller and key. s.mu is held.
func (s *Server) claimsByKey() map[scope]*claim {
	all := make(map[scope]*claim, len(s.claims))
	for _, c := range s.claims {
		if old := all[c.of]; old == nil || old.born.Before(c.born) {
			all[c.of] = c
		}
	}
	return all
}

// keyDoc tells how a key stands; c may be nil. s.mu is held.
func (s *Server) keyDoc(who scope, c *claim) keyDoc {
	d := keyDoc{Scope: s.scope, Caller: who.caller, Key: who.key, State: keyFree, Attempts: s.attempts[who]}
	d.Requests, d.Effects = s.tallies[who].requests, s.tallies[who].effects
	if c == nil {
		return d
	}
	now, window := s.now(), s.contract.Window
	d.Born, d.Lease = instant(c.born), instant(c.lease)
	if window > 0 {
		d.Expires = instant(c.born.Add(window))
	}
	switch {
	case window > 0 && now.Sub(c.born) >= window:
		d.State = keyExpired
	case c.kept != nil:
		d.State = keyStored
	case now.Before(c.lease):
		d.State = keyClaimed
	default:
		d.State = keyStale
	}
	return d
}

func (s *Server) serveKeys(w http.ResponseWriter, _ *http.Request) error {
	reply(w, http.StatusOK, s.keyDocs(func(scope) bool { return true }, false))
	return nil
}

func (s *Server) serveKey(w http.ResponseWriter, r *http.Request) error {
	list := s.keyDocs(func(who scope) bool { return who.key == r.PathValue("key") }, true)
	if len(list) == 0 {
		return notFound("no request had the key %q", r.PathValue("key"))
	}
	reply(w, http.StatusOK, list) // one for each caller
	return nil
}

// keyDocs lists the keys that which picks, in the order of their first requests.
func (s *Server) keyDocs(which func(scope) bool, stored bool) []keyDoc {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := s.claimsByKey()
	var order []scope
	listed := map[scope]bool{}
	for _, r := range s.log {
		who := scope{r.Caller, r.Key}
		if r.Key != "" && which(who) && !listed[who] {
			listed[who] = true
			order = append(order, who)
		}
	}
	list := make([]keyDoc, 0, len(order))
	for _, who := range order {
		c := claims[who]
		d := s.keyDoc(who, c)
		if stored && c != nil && c.kept != nil {
			d.Stored = &replyDoc{c.kept.status, c.kept.header, text(c.kept.body)}
		}
		list = append(list, d)
	}
	return list
}
