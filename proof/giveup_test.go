package proof_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
)

// TestExhaustiveDeadline lets the call's deadline end at every kind of moment:
// in flight, in a wait, together with an attempt's own timeout, before a wait that
// would pass it.
func TestExhaustiveDeadline(t *testing.T) {
	for _, d := range []time.Duration{
		1, time.Millisecond, 120 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second, 6 * time.Second,
		30*time.Second - 1, 30 * time.Second, 30*time.Second + 150*time.Millisecond, 31 * time.Second, 45 * time.Second, 61 * time.Second, 2 * time.Minute,
	} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			sum := new(tally)
			for _, conn := range []connections{fresh, reused} {
				for _, k := range []kind{kinds()[0], kinds()[4]} {
					k.thorough = k.thorough && *full
					sum.add(sweepWith(t, k, schedule{conn: conn, deadline: d}, depth(1, 2)))
				}
			}
			t.Logf("%v", sum)
		})
	}
}

// TestExhaustiveGivesUp lets the Transport give up early, for every reason that
// there is.
func TestExhaustiveGivesUp(t *testing.T) {
	tunes := map[string]func(*idem.Transport){
		"no long wait": func(t *idem.Transport) { t.MaxRetryAfter = 3 * time.Second },
		"no budget":    func(t *idem.Transport) { t.Budget = idem.NewBudget(0, 0) },
		"low budget":   func(t *idem.Transport) { t.Budget = idem.NewBudget(0.5, 1) },
		"no buffering": func(t *idem.Transport) { t.MaxResponse = -1 },
		"no body kept": func(t *idem.Transport) { t.MaxBody = -1 },
	}
	for n := 1; n < maxAttempts; n++ {
		tunes[fmt.Sprintf("%d attempts", n)] = func(t *idem.Transport) { t.MaxAttempts = n }
	}
	for name, tune := range tunes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := new(tally)
			for _, conn := range []connections{fresh, reused} {
				k := kinds()[0]
				k.tune = tune
				sum.add(sweepWith(t, k, schedule{conn: conn}, depth(1, 2)))
			}
			t.Logf("%v", sum)
		})
	}
}
