package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/idem-go/idem/benchmarks/internal/draw"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A goal is something that idem wants to be, and whether it is.
type goal struct {
	number   string
	wanted   string
	measured string
	met      bool
	floor    string // what the least code comes to, where there is such code
}

// goals returns all of them, or nil if not all parts were run.
func (r *results) goals() []goal {
	if r.stub.Names == nil || r.serial.Names == nil || r.retry.Names == nil || r.bodies == nil || r.waits == nil || r.chaos == nil || r.mock == nil {
		return nil
	}
	var list []goal
	list = append(list, r.stubGoals()...)
	list = append(list, loopbackGoals("one caller", r.serial)...)
	list = append(list, loopbackGoals(fmt.Sprintf("%d callers", callers), r.parallel)...)
	list = append(list, r.retryGoals()...)
	list = append(list, r.bodyGoals()...)
	list = append(list, r.waitGoals()...)
	list = append(list, r.chaosGoals()...)
	return append(list, r.flatGoals()...)
}

func goalTable(goals []goal) *draw.Table {
	t := &draw.Table{Columns: []string{"goal", "wanted", "measured", "met", "floor"}}
	for _, g := range goals {
		met := "yes"
		if !g.met {
			met = "**no**"
		}
		t.Add(g.number, g.wanted, g.measured, met, g.floor)
	}
	return t
}

// A ratioGoal wants no more than most times the processor time of base. Where
// nobody waits for anybody, over a stub, the same goes for the time that passed.
func ratioGoal(number, what string, c measure.Costs, name, base, baseText string, most float64) goal {
	got, spread := c.Ratio(name, base, measure.CPU)
	wall, _ := c.Ratio(name, base, measure.Wall)
	floor, _ := c.Ratio(peers.Floor, base, measure.CPU)
	within := func(v float64) bool { return math.Round(v*100) <= math.Round(most*100) }
	return goal{
		number:   number,
		wanted:   fmt.Sprintf("%s: at most %.2f × %s", what, most, baseText),
		measured: fmt.Sprintf("%.2f ±%.0f%% (wall %.2f)", got, 100*spread, wall),
		met:      within(got) && (within(wall) || strings.HasPrefix(what, loopback)),
		floor:    ratio(floor),
	}
}

func (r *results) stubGoals() []goal {
	const what = "stub, Intent per call"
	allocs := over(r.stub, peers.Idem, peers.Bare, measure.Allocs)
	bytes := over(r.stub, peers.Idem, peers.Bare, measure.Bytes)
	unkeyed := ratioGoal("1", "stub, no key", r.stub, peers.IdemUnkeyed, peers.BareTimeout+noKey, "bare with Timeout", 1)
	unkeyed.floor = ""
	return []goal{
		ratioGoal("1", what, r.stub, peers.Idem, peers.BareTimeout, "bare with Timeout", 1),
		ratioGoal("1", what, r.stub, peers.Idem, peers.Bare, "bare", 2),
		{"1", what + ": at most 16 allocations over bare", signed(allocs), math.Round(allocs) <= 16, signed(over(r.stub, peers.Floor, peers.Bare, measure.Allocs))},
		{"1", what + ": at most 2000 B over bare", signed(bytes), math.Round(bytes) <= 2000, signed(over(r.stub, peers.Floor, peers.Bare, measure.Bytes))},
		unkeyed,
	}
}

const loopback = "loopback, "

func loopbackGoals(who string, c measure.Costs) []goal {
	what := loopback + who
	return []goal{
		ratioGoal("2", what, c, peers.Idem, peers.BareTimeout, "bare with Timeout", 1.03),
		ratioGoal("2", what, c, peers.Idem, peers.Bare, "bare", 1.10),
		ratioGoal("2", what, c, peers.Idem, peers.RTTimeout, "go-retryablehttp's RoundTripper with Timeout", 1),
	}
}

func (r *results) retryGoals() []goal {
	allocs := r.retry.Median(peers.Idem, measure.Allocs)
	return []goal{
		ratioGoal("3", "one 503, then success", r.retry, peers.Idem, peers.Bare, "bare called twice", 1.5),
		{"3", "one 503, then success: at most 70 allocations", whole(allocs), math.Round(allocs) <= 70, whole(r.retry.Median(peers.Floor, measure.Allocs))},
	}
}

