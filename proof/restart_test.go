package proof_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/require"
)

// A restart is a process that writes its Intent down at every moment and dies, and
// another one that goes on from what was written at one of them.
type restart struct {
	bind   bool     // the first process binds before it writes and sends
	first  []string // what its attempts meet
	kill   string   // the moment at which it dies; empty: after the call
	saved  int      // which State the other goes on from, the oldest first
	derive bool     // nothing was written: the key is derived anew
	other  bool     // with another body
	then   string   // what its first attempt meets; "dead": nobody listens, ever
}

const otherPayload = `{"amount":900}`

// TestExhaustiveRestart goes on from every earlier State, not only the newest:
// before the Intent was bound, before the first send, in flight, after each
// attempt; with the same and with another body; with a derived key and nothing
// written at all; also on a dead network.
func TestExhaustiveRestart(t *testing.T) {
	all := []string{"pass", "refuse@dial", "drop@stored", "hang@received", "401@received", "429@received", "503@received", "402@claimed; drop@stored", "crash@claimed"}
	plans := companyPlans([]string{"pass"})
	for _, first := range all[1:] {
		for _, second := range []string{"pass", "drop@stored", "429@received"} {
			plans = append(plans, []string{first, second})
		}
	}
	loose := kinds()[0]
	loose.name, loose.kind = "loose", mockserver.Kind{Loose: true}
	for i, k := range []kind{kinds()[0], kinds()[2], kinds()[4], loose} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			start := time.Now()
			synctestBatches(t, k, func(yield func(restart) bool) {
				for j, plan := range plans {
					for l, then := range append([]string{"dead"}, all...) {
						for m, kill := range []string{"", "between attempts", "in flight, before the work"} {
							for bits := range 8 {
								// The kinds differ little here, and the ordinary run is a sample.
								if x := j*5 + l*3 + m*7 + bits; x%stride(23) != i && !*full || x%3 != 0 && i > 0 {
									continue
								}
								r := restart{bind: bits&1 > 0, derive: bits&2 > 0, other: bits&4 > 0, first: plan, kill: kill, then: then}
								for more := true; more; r.saved++ {
									n++
									more = r.saved < 6 && !r.derive
									if !yield(r) {
										return
									}
								}
							}
						}
					}
				}
			})
			t.Logf("%d schedules in %v", n, time.Since(start).Round(time.Millisecond))
		})
	}
}

// synctestBatches runs what seq yields, some at a time in one world.
func synctestBatches(t *testing.T, k kind, seq func(func(restart) bool)) {
	k.tune = func(t *idem.Transport) { t.MaxAttempts = 2 }
	var batch []restart
	run := func() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, k)
			for i, r := range batch {
				if failures := w.restarted(r, i); len(failures) > 0 {
					t.Errorf("%s\n%s: %#v", strings.Join(failures, "\n"), k.name, r)
				}
			}
		})
		batch = batch[:0]
	}
	seq(func(r restart) bool {
		if batch = append(batch, r); len(batch) == worldful {
			run()
		}
		return !t.Failed()
	})
	run()
}

// restarted runs one.
func (w *world) restarted(c restart, n int) []string {
	begun := time.Now()
	open := func() *idem.Intent {
		if !c.derive {
			return idem.Open()
		}
		in, err := idem.Derive("proof", fmt.Sprintf("%s %d", begun.Format(time.RFC3339Nano), n), begun)
		require.NoError(w.t, err)
		return in
	}
	s, first := w.story(open(), c.derive)
	var mu sync.Mutex
	var states []idem.State
	save := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(states) < 7 {
			states = append(states, first.in.State())
		}
	}
	save()
	if c.bind {
		req, err := http.NewRequest(http.MethodPost, w.srv.URL+"/charges", strings.NewReader(payload))
		require.NoError(w.t, err)
		require.NoError(w.t, first.in.Bind(req))
		save()
	}
	s.meets("one", c.first...)
	ctx, kill := context.WithCancel(w.t.Context())
	s.set(func(where string) {
		save()
		if where == c.kill {
			kill()
		}
	})
	_, _ = s.call(ctx, first, "one", payload)
	kill()
	synctest.Wait()
	s.set(nil)
	s.dies(first)
	if c.saved >= len(states) {
		return s.judge(w.kind.once)
	}
	state := states[c.saved]
	var second *process
	if c.derive {
		second = s.process("second", open(), true)
	} else {
		in, err := idem.Resume(state, nil)
		require.NoError(w.t, err)
		second = s.process("second", in, true)
	}
	if want := state.Outcome; !c.derive && second.in.Outcome() != want {
		s.failf("a State that says %v resumes as %v", want, second.in.Outcome())
	}
	if state.Outcome == idem.NotExecuted || state.Outcome == idem.Answered && len(w.srv.Effects(s.key)) == 0 && !strings.Contains(strings.Join(c.first, " "), "402") {
		s.failf("a State says %v", state.Outcome)
	}
	second.settled = !c.derive && state.Outcome == idem.Answered
	body := payload
	if c.other {
		body = otherPayload
	}
	if c.then == "dead" {
		s.meets("two", "refuse@dial", "refuse@dial")
	} else {
		s.meets("two", c.then)
	}
	res, err := s.call(w.t.Context(), second, "two", body)
	bound := c.saved > 0 && !c.derive // by Bind, or by its call
	if bound && state.Fingerprint == "" {
		s.failf("State %d has no fingerprint", c.saved)
	}
	switch reused := errors.Is(err, idem.ErrIntentReused); {
	case bound && c.other && (!reused || res.Sends > 0):
		s.failf("another body was not refused: %v", err)
	case reused && (!bound || !c.other):
		s.failf("it was refused: %v", err)
	}
	return s.judge(w.kind.once)
}
