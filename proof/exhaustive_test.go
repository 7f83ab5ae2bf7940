package proof_test

import (
	"flag"
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
)

var full = flag.Bool("full", false, "run every schedule up to four attempts, not only up to two")

// worldful is how many schedules share a world: a server costs more than a call,
// and its log is searched by each.
const worldful = 64

// TestExhaustive runs every sequence of ends of attempts, against every kind of
// server, on fresh and on reused connections, with and without a key. A sequence
// that has ended the call before its last element stands for all that begin so.
func TestExhaustive(t *testing.T) {
	if *full {
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	var mu sync.Mutex
	sums := map[string]*tally{}
	start := time.Now()
	t.Run("sweep", func(t *testing.T) {
		for _, k := range kinds() {
			for _, unkeyed := range []bool{false, true} {
				for _, conn := range []connections{fresh, reused} {
					t.Run(fmt.Sprintf("%s/%s on %s connections", k.name, keyedness(unkeyed), conn), func(t *testing.T) {
						t.Parallel()
						sum := sweep(t, k, conn, unkeyed)
						mu.Lock()
						defer mu.Unlock()
						for _, name := range []string{k.name, keyedness(unkeyed), "all"} {
							if sums[name] == nil {
								sums[name] = new(tally)
							}
							sums[name].add(&sum)
						}
					})
				}
			}
		}
	})
	for _, k := range kinds() {
		t.Logf("%s: %v", k.name, sums[k.name])
		if *full && !t.Failed() {
			k.exact(t, sums[k.name])
		}
	}
	for _, name := range []string{"keyed", "unkeyed", "all"} {
		t.Logf("%s: %v in %v", name, sums[name], time.Since(start).Round(time.Millisecond))
	}
}

func keyedness(unkeyed bool) string {
	if unkeyed {
		return "unkeyed"
	}
	return "keyed"
}

// exact checks that no promise of the table is weaker than what was seen, and
// that each outcome was seen at all.
func (k kind) exact(t *testing.T, sum *tally) {
	t.Helper()
	for promise, seen := range map[string]bool{
		"once":        k.once != (sum.doubled > 0),
		"onceUnkeyed": k.onceUnkeyed != (sum.doubledUnkeyed > 0),
		"refused":     k.refused != (sum.lied > 0),
		"final":       k.final != (sum.reversed > 0),
	} {
		if !seen {
			t.Errorf("%s: the promise %q holds in every schedule: the table is too weak", k.name, promise)
		}
	}
	for o, n := range sum.outcomes {
		if n == 0 {
			t.Errorf("%s: no schedule came to %v", k.name, idem.Outcome(o))
		}
	}
}

// tally is what a sweep has seen.
type tally struct {
	executed, covered int
	outcomes          [3]int // by idem.Outcome
	doubled           int    // a key with more than one effect
	doubledUnkeyed    int    // a request without one, with more than one effect
	lied              int    // NotExecuted and an effect
	reversed          int    // Answered, not 2xx, and an effect
}

func (s *tally) add(o *tally) {
	s.executed += o.executed
	s.covered += o.covered
	s.doubled += o.doubled
	s.doubledUnkeyed += o.doubledUnkeyed
	s.lied += o.lied
	s.reversed += o.reversed
	for i, n := range o.outcomes {
		s.outcomes[i] += n
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%d schedules executed, %d covered; %d unknown, %d not executed, %d answered",
		s.executed, s.covered, s.outcomes[idem.OutcomeUnknown], s.outcomes[idem.NotExecuted], s.outcomes[idem.Answered])
}

// sweep runs the schedules of one kind.
func sweep(t *testing.T, k kind, conn connections, unkeyed bool) tally {
	start := time.Now()
	sum := sweepWith(t, k, schedule{conn: conn, unkeyed: unkeyed}, depth(2, maxAttempts))
	n := len(k.ends(conn))
	if *full && sum.covered != power(n, maxAttempts) {
		t.Errorf("%d schedules are covered of %d", sum.covered, power(n, maxAttempts))
	}
	t.Logf("%d ends of attempts: %v in %v", n, sum, time.Since(start).Round(time.Millisecond))
	return *sum
}

// depth is how many ends of a schedule are varied: ordinarily, one less under the
// race detector, and in the full run.
func depth(ordinary, all int) int {
	switch {
	case *full:
		return all
	case raced:
		return max(ordinary-1, 1)
	default:
		return ordinary
	}
}

// stride is which of many schedules are run: in the full run all, under the race
// detector a fourth of the ordinary ones.
func stride(ordinary int) int {
	switch {
	case *full:
		return 1
	case raced:
		return 4*ordinary + 1
	default:
		return ordinary
	}
}

// sweepWith runs s with every sequence of deep ends, the first of them for ever
// after.
func sweepWith(t *testing.T, k kind, s schedule, deep int) *tally {
	ends := k.ends(s.conn)
	sum := new(tally)
	digits := make([]int, maxAttempts)
	for more := true; more && !t.Failed(); {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, k)
			w.sum = sum
			for n := 0; n < worldful && more; n++ {
				s.kind, s.ends = k.name, nil
				for _, d := range digits {
					s.ends = append(s.ends, ends[d])
				}
				r := w.run(s, n)
				met := min(max(r.trips, 1), maxAttempts)
				r.report(t, met)
				for i, d := range digits { // jitter may have ended a neighbour later
					if d > 0 {
						met = max(met, i+1)
					}
				}
				sum.executed++
				sum.outcomes[r.result.Outcome]++
				sum.covered += power(len(ends), maxAttempts-met)
				more = next(digits, min(met, deep), len(ends))
			}
		})
	}
	return sum
}

// next counts up the first n digits, to the given base, and clears the others.
func next(digits []int, n, base int) bool {
	clear(digits[n:])
	for i := n - 1; i >= 0; i-- {
		if digits[i]++; digits[i] < base {
			return true
		}
		digits[i] = 0
	}
	return false
}

func power(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}
