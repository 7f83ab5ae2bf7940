package mockserver

import "slices"

// hold is a request that waits at a point until it is released.
type hold struct {
	key      string
	attempt  int
	released chan struct{}
}

// addHold puts a hold in force. s.mu is held.
func (s *Server) addHold(key string, attempt int) *hold {
	h := &hold{key, attempt, make(chan struct{})}
	s.holds = append(s.holds, h)
	return h
}

// dropHold takes out a hold that ended otherwise.
func (s *Server) dropHold(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = slices.DeleteFunc(s.holds, func(other *hold) bool { return other == h })
}

// Release lets the requests of key go on that a hang or a forward=late fault
// holds, and returns how many they were; with attempts, only those of these
// numbers. Each goes on by itself: to have one finished before the next,
// release it and [Server.Await] the point it is to reach.
func (s *Server) Release(key string, attempts ...int) int {
	return s.release(func(h *hold) bool {
		return h.key == key && (len(attempts) == 0 || slices.Contains(attempts, h.attempt))
	})
}

// release lets those go on that which picks.
func (s *Server) release(which func(*hold) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.holds)
	s.holds = slices.DeleteFunc(s.holds, func(h *hold) bool {
		if !which(h) {
			return false
		}
		close(h.released)
		return true
	})
	return before - len(s.holds)
}
