package chaos

import (
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/stretchr/testify/assert"
)

// The plan meets its shares, and depends on its arguments only.
func TestPlan(t *testing.T) {
	const n = 20_000
	shares := Shares{DropBefore: .10, DropAfter: .20, DropDuring: .05, Unavailable: .15, CutBody: .01}
	plan, again, other := shares.Plan(1), shares.Plan(1), shares.Plan(2)
	var count [CutBody + 1]int
	differ := 0
	for i := range n {
		order, attempt := peers.OrderID(i/2), i%2+1
		f := plan(order, attempt)
		count[f]++
		assert.Equal(t, f, again(order, attempt))
		if f != other(order, attempt) {
			differ++
		}
	}
	for f := DropBefore; f <= CutBody; f++ {
		assert.InDelta(t, shares[f]*n, count[f], n/100, "fault %d", f)
	}
	assert.Greater(t, differ, n/4)
}

// What counts as what.
func TestTally(t *testing.T) {
	for name, c := range map[string]struct {
		end  end
		so   Entry
		want Tally
	}{
		"done at once":                {end{calls: 1, done: true}, Entry{1, 1}, Tally{Effects: 1, Attempts: 1}},
		"done twice":                  {end{calls: 2, done: true}, Entry{3, 2}, Tally{Effects: 2, Attempts: 3, Doubled: 1, GaveUp: 1, Bad: 1}},
		"failed, nothing done":        {end{calls: 2}, Entry{4, 0}, Tally{Attempts: 4, Lost: 1, Failed: 1, GaveUp: 1, Bad: 1}},
		"failed, and done":            {end{calls: 2}, Entry{4, 1}, Tally{Attempts: 4, Effects: 1, Unknown: 1, Failed: 1, GaveUp: 1, Bad: 1}},
		"said to be done, and is not": {end{calls: 1, done: true}, Entry{1, 0}, Tally{Attempts: 1, Lost: 1, Wrong: 1, Bad: 1}},
		"answered": {end{calls: 1, done: true, says: true, outcome: idem.Answered}, Entry{1, 1},
			Tally{Effects: 1, Attempts: 1}},
		"answered, and not done": {end{calls: 1, done: true, says: true, outcome: idem.Answered}, Entry{1, 0},
			Tally{Attempts: 1, Lost: 1, Wrong: 1, Bad: 1}},
		"not executed, and done": {end{calls: 2, says: true, outcome: idem.NotExecuted}, Entry{2, 1},
			Tally{Effects: 1, Attempts: 2, Wrong: 1, Failed: 1, GaveUp: 1, Bad: 1}},
		"not executed": {end{calls: 2, says: true, outcome: idem.NotExecuted}, Entry{2, 0},
			Tally{Attempts: 2, Lost: 1, Failed: 1, GaveUp: 1, Bad: 1}},
		"unknown": {end{calls: 2, says: true, outcome: idem.OutcomeUnknown}, Entry{2, 1},
			Tally{Effects: 1, Attempts: 2, Unknown: 1, Failed: 1, GaveUp: 1, Bad: 1}},
	} {
		var got Tally
		got.add(c.end, c.so)
		assert.Equal(t, c.want, got, name)
	}
}

// plan is a small run.
func plan(f Fault) Plan {
	p := Plan{Seed: 1, Orders: 40, Callers: 4, Attempts: 3}
	p.Shares[f] = 1
	p.Shares[None] = 0
	return p
}

// Without faults every client does every order once, with one request.
func TestCalmRun(t *testing.T) {
	for _, p := range peers.Of("F") {
		got := plan(None).Run(p)
		got.Wall = 0
		assert.Equal(t, Tally{Orders: 40, Effects: 40, Attempts: 40}, got, p.Name)
	}
}

// When every answer is lost, a client without keys does the work each time, one
// with a key for each call does it twice, and one with a key for the order once.
func TestLostAnswers(t *testing.T) {
	bare := plan(DropAfter).Run(peers.Named(peers.Bare))
	assert.Equal(t, 40, bare.Doubled)
	assert.Equal(t, 80, bare.Effects)
	assert.Equal(t, 40, bare.Unknown)
	assert.Equal(t, 40, bare.Bad, "an order counts once")

	stripe := plan(DropAfter).Run(peers.Named(peers.Stripe))
	assert.Equal(t, 80, stripe.Effects)
	assert.Equal(t, 40, stripe.Doubled)

	keyed := plan(DropAfter)
	keyed.KeyPerOrder = true
	stripe = keyed.Run(peers.Named(peers.Stripe))
	assert.Equal(t, 40, stripe.Effects)
	assert.Zero(t, stripe.Doubled)
	assert.Equal(t, 40, stripe.Unknown)

	for _, name := range []string{peers.Idem, peers.IdemClient} {
		ours := plan(DropAfter).Run(peers.Named(name))
		assert.Equal(t, 40, ours.Effects, name)
		assert.Zero(t, ours.Doubled+ours.Lost+ours.Wrong, name)
		assert.Equal(t, 40, ours.Unknown, "no answer has ever come")
	}
}

// A service that is never there leaves every order undone.
func TestUnavailable(t *testing.T) {
	for _, name := range []string{peers.Bare, peers.Idem} {
		got := plan(Unavailable).Run(peers.Named(name))
		assert.Equal(t, 40, got.Lost, name)
		assert.Equal(t, 40, got.Failed, name)
		assert.Equal(t, 40, got.GaveUp, name)
		assert.Zero(t, got.Doubled+got.Wrong+got.Effects, name)
	}
}
