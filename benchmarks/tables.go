package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/idem-go/idem/benchmarks/internal/draw"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A table is one of the report's, under a title.
type table struct {
	Title string
	draw.Table
}

// tables returns those of the parts that were run, by name.
func (r *results) tables() (list []table) {
	add := func(title string, measured bool, t func() draw.Table) {
		if measured {
			list = append(list, table{title, t()})
		}
	}
	add("A. A call that succeeds at once, over a stub", r.stub.Names != nil, func() draw.Table { return costTable(r.stub) })
	add("B. The same over loopback, one caller", r.serial.Names != nil, func() draw.Table { return costTable(r.serial) })
	add(fmt.Sprintf("B. The same over loopback, %d callers", callers), r.parallel.Names != nil, func() draw.Table { return costTable(r.parallel) })
	add("C. One 503, no wait, then success, over a stub (bare net/http is called twice)", r.retry.Names != nil, func() draw.Table { return costTable(r.retry) })
	add(fmt.Sprintf("D. A body of %s, one 503, then success, over a stub", size(float64(r.body))), r.bodies != nil, r.bodyTable)
	add(fmt.Sprintf("E. %d calls that wait for their next attempt, for each call", r.waiting), r.waits != nil, r.waitTable)
	for _, name := range []string{defaultKeys, orderKeys, slowWork} {
		add(name, r.chaos != nil, func() draw.Table { return r.chaosTable(name) })
	}
	add("G. Calls under way at once, over a stub", r.flat != nil, r.flatTable)
	add("G. From the first Intent to the last, one Transport", r.intents != nil, r.intentTable)
	add("G. The mock server, in memory", r.mock != nil, r.mockTable)
	return list
}

// text returns the tables as the terminal gets them.
func (r *results) text() string {
	var b strings.Builder
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "%s\n\n%s\n", t.Title, t.Table.String())
	}
	if goals := r.goals(); goals != nil {
		fmt.Fprintf(&b, "Goals\n\n%s", goalTable(goals))
	}
	return b.String()
}

func costTable(c measure.Costs) draw.Table {
	t := draw.Table{Columns: []string{"client", "ns/call", "±", "CPU ns", "× bare", "±", "× Timeout", "±", "B", "allocs", "over bare: B", "allocs"}}
	for _, name := range c.Names {
		bare, timeout := basesOf(c, name)
		toBare, bareSpread := c.Ratio(name, bare, measure.CPU)
		toTimeout, timeoutSpread := c.Ratio(name, timeout, measure.CPU)
		t.Add(name,
			whole(c.Median(name, measure.Wall)), percent(c.Spread(name, measure.Wall)), whole(c.Median(name, measure.CPU)),
			ratio(toBare), percent(bareSpread), ratio(toTimeout), percent(timeoutSpread),
			whole(c.Median(name, measure.Bytes)), whole(c.Median(name, measure.Allocs)),
			signed(over(c, name, bare, measure.Bytes)), signed(over(c, name, bare, measure.Allocs)))
	}
	return t
}

// basesOf returns what a case is compared with: bare net/http that sends the same
// request, with a key if the case sends one, without Timeout and with.
func basesOf(c measure.Costs, name string) (bare, timeout string) {
	if strings.HasSuffix(name, noKey) && slices.Contains(c.Names, peers.Bare+noKey) {
		return peers.Bare + noKey, peers.BareTimeout + noKey
	}
	return peers.Bare, peers.BareTimeout
}

// over returns by how much the median of one case is above that of another.
func over(c measure.Costs, name, base string, f measure.Field) float64 {
	return c.Median(name, f) - c.Median(base, f)
}

func (r *results) bodyTable() draw.Table {
	t := draw.Table{Columns: []string{"client", "body", "allocated", "live MiB", "peak MiB", "the caller gets"}}
	for _, c := range r.bodies {
		if c.taken {
			t.Add(c.client, c.form, size(c.bytes), fmt.Sprintf("%.1f", c.live), fmt.Sprintf("%.1f", c.peak), c.end)
		}
	}
	return t
}

