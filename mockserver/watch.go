package mockserver

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Watch yields each request once it has ended, those of every Mock-Scope too:
// first what has ended already, then what ends from now on, until ctx or the
// server does. Each is a copy, as of [Server.Requests].
func (s *Server) Watch(ctx context.Context) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		cursors := cursors{}
		defer s.hub.watch()()
		for {
			changed := s.hub.next()
			for _, one := range s.all() {
				list, _ := cursors.of(one).take(one)
				for _, r := range list {
					if r.done && !yield(r) {
						return
					}
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-s.closed.Done():
				return
			}
		}
	}
}

// hub tells watchers that something has happened in a server or in one of its
// scopes.
type hub struct {
	watchers atomic.Int32
	mu       sync.Mutex
	changed  chan struct{}
}

func newHub() *hub { return &hub{changed: make(chan struct{})} }

// watch enters a watcher; the function takes it out again.
func (h *hub) watch() (end func()) {
	h.watchers.Add(1)
	return func() { h.watchers.Add(-1) }
}

// next returns what is closed when something happens from now on.
func (h *hub) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// wake tells the watchers. Without any it costs next to nothing.
func (h *hub) wake() {
	if h.watchers.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// cursor is how far a watcher has seen the log of one server.
type cursor struct {
	start, shift, effects, requests int
	open                            map[*Request]int // not ended: how far they were when they were seen
}

type cursors map[*Server]*cursor

func (cs cursors) of(s *Server) *cursor {
	if cs[s] == nil {
		cs[s] = &cursor{start: -1}
	}
	return cs[s]
}

// take returns copies of the requests that are new or have moved since the last
// time, in the order of their arrival, and whether the log began anew.
func (c *cursor) take(s *Server) (list []Request, anew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if anew = c.start != s.starts; anew {
		*c = cursor{start: s.starts, shift: -1, open: map[*Request]int{}}
	}
	for _, r := range s.log[c.requests:] {
		c.open[r] = -1
	}
	c.requests = len(s.log)
	for r, stage := range c.open {
		if stage == r.stage() {
			continue
		}
		if c.open[r] = r.stage(); r.done {
			delete(c.open, r)
		}
		copied := *r
		copied.Points = maps.Clone(r.Points)
		copied.met = slices.Clone(r.met)
		list = append(list, copied)
	}
	slices.SortFunc(list, func(a, b Request) int { return a.Seq - b.Seq })
	return list, anew
}

// stage is another number whenever something has changed that watchers show.
func (r *Request) stage() int {
	n := len(r.Points)<<8 | len(r.met)<<4 | r.Attempt<<16
	for i, is := range []bool{r.Status != 0, r.Left, r.unanswered, r.done} {
		if is {
			n |= 1 << i
		}
	}
	return n
}
