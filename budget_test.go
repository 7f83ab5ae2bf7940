package idem

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failingCalls makes calls that fail at every attempt and returns the number of
// attempts. Each call first earns, and pays for each attempt after the first.
func failingCalls(b *Budget, calls, maxAttempts int) (attempts int) {
	for range calls {
		b.earn()
		attempts++
		for n := 1; n < maxAttempts && b.spend(); n++ {
			attempts++
		}
	}
	return attempts
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name     string
		ratio    float64
		floor    int
		calls    int
		attempts int // of at most 3 a call
	}{
		{"a tenth, no floor", 0.1, 0, 500, 550},
		{"a tenth over a floor", 0.1, 10, 500, 560},
		{"a tenth, few calls", 0.1, 0, 9, 9},
		{"a tenth, ten calls", 0.1, 0, 10, 11},
		{"the floor alone", 0, 5, 500, 505},
		{"nothing", 0, 0, 500, 500},
		{"a half", 0.5, 0, 500, 750},
		{"a third", 1.0 / 3, 0, 300, 400},
		{"more than enough", 5, 0, 500, 1500},
		{"exactly enough", 2, 0, 500, 1500},
		{"negative ratio", -1, 3, 500, 503},
		{"negative floor", 0.1, -100, 500, 550},
		{"no number", math.NaN(), 3, 500, 503},
		{"infinite", math.Inf(1), 3, 500, 503},
		{"minus infinite", math.Inf(-1), 3, 500, 503},
		{"the largest ratio", math.MaxFloat64, 0, 10, 30},
		{"the least floor", 0.1, math.MinInt, 500, 550},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.attempts, failingCalls(NewBudget(c.ratio, c.floor), c.calls, 3))
		})
	}
}

func TestBudget_NilAndZero(t *testing.T) {
	assert.Equal(t, 1500, failingCalls(nil, 500, 3), "nil allows everything")
	assert.Equal(t, 500, failingCalls(new(Budget), 500, 3), "zero allows no repetition")
}

// What is unspent is kept up to what a thousand calls earn: a long quiet time
// does not buy a storm.
func TestBudget_Ceiling(t *testing.T) {
	b := NewBudget(0.1, 10)
	for range 1_000_000 {
		b.earn()
	}
	n := 0
	for b.spend() {
		n++
		require.LessOrEqual(t, n, 110, "more than floor and a thousand calls' worth")
	}
	assert.Equal(t, 110, n)
}

// The sum of many tenths is not quite a whole number; nobody loses by that.
func TestBudget_Rounding(t *testing.T) {
	for _, ratio := range []float64{0.1, 0.2, 0.3, 0.7, 1.0 / 3, 1.0 / 7} {
		b := NewBudget(ratio, 0)
		calls, allowed := 10_000, 0
		for range calls {
			b.earn()
			if b.spend() {
				allowed++
			}
		}
		assert.InDelta(t, ratio*float64(calls), float64(allowed), 1, "ratio %v", ratio)
	}
}

// A budget that was spent comes back with the calls that follow.
func TestBudget_Recovers(t *testing.T) {
	b := NewBudget(0.1, 2)
	failingCalls(b, 100, 10)
	require.False(t, b.spend())
	for range 10 {
		b.earn()
	}
	assert.True(t, b.spend())
	assert.False(t, b.spend())
}

func TestBudget_Concurrent(t *testing.T) {
	b := NewBudget(0.1, 10)
	var attempts atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { attempts.Add(int64(failingCalls(b, 10, 3))) })
	}
	wg.Wait()
	assert.LessOrEqual(t, attempts.Load(), int64(560))
	assert.GreaterOrEqual(t, attempts.Load(), int64(510))
	// All that was earned can be spent, once.
	for b.spend() {
		attempts.Add(1)
	}
	assert.EqualValues(t, 560, attempts.Load())
}
