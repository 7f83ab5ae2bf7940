package proof_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
)

// A director decides whose attempt begins and whose ends, one at a time.
type director struct {
	mu    sync.Mutex
	gates map[string]chan struct{} // by caller and phase
	open  chan struct{}            // closed: nobody waits any more
}

type phase string

const (
	begins phase = "begins" // an attempt is about to be handed to the network
	ends   phase = "ends"   // its answer is about to be told
)

func newDirector() *director {
	return &director{gates: map[string]chan struct{}{}, open: make(chan struct{})}
}

func (d *director) gate(caller string, p phase) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := caller + " " + string(p)
	if d.gates[name] == nil {
		d.gates[name] = make(chan struct{})
	}
	return d.gates[name]
}

func (d *director) wait(ctx context.Context, caller string, p phase) {
	select {
	case <-d.gate(caller, p):
	case <-d.open:
	case <-ctx.Done():
	}
}

// pass lets the caller pass that waits there, if one does.
func (d *director) pass(caller string, p phase) {
	select {
	case d.gate(caller, p) <- struct{}{}:
	default:
	}
	synctest.Wait()
}

// company is what two calls on one Intent meet, and in which order: A and B by
// turns stand for the beginning and the end of an attempt.
type company struct {
	order  string // of "ABAB…", four of each
	a, b   []string
	late   bool   // the server holds what has arrived until the attempt is to end: the work is done there
	cancel int    // a context ends before this step; 0: none does
	whose  string // that of A or B
}

// TestExhaustiveCompany runs two calls of two attempts on one Intent, in every
// order in which their attempts can begin and end.
func TestExhaustiveCompany(t *testing.T) {
	var list []company
	plans := companyPlans([]string{"pass", "401@received", "402@claimed", "drop@stored", "429@received", "refuse@dial"})
	for i, order := range orders(4, 4) {
		if order[0] == 'B' {
			continue // the same with names changed
		}
		for j, a := range plans {
			for k, b := range plans {
				for _, late := range []bool{false, true} {
					if n := i*31 + j*7 + k*3; n%stride(29) == 0 {
						list = append(list, company{order: order, a: a, b: b, late: late})
						if n%11 != 0 {
							continue // cancelling is thinned out: it meets every order and every pair of plans
						}
						for step := 1; step <= 8; step++ {
							list = append(list, company{order, a, b, late, step, "A"}, company{order, a, b, late, step, "B"})
						}
					}
				}
			}
		}
	}
	kinds := kinds()
	for _, k := range []kind{kinds[0], kinds[2], kinds[4]} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			k.tune = func(t *idem.Transport) { t.MaxAttempts, t.AttemptTimeout = 2, -1 }
			start := time.Now()
			list := list
			if k.name != kinds[0].name {
				list = list[:len(list)/7]
			}
			for i := 0; i < len(list) && !t.Failed(); i += worldful {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, k)
					for _, c := range list[i:min(i+worldful, len(list))] {
						if failures := w.company(c); len(failures) > 0 {
							t.Errorf("%s\n%s: %#v", strings.Join(failures, "\n"), k.name, c)
						}
					}
				})
			}
			t.Logf("%d schedules in %v", len(list), time.Since(start).Round(time.Millisecond))
		})
	}
}

// company runs one.
func (w *world) company(c company) []string {
	s, p := w.story(idem.Open(), false)
	s.direct = newDirector()
	for _, plan := range []struct {
		caller string
		ends   []string
	}{{"A", c.a}, {"B", c.b}} {
		for _, e := range plan.ends {
			if c.late && e != "refuse@dial" {
				e = "hang@received; " + e
				e = strings.TrimSuffix(e, "; pass")
			}
			s.meets(plan.caller, e)
		}
	}
	ctxs, cancels := map[string]context.Context{}, map[string]context.CancelFunc{}
	for _, caller := range []string{"A", "B"} {
		ctxs[caller], cancels[caller] = context.WithCancel(w.t.Context())
		defer cancels[caller]()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := map[string]idem.Result{}
	for caller, ctx := range ctxs {
		wg.Go(func() {
			res, _ := s.call(ctx, p, caller, payload)
			mu.Lock()
			defer mu.Unlock()
			done[caller] = res
		})
	}
	synctest.Wait()
	phases := map[byte]phase{'A': begins, 'B': begins}
	held := map[byte]int{} // the number of the attempt, as the server counts
	for i := range len(c.order) {
		if c.cancel == i+1 {
			cancels[c.whose]()
			synctest.Wait()
		}
		x := c.order[i]
		if phases[x] == begins {
			time.Sleep(3 * time.Second) // waits end
			before := len(w.srv.Requests(s.key))
			s.direct.pass(string(x), begins)
			if n := len(w.srv.Requests(s.key)); n > before {
				held[x] = w.srv.Requests(s.key)[n-1].Attempt
			}
			phases[x] = ends
		} else {
			if n := held[x]; n > 0 {
				w.srv.Release(s.key, n)
				synctest.Wait()
			}
			s.direct.pass(string(x), ends)
			phases[x] = begins
		}
		s.observe(fmt.Sprintf("after step %d", i+1))
		mu.Lock()
		s.otherOpen(p, done, i+1)
		mu.Unlock()
	}
	w.srv.Release(s.key)
	close(s.direct.open)
	wg.Wait()
	return s.judge(w.kind.once)
}

// otherOpen checks what may be said while one of the two calls, or both, are not
// done: the other one may yet send, so neither NotExecuted nor an answer that is
// not settled.
func (s *story) otherOpen(p *process, done map[string]idem.Result, step int) {
	if len(done) == 2 {
		return
	}
	if o := p.in.Outcome(); o == idem.NotExecuted {
		s.failf("the Intent says %v after step %d, and a call is under way", o, step)
	}
	for caller, res := range done {
		if res.Outcome == idem.NotExecuted || res.Outcome == idem.Answered && p.in.State().Outcome != idem.Answered {
			s.failf("%s was told %v (%d) by step %d, and the other call is under way", caller, res.Outcome, res.Status, step)
		}
	}
}

// orders are the interleavings of a times A and b times B.
func orders(a, b int) []string {
	if a == 0 || b == 0 {
		return []string{strings.Repeat("A", a) + strings.Repeat("B", b)}
	}
	var list []string
	for _, o := range orders(a-1, b) {
		list = append(list, "A"+o)
	}
	for _, o := range orders(a, b-1) {
		list = append(list, "B"+o)
	}
	return list
}

// companyPlans are the ends of up to two attempts. What ends a call is not
// followed by another.
func companyPlans(all []string) (plans [][]string) {
	for _, first := range all {
		if first == "pass" || strings.HasPrefix(first, "40") {
			plans = append(plans, []string{first})
			continue
		}
		for _, second := range all {
			plans = append(plans, []string{first, second})
		}
	}
	return plans
}
