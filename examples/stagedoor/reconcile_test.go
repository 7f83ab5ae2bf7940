package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every answer about a charge is lost, and the buyer is gone. The reconciliation
// asks the provider, and sends nothing again; the order is finished either way.
func TestReconcile(t *testing.T) {
	for card, end := range map[string]struct {
		state   string
		status  int
		charges int
	}{"good": {"paid", 201, 1}, "declined": {"declined", 402, 0}} {
		t.Run(card, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *Store) {
				h := newHouse(t, s, Config{Stale: shortClaim})
				silent := h.provider.On("POST /charges").Always("drop@head")
				require.Equal(t, 503, h.order("ann", "click", want("S01", card)).status)
				silent.Always("pass")
				posts := len(h.provider.Requests(chargeKey(t, s)))
				n, err := h.finishOrders(t.Context())
				require.NoError(t, err)
				assert.Zero(t, n, "nothing is known yet")
				h.until(func() bool { n, err = h.finishOrders(t.Context()); return n > 0 || err != nil })
				require.NoError(t, err)
				assert.Equal(t, 1, n)
				assert.Len(t, h.provider.Requests(chargeKey(t, s)), posts, "asked, not sent again")
				got := h.order("ann", "click", want("S01", card))
				assert.Equal(t, end.status, got.status)
				assert.True(t, got.replayed())
				assert.Equal(t, 1, count(t, s, "SELECT count(*) FROM orders WHERE state = '"+end.state+"'"))
				assert.Len(t, h.provider.Effects(""), end.charges)
			})
		})
	}
}

// The provider knows of no charge: it is sent again with its key.
func TestReconcileSendsAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{Stale: shortClaim})
		down := h.provider.On("POST /charges").Always("503@received")
		require.Equal(t, 503, h.order("ann", "click", want("S01", "good")).status)
		down.Always("pass")
		h.until(func() bool { n, err := h.finishOrders(t.Context()); return n > 0 || err != nil })
		assert.Equal(t, 201, h.order("ann", "click", want("S01", "good")).status)
		h.one()
	})
}

// What a provider that fails to answer says is nothing.
func TestAskProvider(t *testing.T) {
	onFresh(t, "", func(s *Store) {
		h := newHouse(t, s, Config{})
		r := journal.Record{Ref: chargeRef("nobodys")}
		found, err := h.askProvider(t.Context(), r)
		assert.NoError(t, err)
		assert.Equal(t, idem.NotExecuted, found.Outcome)
		h.provider.On("GET /charges/{order}").Always("503@received")
		found, err = h.askProvider(t.Context(), r)
		assert.Error(t, err)
		assert.Equal(t, idem.OutcomeUnknown, found.Outcome)
	})
}

// until runs the reconciliation until done.
func (h *house) until(done func() bool) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { h.reconcile(ctx, 20*time.Millisecond) })
	require.Eventually(h.t, done, 20*time.Second, 20*time.Millisecond)
	stop()
	asking.Wait()
}

// chargeKey is the key of the one charge there is; it follows from the order.
func chargeKey(t *testing.T, s *Store) string {
	t.Helper()
	var id, key string
	_, err := s.find(t.Context(), []any{&id, &key}, "SELECT id, key FROM orders, idem_intents")
	require.NoError(t, err)
	assert.Equal(t, "order-"+id, key)
	return key
}
