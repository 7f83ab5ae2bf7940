package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aged writes n answered claims of an age, as the square of a short list: that is
// what SQLite does fastest.
func aged(t *testing.T, s *Store, buyer string, n int, age time.Duration) {
	t.Helper()
	side := int(math.Ceil(math.Sqrt(float64(n))))
	_, err := s.exec(t.Context(), `WITH RECURSIVE list (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM list WHERE i < $3 - 1)
		INSERT INTO claims (buyer, key, print, order_id, token, held_until, created_at, status)
		SELECT $1, 1000000 + n, '', '', 1, 0, {now} - $2 - $4 + n, 201
		FROM (SELECT a.i * $3 + b.i AS n FROM list a, list b) AS numbers WHERE n < $4`,
		buyer, age.Milliseconds(), side, n)
	require.NoError(t, err)
}

// What is older than a day goes, in batches. What is younger stays, and so does what
// has no answer.
func TestCleanUp(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		batches := 0
		h := newHouse(t, s, Config{At: func(step string) {
			if step == "cleaned" {
				batches++
			}
		}})
		aged(t, s, "old", 2*batch+20, 24*time.Hour)
		aged(t, s, "young", 50, 23*time.Hour)
		aged(t, s, "open", 50, 48*time.Hour)
		_, err := s.exec(t.Context(), "UPDATE claims SET status = NULL WHERE buyer = 'open'")
		require.NoError(t, err)
		deleted, err := h.cleanUp(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(2*batch+20), deleted)
		assert.Equal(t, 3, batches)
		assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM claims WHERE buyer = 'old'"))
		assert.Equal(t, 50, count(t, s, "SELECT count(*) FROM claims WHERE buyer = 'young'"))
		assert.Equal(t, 50, count(t, s, "SELECT count(*) FROM claims WHERE buyer = 'open'"))
	})
}

// 200,000 expired rows are being deleted while orders are placed: no order waits for
// the clean-up for more than 50 ms. A disk that is busy with other things may hold a
// batch up for longer than that; what the job itself costs shows each time.
func TestCleanUpDoesNotBlock(t *testing.T) {
	for name, dsn := range databases() { // one after the other, or they measure each other
		t.Run(name, func(t *testing.T) { onFresh(t, dsn, func(s *Store) { cleanWhileOrdering(t, s) }) })
	}
}

func cleanWhileOrdering(t *testing.T, s *Store) {
	m := &meeting{}
	h := newHouse(t, s, Config{At: m.at})
	aged(t, s, "old", 200_000, 25*time.Hour)
	if !isPostgres(s.dsn) { // the rows are a day old, and not in the log any more
		_, err := s.exec(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
		require.NoError(t, err)
	}
	blocked := time.Hour
	for try := 0; try < 3 && blocked > 50*time.Millisecond; try++ {
		m.reset()
		ctx, stop := context.WithCancel(t.Context())
		cleaned := make(chan error, 1)
		go func() {
			_, err := h.cleanUp(ctx)
			cleaned <- err
		}()
		for i := range 200 {
			id := fmt.Sprint(try, "-", i)
			c := claim{buyer: "ann", key: id, print: "print", orderID: id, token: 1}
			m.order()
			won, _, err := h.placeOrder(ctx, c, order{id: id, buyer: "ann", seat: "S01"})
			require.NoError(t, err)
			require.True(t, won)
		}
		stop()
		require.ErrorIs(t, <-cleaned, context.Canceled, "it was done before the orders were")
		blocked = m.blocked(t)
	}
	assert.LessOrEqual(t, blocked, 50*time.Millisecond)
}

// meeting is where orders and batches meet: a note of when each batch was under way
// and when each order waited for its claim.
type meeting struct {
	mu      sync.Mutex
	batches []span
	waits   []span
}

type span struct{ from, to time.Time }

func (m *meeting) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches, m.waits = nil, nil
}

func (m *meeting) order() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = append(m.waits, span{from: time.Now()})
}

func (m *meeting) at(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch step {
	case "claimed":
		m.waits[len(m.waits)-1].to = time.Now()
	case "cleaning":
		m.batches = append(m.batches, span{from: time.Now()})
	case "cleaned":
		m.batches[len(m.batches)-1].to = time.Now()
	}
}

// blocked is the longest time that an order has waited while batches were under way.
func (m *meeting) blocked(t *testing.T) (most time.Duration) {
	var wait, batch time.Duration
	met := 0
	for _, b := range m.batches {
		batch = max(batch, b.to.Sub(b.from))
	}
	for _, w := range m.waits {
		var by time.Duration
		for _, b := range m.batches {
			by += w.overlap(b)
		}
		if by > 0 {
			met++
		}
		wait, most = max(wait, w.to.Sub(w.from)), max(most, by)
	}
	t.Logf("%d orders, %d of them met one of %d batches; the longest batch %v, the longest wait %v, for the clean-up %v",
		len(m.waits), met, len(m.batches), batch, wait, most)
	require.Greater(t, met, len(m.waits)/20, "the clean-up was not at work")
	return most
}

func (a span) overlap(b span) time.Duration {
	from, to := a.from, a.to
	if b.from.After(from) {
		from = b.from
	}
	if b.to.Before(to) {
		to = b.to
	}
	return max(0, to.Sub(from))
}
