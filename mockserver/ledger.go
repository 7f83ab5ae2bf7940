package mockserver

import (
	"context"
	"time"
)

// An Effect is something that a handler has really done. The ledger of effects
// is the truth against which beliefs are checked.
type Effect struct {
	Seq     int    // of all effects of the server, from 1
	Request int    // Request.Seq of the request that caused it
	Caller  string // of that request
	Key     string // of that request; empty: it had none
	Name    string // what was done: "order"
	Value   any    // what the handler gave with it
	At      time.Time
}

// Did records an effect of the request that ctx belongs to. A handler calls it
// where the work is done, once for each effect; the same handler may run outside
// a mock server, where Did does nothing and reports true. The value is kept as it
// is.
//
// The first effect of a request is what a transaction's commit is elsewhere. If the
// server's process has ended before it, Did records nothing and reports false, and
// the handler must keep nothing either; if it ends later, the handler's answer is
// stored all the same.
func Did(ctx context.Context, name string, value any) (committed bool) {
	x, ok := ctx.Value(lifeKey{}).(*life)
	if !ok {
		return true
	}
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.start != s.starts {
		return false // the ledger of its time was thrown away
	}
	if x.dead() && !x.committed {
		return false
	}
	x.committed = true
	s.count(scope{x.rec.Caller, x.rec.Key}, 0, 1)
	s.effects = append(s.effects, Effect{
		Seq: len(s.effects) + 1, Request: x.rec.Seq, Caller: x.rec.Caller, Key: x.rec.Key,
		Name: name, Value: value, At: s.now(),
	})
	s.notify()
	return true
}

// Effects returns the effects under this key in the order in which they
// happened, those of every caller; the empty key means all effects of the server.
func (s *Server) Effects(key string) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Effect
	for _, e := range s.effects {
		if key == "" || e.Key == key {
			list = append(list, e)
		}
	}
	return list
}
