package idem

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExponential(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		base, max time.Duration
		want      []time.Duration // after attempts 1, 2, 3, …
	}{
		{"the default", 200 * ms, 10 * time.Second, []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10 * time.Second, 10 * time.Second}},
		{"the largest is reached exactly", 100 * ms, 800 * ms, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 800 * ms}},
		{"the largest is odd", 2, 7, []time.Duration{2, 4, 7, 7}},
		{"base is the largest", 50 * ms, 50 * ms, []time.Duration{50 * ms, 50 * ms}},
		{"base above the largest", time.Second, 10 * ms, []time.Duration{10 * ms, 10 * ms}},
		{"one nanosecond", 1, 1, []time.Duration{1, 1, 1}},
		{"no largest wait", 200 * ms, 0, []time.Duration{0, 0, 0}},
		{"negative largest wait", 200 * ms, -1, []time.Duration{0, 0, 0}},
		{"no base", 0, time.Second, []time.Duration{0, 0, 0}},
		{"negative base", -time.Second, time.Second, []time.Duration{0, 0, 0}},
		{"the smallest numbers", math.MinInt64, math.MinInt64, []time.Duration{0, 0}},
		{"the largest numbers", forever, forever, []time.Duration{forever, forever}},
		{"half of the largest number", forever / 2, forever, []time.Duration{forever / 2, forever/2*2 + 0, forever, forever}},
		{"just above half", forever/2 + 1, forever, []time.Duration{forever/2 + 1, forever, forever}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Exponential(c.base, c.max)
			for i, want := range c.want {
				assert.Equal(t, want, b(i+1), "attempt %d", i+1)
			}
		})
	}
	// Numbers that are no attempts count as the first.
	b := Exponential(200*ms, time.Second)
	for _, n := range []int{0, -1, math.MinInt} {
		assert.Equal(t, 200*ms, b(n), "%d", n)
	}
}

// No attempt number and no pair of bounds makes the wait wrap, fall or pass max.
func TestExponential_NeverWraps(t *testing.T) {
	bounds := []time.Duration{1, 2, 3, 30 * time.Millisecond, time.Second, time.Hour, 1 << 40, 1 << 62, forever - 1, forever}
	numbers := []int{1, 2, 36, 38, 39, 61, 62, 63, 64, 65, 100, 1 << 20, 1 << 31, math.MaxInt}
	for _, base := range bounds {
		for _, most := range bounds {
			b := Exponential(base, most)
			last := time.Duration(0)
			for _, n := range numbers {
				d := b(n)
				require.Positive(t, d, "base %d max %d attempt %d", base, most, n)
				require.LessOrEqual(t, d, most)
				require.GreaterOrEqual(t, d, last, "base %d max %d attempt %d", base, most, n)
				last = d
			}
			require.Equal(t, most, last, "base %d max %d", base, most)
		}
	}
}

// Exponential keeps nothing between calls: the order of asking does not matter.
func TestExponential_Pure(t *testing.T) {
	b := Exponential(time.Millisecond, time.Second)
	up := make([]time.Duration, 20)
	for i := range up {
		up[i] = b(i + 1)
	}
	for i := len(up); i > 0; i-- {
		assert.Equal(t, up[i-1], b(i))
	}
}

func TestHalfJitter(t *testing.T) {
	almost := math.Nextafter(1, 0)
	for _, d := range []time.Duration{1, 2, 3, 4, 5, 999, time.Millisecond, time.Hour, 1 << 53, 1<<62 + 1, forever - 1, forever} {
		assert.Equal(t, d, halfJitter(d, 0))
		for _, draw := range []float64{0, 0.1, 0.5, 0.9, almost} {
			got := halfJitter(d, draw)
			assert.GreaterOrEqual(t, got, d/2, "%d %v", d, draw)
			assert.LessOrEqual(t, got, d, "%d %v", d, draw)
			assert.Positive(t, got, "%d %v", d, draw)
		}
		assert.InDelta(t, float64(d)/2, float64(halfJitter(d, almost)), 2+float64(d)*1e-9)
	}
	for _, d := range []time.Duration{0, -1, -forever, math.MinInt64} {
		assert.Zero(t, halfJitter(d, 0.5), "%d", d)
	}
}

// The draws spread evenly over the upper half, also at the largest wait.
func TestHalfJitter_Spread(t *testing.T) {
	const n = 10_000
	random := rand.New(rand.NewPCG(1, 2))
	for _, d := range []time.Duration{100 * time.Millisecond, 10 * time.Second, time.Hour} {
		var tenths [10]int
		for range n {
			got := halfJitter(d, random.Float64())
			tenths[min(int(10*(got-d/2)/(d/2)), 9)]++
		}
		assert.Greater(t, slices.Min(tenths[:]), n/10*8/10, "%v: %v", d, tenths)
		assert.Less(t, slices.Max(tenths[:]), n/10*12/10, "%v: %v", d, tenths)
	}
}

func TestServerJitter(t *testing.T) {
	almost := math.Nextafter(1, 0)
	for _, c := range []struct{ d, most time.Duration }{
		{1, 0}, {9, 0}, {10, 1}, {time.Millisecond, 100 * time.Microsecond}, {time.Second, 100 * time.Millisecond},
		{10 * time.Second, time.Second}, {time.Hour, time.Second}, {forever, time.Second},
	} {
		assert.Zero(t, serverJitter(c.d, 0), "%v", c.d)
		for _, draw := range []float64{0.1, 0.5, almost} {
			got := serverJitter(c.d, draw)
			assert.GreaterOrEqual(t, got, time.Duration(0), "%v", c.d)
			assert.LessOrEqual(t, got, c.most, "%v", c.d)
		}
		assert.InDelta(t, float64(c.most), float64(serverJitter(c.d, almost)), 1)
	}
}