func (r *results) waitTable() draw.Table {
	t := draw.Table{Columns: []string{"client", "heap B", "stack B", "together B", "goroutines"}}
	for _, p := range peers.Of("E") {
		w := r.waitOf(p.Name)
		t.Add(p.Name, whole(w.heap), whole(w.stack), whole(w.total()), fmt.Sprintf("%.2f", w.goroutines))
	}
	return t
}

// waitOf returns the medians over the rounds.
func (r *results) waitOf(name string) waitCost {
	median := func(f func(waitCost) float64) float64 {
		xs := make([]float64, len(r.waits[name]))
		for i, w := range r.waits[name] {
			xs[i] = f(w)
		}
		return measure.Median(xs)
	}
	return waitCost{
		heap:       median(func(w waitCost) float64 { return w.heap }),
		stack:      median(func(w waitCost) float64 { return w.stack }),
		goroutines: median(func(w waitCost) float64 { return w.goroutines }),
	}
}

func (r *results) chaosTable(name string) draw.Table {
	t := draw.Table{Columns: []string{"client", "orders", "effects/order", "doubled", "lost", "unknown", "wrong", "failed", "asked again", "attempts/order", "of them 409", "bad requests", "s"}}
	for _, c := range r.chaos {
		if c.table != name {
			continue
		}
		count := func(n int) string { return fmt.Sprint(n) }
		per := func(n int) string { return fmt.Sprintf("%.3f", float64(n)/float64(c.Orders)) }
		t.Add(c.client, count(c.Orders), per(c.Effects), count(c.Doubled), count(c.Lost), count(c.Unknown), count(c.Wrong),
			count(c.Failed), count(c.GaveUp), per(c.Attempts), per(c.Busy), count(c.Refused), fmt.Sprintf("%.1f", c.Wall.Seconds()))
	}
	return t
}

func (r *results) flatTable() draw.Table {
	t := draw.Table{Columns: []string{"client", "at once", "ns/call", "±", "CPU ns", "× bare", "× Timeout", "B", "allocs"}}
	for i, c := range r.flat {
		for _, name := range c.Names {
			toBare, _ := c.Ratio(name, peers.Bare, measure.CPU)
			toTimeout, _ := c.Ratio(name, peers.BareTimeout, measure.CPU)
			t.Add(name, fmt.Sprint(r.levels[i]), whole(c.Median(name, measure.Wall)), percent(c.Spread(name, measure.Wall)), whole(c.Median(name, measure.CPU)),
				ratio(toBare), ratio(toTimeout), whole(c.Median(name, measure.Bytes)), whole(c.Median(name, measure.Allocs)))
		}
	}
	return t
}

func (r *results) intentTable() draw.Table {
	t := draw.Table{Columns: []string{"calls", "ns/call", "CPU ns", "× bare", "B", "allocs"}}
	for _, s := range r.intents {
		t.Add(fmt.Sprintf("%d to %d", s.from, s.to), whole(s.Wall), whole(s.CPU), ratio(s.ratio()), whole(s.Bytes), whole(s.Allocs))
	}
	return t
}

func (r *results) mockTable() draw.Table {
	t := draw.Table{Columns: []string{"callers", "requests", "requests/s", "±", "CPU ns", "B", "allocs"}}
	median := func(f measure.Field) string { return whole(measure.Median(r.mocks(f))) }
	t.Add(fmt.Sprint(callers), fmt.Sprint(r.requests), median(perSecond), percent(measure.Spread(r.mocks(perSecond))), median(measure.CPU), median(measure.Bytes), median(measure.Allocs))
	return t
}

// mocks returns a field of the mock server's cost for each round.
func (r *results) mocks(f measure.Field) []float64 {
	xs := make([]float64, len(r.mock))
	for i, s := range r.mock {
		xs[i] = f(s)
	}
	return xs
}

func perSecond(s measure.Sample) float64 { return 1e9 / s.Wall }

func whole(v float64) string   { return fmt.Sprintf("%.0f", v) }
func signed(v float64) string  { return fmt.Sprintf("%+.0f", math.Round(v)+0) } // +0 makes -0 positive
func ratio(v float64) string   { return fmt.Sprintf("%.2f", v) }
func percent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

func size(bytes float64) string {
	if bytes >= mib {
		return fmt.Sprintf("%.1f MiB", bytes/mib)
	}
	return fmt.Sprintf("%.1f KiB", bytes/1024)
}