func (r *results) bodyGoals() []goal {
	const few = 128 * 1024
	body := float64(r.body)
	big := size(body)
	cost := func(client, form string) bodyCost {
		for _, c := range r.bodies {
			if c.client == client && c.form == form {
				return c
			}
		}
		return bodyCost{}
	}
	kept := func(form string) goal {
		c := cost(peers.Idem, form)
		return goal{"4", big + " from " + form + ", repeated: at most 128 KiB", size(c.bytes) + ", " + c.end, c.end == repeated && c.bytes < few, ""}
	}
	known, sent := cost(idemRoomy, fromKnown), cost(peers.Idem, fromUnknown)
	says := "says nothing"
	if r.refuses {
		says = "says ErrNotRepeatable"
	}
	return []goal{
		kept(fromBytes), kept(fromGetBody),
		{"4", big + " from a reader of known length, within MaxBody, repeated: one buffer", size(known.bytes) + ", " + known.end, known.end == repeated && known.bytes < body+few, big},
		{"4", big + " from a reader, beyond MaxBody: refuses to repeat", sent.end + "; after a lost connection " + says, sent.end != repeated && r.refuses, ""},
	}
}

func (r *results) waitGoals() []goal {
	w, floor := r.waitOf(peers.Idem), r.waitOf(peers.Floor)
	total := func(wanted string, most float64) goal {
		return goal{"5", wanted, whole(w.total()) + " B", w.total() <= most, whole(floor.total()) + " B"}
	}
	return []goal{
		{"5", "waiting: no goroutine but the caller's", fmt.Sprintf("%.2f a call", w.goroutines), w.goroutines < 1.01, fmt.Sprintf("%.2f", floor.goroutines)},
		total("waiting: at most 11 kB a call, with its stack", 11_000),
		total("waiting: aim at 8 kB a call", 8000),
	}
}

func (r *results) chaosGoals() []goal {
	list := make([]goal, 0, 4)
	for _, name := range []string{defaultKeys, slowWork} {
		us, best := r.chaosOf(name)
		label, _, _ := strings.Cut(name, ",")
		list = append(list,
			goal{"6", label + ": 0 doubled, 0 lost, 0 unknown, 0 wrong", fmt.Sprintf("%d, %d, %d, %d of %d", us.Doubled, us.Lost, us.Unknown, us.Wrong, us.Orders), us.Bad == 0, fmt.Sprintf("%s: %d, %d, %d, %d", best.client, best.Doubled, best.Lost, best.Unknown, best.Wrong)},
			goal{"6", label + ": no more attempts per order than the best peer", fmt.Sprintf("%.2f, of them %.2f answered with 409", us.perOrder(), float64(us.Busy)/float64(us.Orders)), us.perOrder() <= best.perOrder()+0.005, fmt.Sprintf("%s: %.2f, with %d bad", best.client, best.perOrder(), best.Bad)},
		)
	}
	return list
}

func (c chaosRow) perOrder() float64 { return float64(c.Attempts) / float64(c.Orders) }

// chaosOf returns idem in a table, and the peer with the fewest bad orders.
func (r *results) chaosOf(name string) (us, best chaosRow) {
	for _, c := range r.chaos {
		switch {
		case c.table != name || c.client == peers.IdemClient:
		case c.client == peers.Idem:
			us = c
		case best.client == "" || c.Bad < best.Bad:
			best = c
		}
	}
	return us, best
}

func (r *results) flatGoals() []goal {
	const most = 1.15 // what is less is noise
	first, last := r.flat[0], r.flat[len(r.flat)-1]
	atFirst, _ := first.Ratio(peers.Idem, peers.Bare, measure.CPU)
	atLast, _ := last.Ratio(peers.Idem, peers.Bare, measure.CPU)
	grown := last.Median(peers.Idem, measure.Allocs) - first.Median(peers.Idem, measure.Allocs)
	half := len(r.intents) / 2
	early, late := ratioOfMedians(r.intents[:half]), ratioOfMedians(r.intents[half:])
	more := r.intents[len(r.intents)-1].Allocs - r.intents[0].Allocs
	rate := measure.Median(r.mocks(perSecond))
	return []goal{
		{"7", fmt.Sprintf("as many × bare for %d calls at once as for one, and as many allocations", r.levels[len(r.levels)-1]), fmt.Sprintf("%.2f and %.2f, %s allocations", atLast, atFirst, signed(grown)), atLast <= most*atFirst && grown < 1, ""},
		{"7", fmt.Sprintf("as many × bare in the second half of %d Intents as in the first, nothing left of each", r.opened), fmt.Sprintf("%.2f and %.2f, %s allocations, %s B left", late, early, signed(more), signed(r.left)), late <= most*early && more < 1 && r.left < 1, ""},
		{"7", "mock server in memory: at least 20000 requests/s", whole(rate), rate >= 20_000, ""},
	}
}

// ratioOfMedians is what a call costs in these stretches, as a multiple of a bare
// one. They are few, and each has one measurement of either: the medians of both
// hide a disturbance that the median of the ratios would show.
func ratioOfMedians(list []stretch) float64 {
	ours, bare := make([]float64, len(list)), make([]float64, len(list))
	for i, s := range list {
		ours[i], bare[i] = s.CPU, s.bare.CPU
	}
	return measure.Median(ours) / measure.Median(bare)
}
