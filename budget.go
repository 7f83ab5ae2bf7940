package idem

import (
	"math"
	"sync"
)

// Budget bounds the attempts that repeat others, over all calls of all
// Transports that share it, so that an outage is not multiplied by every
// caller's retries. Each call earns ratio of an attempt; each attempt after the
// first costs one. What is unspent is kept, up to what a thousand calls earn.
//
// It is safe for concurrent use. A nil Budget allows everything, the zero
// Budget no repeated attempt at all.
type Budget struct {
	mu         sync.Mutex
	ratio      float64
	left, most float64
}

// NewBudget returns a Budget that starts with floor attempts. NewBudget(0.1, 10)
// lets five hundred failing calls make at most 50 + 10 attempts more than their
// first ones. A ratio that is negative or not a number counts as 0, as does a
// negative floor.
func NewBudget(ratio float64, floor int) *Budget {
	if !(ratio > 0) || math.IsInf(ratio, 1) {
		ratio = 0
	}
	start := float64(max(floor, 0))
	return &Budget{ratio: ratio, left: start, most: start + 1000*ratio}
}

// earn notes that a call begins.
func (b *Budget) earn() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.left = math.Min(b.left+b.ratio, b.most)
	b.mu.Unlock()
}

// spend reports whether one more attempt is allowed, and pays for it.
func (b *Budget) spend() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	const rounding = 1e-9 // ten times 0.1 is a little less than 1
	if b.left < 1-rounding {
		return false
	}
	b.left--
	return true
}
