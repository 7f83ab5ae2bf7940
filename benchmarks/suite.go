package main

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem/benchmarks/internal/chaos"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// sizes say how long a run is.
type sizes struct {
	rounds   int           // of A, B and C
	each     time.Duration // of one measurement there
	body     int64         // of D
	slow     int           // rounds of G
	looks    int           // rounds of E
	waiting  int           // calls of E
	wait     time.Duration // of each
	orders   int           // of F; a quarter with a key each, an eighth in F2
	levels   []int         // concurrent calls in G
	calls    int           // of a measurement there
	opened   int           // Intents, in G
	requests int           // to the mock server
}

func fullSizes() sizes {
	return sizes{
		rounds: 25, each: 80 * time.Millisecond, body: 16 * mib, slow: 5, looks: 3, waiting: 10_000, wait: 10 * time.Second, orders: 20_000,
		levels: []int{1, 10, 100, 1000, 10_000}, calls: 100_000, opened: 1_000_000, requests: 30_000,
	}
}

func quickSizes() sizes {
	return sizes{
		rounds: 7, each: 30 * time.Millisecond, body: 16 * mib, slow: 1, looks: 1, waiting: 10_000, wait: 6 * time.Second, orders: 2000,
		levels: []int{1, 10, 100, 1000, 10_000}, calls: 30_000, opened: 200_000, requests: 30_000,
	}
}

// results are what was measured.
type results struct {
	sizes
	machine  machine
	stub     measure.Costs
	serial   measure.Costs
	parallel measure.Costs
	retry    measure.Costs
	bodies   []bodyCost
	refuses  bool // of a body that cannot be sent again idem says so
	waits    map[string][]waitCost
	chaos    []chaosRow
	flat     []measure.Costs // by level
	intents  []stretch
	left     float64 // bytes of heap that remain of each Intent
	mock     []measure.Sample
}

// A chaosRow is one client in one chaos table.
type chaosRow struct {
	table, client string
	chaos.Tally
}

// The chaos tables.
const (
	defaultKeys = "F, each client's own rule for keys"
	orderKeys   = "F, the application gives each order a key"
	slowWork    = "F2, each client's own rule for keys, slow work"
)

// A part is one of those that the run consists of.
type part struct {
	letter, title string
	weight        time.Duration // what it takes, about
	run           func(ctx context.Context, r *results, step func(time.Duration)) error
}

// parts returns all of them, in their order.
func (s sizes) parts() []part {
	rounds := func(cases int) time.Duration { return time.Duration(cases*s.rounds) * s.each }
	return []part{
		{"A", "a call that succeeds at once, over a stub", rounds(len(stubCases())), runStub},
		{"B", "the same over loopback", rounds(2 * len(peers.Of("B"))), runLoopback},
		{"C", "one 503, then success", rounds(len(peers.Of("C"))), runRetry},
		{"D", "a big body and one 503", bodyWeight * time.Duration(len(bodyPeers(0))*len(forms(0))), runBodies},
		{"E", "calls that wait", waitWeight * time.Duration(len(peers.Of("E"))*s.looks), runWaiting},
		{"F", "the chaos tables", s.chaosWeight(), runChaos},
		{"G", "the same cost for many", flatWeight * time.Duration(s.slow*(len(s.levels)*3+1)+10), runFlat},
	}
}

// What one measurement takes, about.
const (
	bodyWeight = 150 * time.Millisecond
	waitWeight = 600 * time.Millisecond
	flatWeight = time.Second
	orderTime  = 80 * time.Microsecond
)

func runStub(_ context.Context, r *results, step func(time.Duration)) (err error) {
	r.stub, err = measure.Rounds(stubCases(), r.rounds, r.each, func() { step(r.each) })
	return err
}

func runLoopback(ctx context.Context, r *results, step func(time.Duration)) error {
	base, stop, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer stop()
	one, many := loopbackCases(base)
	if r.serial, err = measure.Rounds(one, r.rounds, r.each, func() { step(r.each) }); err != nil {
		return err
	}
	r.parallel, err = measure.Rounds(many, r.rounds, r.each, func() { step(r.each) })
	return err
}

func runRetry(_ context.Context, r *results, step func(time.Duration)) (err error) {
	r.retry, err = measure.Rounds(retryCases(), r.rounds, r.each, func() { step(r.each) })
	return err
}

func runBodies(_ context.Context, r *results, step func(time.Duration)) error {
	for _, f := range forms(r.body) {
		for _, p := range bodyPeers(r.body) {
			r.bodies = append(r.bodies, measureBody(p, f))
			step(bodyWeight)
		}
		if f.name == fromUnknown {
			r.refuses = refuses(peers.Named(peers.Idem), f)
		}
	}
	return nil
}

func runWaiting(_ context.Context, r *results, step func(time.Duration)) error {
	r.waits = map[string][]waitCost{}
	for range r.looks {
		for _, p := range peers.Of("E") {
			cost, err := patientlyWaiting(p, r.waiting, r.wait)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			r.waits[p.Name] = append(r.waits[p.Name], cost)
			step(waitWeight)
		}
	}
	return nil
}

// chaosPlans returns the runs by table.
func (s sizes) chaosPlans() map[string]chaos.Plan {
	usual := chaos.Plan{
		Shares: chaos.Shares{chaos.DropBefore: .10, chaos.DropAfter: .10, chaos.Unavailable: .10, chaos.CutBody: .05},
		Seed:   1, Orders: s.orders, Callers: 32, Attempts: attempts, Wait: time.Millisecond, Pause: 5 * time.Millisecond,
	}
	keyed := usual
	keyed.KeyPerOrder, keyed.Orders = true, s.orders/4
	slow := usual
	slow.Shares[chaos.DropAfter], slow.Shares[chaos.DropDuring] = .05, .05
	slow.Work, slow.Orders = 3*time.Millisecond, s.orders/8
	return map[string]chaos.Plan{defaultKeys: usual, orderKeys: keyed, slowWork: slow}
}

func (s sizes) chaosWeight() (sum time.Duration) {
	for _, plan := range s.chaosPlans() {
		sum += orderTime * time.Duration(plan.Orders*len(peers.Of("F")))
	}
	return sum
}

func runChaos(_ context.Context, r *results, step func(time.Duration)) error {
	plans := r.chaosPlans()
	for _, table := range []string{defaultKeys, orderKeys, slowWork} {
		for _, p := range peers.Of("F") {
			plan := plans[table]
			r.chaos = append(r.chaos, chaosRow{table, p.Name, plan.Run(p)})
			step(orderTime * time.Duration(plan.Orders))
		}
	}
	return nil
}

func runFlat(_ context.Context, r *results, step func(time.Duration)) error {
	one := func() { step(flatWeight) }
	for _, level := range r.levels {
		costs, err := measure.Rounds(flatCases(level, r.calls), r.slow, 0, one)
		if err != nil {
			return err
		}
		r.flat = append(r.flat, costs)
	}
	var err error
	if r.intents, r.left, err = measureIntents(r.opened, one); err != nil {
		return err
	}
	for range r.slow {
		cost, err := measureMock(r.requests)
		if err != nil {
			return err
		}
		r.mock = append(r.mock, cost)
		one()
	}
	return nil
}
