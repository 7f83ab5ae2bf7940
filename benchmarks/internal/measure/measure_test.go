package measure

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		xs             []float64
		median, spread float64
	}{
		{[]float64{4}, 4, 0},
		{[]float64{3, 1, 2}, 2, 0.25},
		{[]float64{4, 1, 3, 2}, 2.5, 0.3},
		{[]float64{1, 2, 3, 4, 1000}, 3, 1. / 3}, // one that is far off counts as little as any other
	} {
		assert.InDelta(t, c.median, Median(c.xs), 1e-9, "%v", c.xs)
		assert.InDelta(t, c.spread, Spread(c.xs), 1e-9, "%v", c.xs)
	}
	assert.True(t, math.IsNaN(Median(nil)))
	xs := []float64{3, 1, 2}
	Median(xs)
	assert.Equal(t, []float64{3, 1, 2}, xs, "the caller's order stays")
}

func TestRatiosAreWithinARound(t *testing.T) {
	assert.Equal(t, []float64{2, 2, 2}, Ratios([]float64{2, 200, 20}, []float64{1, 100, 10}))
	costs := Costs{samples: map[string][]Sample{
		"slow": {{Wall: 2}, {Wall: 200}, {Wall: 20}},
		"fast": {{Wall: 1}, {Wall: 100}, {Wall: 10}},
	}}
	ratio, spread := costs.Ratio("slow", "fast", Wall)
	assert.InDelta(t, 2, ratio, 0)
	assert.InDelta(t, 0, spread, 0)
	assert.InDelta(t, 20, costs.Median("slow", Wall), 0)
}

var sink []byte

func TestMeasureCounts(t *testing.T) {
	const n, size = 1000, 4096
	s, err := Measure(n, func(n int) error {
		for range n {
			sink = make([]byte, size)
		}
		return nil
	})
	require.NoError(t, err)
	assert.InDelta(t, 1, s.Allocs, 0.2)
	assert.InDelta(t, size, s.Bytes, size/10)
	assert.Positive(t, s.Wall)
	assert.Positive(t, s.CPU)
}

func TestRounds(t *testing.T) {
	counts := map[string]int{}
	steps := 0
	run := func(name string) func(int) error {
		return func(n int) error {
			counts[name] += n
			return nil
		}
	}
	costs, err := Rounds([]Case{{"a", 10, run("a")}, {"b", 20, run("b")}}, 3, 0, func() { steps++ })
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, costs.Names)
	assert.Equal(t, map[string]int{"a": 40, "b": 80}, counts, "once to warm up, and once a round")
	assert.Equal(t, 6, steps)
	assert.Len(t, costs.All("a", Wall), 3)
	assert.Empty(t, costs.All("c", Wall))
}

func TestRoundsFitTheTime(t *testing.T) {
	const each = 5 * time.Millisecond
	busy := func(n int) error {
		for range n {
			for start := time.Now(); time.Since(start) < 20*time.Microsecond; {
			}
		}
		return nil
	}
	n, err := size(Case{Run: busy}, each)
	require.NoError(t, err)
	assert.LessOrEqual(t, n, 250)
	assert.Positive(t, n)
}

func TestRoundsStopAtAnError(t *testing.T) {
	broken := errors.New("broken")
	_, err := Rounds([]Case{{"a", 1, func(int) error { return broken }}}, 1, 0, func() {})
	assert.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "a: ")
	n := 0
	late := func(int) error {
		if n++; n > 1 {
			return broken
		}
		return nil
	}
	_, err = Rounds([]Case{{"a", 1, late}}, 1, 0, func() {})
	assert.ErrorIs(t, err, broken)
}

func TestLiveHeap(t *testing.T) {
	before := LiveHeap()
	kept := make([]byte, 8<<20)
	after := LiveHeap()
	assert.InDelta(t, 8<<20, float64(after)-float64(before), 1<<20)
	kept[0] = 1
}
