package proof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// A disturbance is something that happens at a moment of a schedule, with the
// promises that are left.
type disturbance struct {
	do    string
	where string // only at these moments; empty: wherever it happens
	promises
}

// moments are the places at which something may happen, at each attempt.
func moments() []string {
	return []string{
		"before an attempt",
		"in flight, before the work",
		"in flight, after the work",
		"in flight, with the answer",
		"a second later", // than the attempt began: in flight, where it is held
		"between attempts",
		"in the wait",
	}
}

func disturbances() []disturbance {
	all := promises{once: true, onceUnkeyed: true, refused: true, final: true}
	notOnce := promises{onceUnkeyed: true, refused: true}
	return []disturbance{
		{do: "cancel", promises: all},
		{do: "body fails", promises: all}, // the caller's reader, half way
		{do: "restart", promises: all},
		// The work is done and its answer is not kept: two facts, and a crash
		// between them.
		{do: "restart", where: "in flight, after the work", promises: notOnce},
		{do: "restart without memory", promises: notOnce},
		{do: "forget", promises: notOnce},
		// Both clocks.
		{do: "sleep 58m", promises: all},
		{do: "sleep 61m", promises: all},
		// The server's clock alone: within the margin, and past the window, which
		// then ends sooner than the contract says.
		{do: "advance 50s", promises: all},
		{do: "advance 61m", promises: notOnce},
	}
}

// disturb lets it happen.
func (r *run) disturb() {
	switch w := r.w; r.do {
	case "cancel":
		r.cancel()
	case "body fails":
		r.failing.Store(true)
	case "restart":
		w.restart()
	case "restart without memory":
		w.restart()
		w.srv.Forget()
	case "forget":
		w.srv.Forget()
	case "sleep 58m":
		time.Sleep(58 * time.Minute)
	case "sleep 61m":
		time.Sleep(61 * time.Minute)
	case "advance 50s":
		r.advance(50 * time.Second)
	case "advance 61m":
		r.advance(61 * time.Minute)
	default:
		r.failf("there is no disturbance %q", r.do)
	}
}

func (r *run) advance(d time.Duration) {
	r.w.srv.Advance(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead += d
}

// windowed is a kind of server with a window of an hour.
func windowed(name string) kind {
	hour := contract.Contract{Window: time.Hour}
	k := kinds()[0]
	k.name, k.contract, k.client, k.thorough = name, hour, hour, false
	k.tune = func(t *idem.Transport) { t.AttemptTimeout = -1 }
	// A pooled connection that dies shortly before the end of the window, and
	// after it: net/http would send again.
	k.extra = []string{
		"delay@received for=57m59s send=1; drop@received send=1",
		"delay@received for=58m1s send=1; drop@received send=1",
	}
	return k
}

// TestDisturbed lets each disturbance happen at each moment of each attempt of
// every sequence of two ends.
func TestExhaustiveDisturbed(t *testing.T) {
	for _, d := range disturbances() {
		if d.where != "" {
			continue
		}
		t.Run(d.do, func(t *testing.T) {
			t.Parallel()
			k := kinds()[0]
			k.thorough = false
			if strings.HasPrefix(d.do, "sleep") || strings.HasPrefix(d.do, "advance") {
				k = windowed(k.name)
			}
			total := new(tally)
			for _, conn := range []connections{fresh, reused} {
				for attempt := 1; attempt <= 2; attempt++ {
					for _, where := range moments() {
						if strings.HasPrefix(d.do, "sleep") && !slices.Contains([]string{"before an attempt", "in flight, with the answer", "between attempts"}, where) {
							continue // only the caller's goroutine: a worker that outlives its claim is another kind of server
						}
						total.add(sweepWith(t, k, schedule{conn: conn, do: d.do, at: moment{where, attempt}}, depth(1, 2)))
					}
				}
			}
			t.Logf("%v", total)
		})
	}
}
