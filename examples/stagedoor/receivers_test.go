package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Events whose request or whose answer was lost are delivered again, and their
// mails are written once. Two relays at once deliver more often, and no more mails.
func TestOutbox(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		for i := 1; i <= 5; i++ {
			require.Equal(t, 201, h.order("ann", fmt.Sprint("click-", i), want(seat(i), "good")).status)
		}
		require.Equal(t, 402, h.order("bob", "click", want("S06", "declined")).status)
		var arrived atomic.Int64
		events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch arrived.Add(1) % 3 {
			case 1: // lost on the way there
				panic(http.ErrAbortHandler)
			case 2: // and on the way back
				h.Handler().ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			default:
				h.Handler().ServeHTTP(w, r)
			}
		})
		server := httptest.NewServer(events)
		defer server.Close()
		delivered, err := h.relay(t.Context(), server.Client(), server.URL+"/events")
		assert.Equal(t, 4, delivered, "a third of twelve")
		assert.Error(t, err)
		var relays sync.WaitGroup
		for range 2 {
			relays.Go(func() {
				for open := 1; open > 0; {
					_, _ = h.relay(t.Context(), server.Client(), server.URL+"/events")
					open = count(t, s, "SELECT count(*) FROM outbox WHERE delivered_at IS NULL")
				}
			})
		}
		relays.Wait()
		assert.Greater(t, arrived.Load(), int64(12), "at least once")
		assert.Equal(t, 12, count(t, s, "SELECT count(*) FROM inbox"))
		assert.Equal(t, 5, count(t, s, "SELECT count(*) FROM mails"))
		assert.Equal(t, 5, count(t, s, "SELECT count(DISTINCT order_id) FROM mails"))
	})
}

// The provider's second webhook comes while the first is at work: the wallet is
// credited once. Both are acknowledged, the second not before the first has
// committed.
func TestWebhookTwiceAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		p := newPause("received")
		h := newHouse(t, s, Config{At: p.at})
		hook := `{"id":"evt_1","kind":"charged","buyer":"ann"}`
		got := make(chan reply)
		deliver := func() { got <- send(t, "POST", h.url+"/webhooks", "", hook) }
		go deliver()
		p.wait(t)
		before := s.db.Stats().WaitCount
		go deliver()
		require.Eventually(t, func() bool {
			if !isPostgres(s.dsn) {
				return s.db.Stats().WaitCount > before // for the one connection
			}
			return count(t, s, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
				AND query LIKE 'INSERT INTO inbox%'`) > 0
		}, 20*time.Second, 5*time.Millisecond)
		select {
		case r := <-got:
			t.Errorf("acknowledged with %d while the first was at work", r.status)
		default:
		}
		close(p.release)
		assert.Equal(t, 204, (<-got).status)
		assert.Equal(t, 204, (<-got).status)
		assert.Equal(t, 204, send(t, "POST", h.url+"/webhooks", "", hook).status, "and a third time")
		assert.Equal(t, 500, count(t, s, "SELECT balance FROM wallets WHERE buyer = 'ann'"))
		assert.Equal(t, 1, count(t, s, "SELECT credits FROM wallets"))
		assert.Equal(t, 400, send(t, "POST", h.url+"/webhooks", "", `{"buyer":"ann"}`).status)
	})
}

// Where the credit fails, so does the note that the webhook was received: the next
// one credits.
func TestWebhookFails(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		broken := h.receive("wallet", func(ctx context.Context, tx conn, e event) error {
			return errors.Join(credit(ctx, tx, e), errors.New("the wallet is shut"))
		})
		server := httptest.NewServer(broken)
		defer server.Close()
		hook := `{"id":"evt_1","kind":"charged","buyer":"ann"}`
		assert.Equal(t, 503, send(t, "POST", server.URL, "", hook).status)
		assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM inbox"))
		assert.Equal(t, 204, send(t, "POST", h.url+"/webhooks", "", hook).status)
		assert.Equal(t, 1, count(t, s, "SELECT credits FROM wallets"))
	})
}

// The provider sends again what was not acknowledged.
func TestWebhooksUntilAcknowledged(t *testing.T) {
	onFresh(t, "", func(s *Store) {
		h := newHouse(t, s, Config{})
		require.Equal(t, 201, h.order("ann", "click", want("S01", "good")).status)
		sent, err := h.provider.notify(t.Context(), http.DefaultClient, h.url+"/nowhere")
		assert.Equal(t, 2, sent)
		assert.ErrorContains(t, err, "404")
		sent, err = h.provider.notify(t.Context(), http.DefaultClient, h.url+"/webhooks")
		assert.Equal(t, 2, sent)
		assert.NoError(t, err)
		assert.Equal(t, 1, count(t, s, "SELECT credits FROM wallets"))
	})
}
