package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A process stops at some step past its claim's time, another takes the claim over,
// and the first wakes up: there is one order, one charge and one answer, which is
// the other's.
func TestTakenOver(t *testing.T) {
	for _, step := range []string{"committed", "charged"} {
		t.Run(step, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *Store) {
				p := newPause(step)
				h := newHouse(t, s, Config{At: p.at})
				first := make(chan reply)
				go func() { first <- h.order("ann", "click", want("S01", "good")) }()
				p.wait(t)
				live := h.order("ann", "click", want("S01", "good"))
				assert.Equal(t, inProgress, live.kind(), "while the claim holds")
				h.stale()
				second := h.order("ann", "click", want("S01", "good"))
				assert.Equal(t, 201, second.status)
				assert.False(t, second.replayed())
				close(p.release)
				assert.Equal(t, inProgress, (<-first).kind(), "the fence holds: it has stored nothing")
				third := h.order("ann", "click", want("S01", "good"))
				assert.True(t, third.replayed())
				assert.Equal(t, second.body, third.body)
				assert.Equal(t, 2, count(t, s, "SELECT token FROM claims"))
				assert.Equal(t, 2, count(t, s, "SELECT count(*) FROM outbox"), "placed and paid")
				h.one()
			})
		})
	}
}

// It stops with the Intent in its hands: whoever takes the claim over is told to
// wait, and does not charge.
func TestTakenOverWhileCharging(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		p := newPause("intent claimed")
		h := newHouse(t, s, Config{At: p.at})
		first := make(chan reply)
		go func() { first <- h.order("ann", "click", want("S01", "good")) }()
		p.wait(t)
		h.stale()
		second := h.order("ann", "click", want("S01", "good"))
		assert.Equal(t, inProgress, second.kind())
		assert.Empty(t, h.provider.Effects(""))
		close(p.release)
		assert.Equal(t, inProgress, (<-first).kind(), "charged, and fenced")
		third := h.order("ann", "click", want("S01", "good"))
		assert.Equal(t, 201, third.status, "the second has given the claim up")
		h.one()
	})
}

// Of many who find a claim stale, one takes it over.
func TestOneTakesOver(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		outage := h.provider.On("POST /charges").Always("503@received")
		assert.Equal(t, 503, h.order("ann", "click", want("S01", "good")).status)
		outage.Always("pass")
		h.stale()
		var all sync.WaitGroup
		replies := make([]reply, 20)
		for i := range replies {
			all.Go(func() { replies[i] = h.order("ann", "click", want("S01", "good")) })
		}
		all.Wait()
		fresh := 0
		for _, r := range replies {
			switch {
			case r.status == 201 && !r.replayed():
				fresh++
			case r.status != 201:
				assert.Equal(t, inProgress, r.kind())
			}
		}
		assert.Equal(t, 1, fresh)
		assert.Equal(t, 2, count(t, s, "SELECT token FROM claims"))
		h.one()
	})
}
