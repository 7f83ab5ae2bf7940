package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A buyer who leaves does not stop the order half way.
func TestBuyerLeaves(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		p := newPause("committed")
		h := newHouse(t, s, Config{At: p.at})
		gone := make(chan context.Context, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			gone <- r.Context()
			h.Handler().ServeHTTP(w, r)
		}))
		defer server.Close()
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan error)
		go func() {
			r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/orders", strings.NewReader(want("S01", "good")))
			if err == nil {
				r.Header.Set("Authorization", "Bearer ann")
				r.Header.Set("Idempotency-Key", "click")
				_, err = http.DefaultClient.Do(r)
			}
			asked <- err
		}()
		p.wait(t)
		leave()
		assert.ErrorIs(t, <-asked, context.Canceled)
		<-(<-gone).Done() // and the shop knows it
		close(p.release)
		require.Eventually(t, func() bool {
			return count(t, s, "SELECT count(*) FROM claims WHERE status = 201") == 1
		}, 20*time.Second, 10*time.Millisecond)
		assert.True(t, h.order("ann", "click", want("S01", "good")).replayed())
		h.one()
	})
}

// Work that takes longer than its claim holds is given up, and the next request goes
// on with it.
func TestTooSlow(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{Stale: shortClaim})
		slow := h.provider.On("POST /charges").Always("hang@received")
		start := time.Now()
		assert.Equal(t, 503, h.order("ann", "click", want("S01", "good")).status)
		assert.GreaterOrEqual(t, time.Since(start), shortClaim-10*time.Millisecond)
		assert.Less(t, time.Since(start), 4*time.Second, "an attempt alone may take 5 s")
		slow.Always("pass")
		h.provider.Release(chargeKey(t, s))
		require.Eventually(t, func() bool {
			return h.order("ann", "click", want("S01", "good")).status == 201
		}, 20*time.Second, 50*time.Millisecond)
		h.one()
	})
}
