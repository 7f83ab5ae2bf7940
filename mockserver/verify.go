package mockserver

// A Belief is what a client told its caller about the effect of a key.
type Belief uint8

const (
	Unsure  Belief = iota // it does not know; fits any ledger
	Done                  // the effect exists
	NotDone               // there is no effect and there will be none
)

// Believe notes what the client believes of key.
func (s *Server) Believe(key string, b Belief) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beliefs[key] = b
}
