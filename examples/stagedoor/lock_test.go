package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newRedis(t *testing.T) (*miniredis.Miniredis, *Lock) {
	server := miniredis.RunT(t)
	lock, err := newLock("redis://" + server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.redis.Close() })
	return server, lock
}

// The lock lets one of many through, is held for 30 s at most, and is given back.
func TestLock(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		server, lock := newRedis(t)
		p := newPause("charged")
		h := newHouse(t, s, Config{Lock: lock, At: p.at})
		first := make(chan reply)
		go func() { first <- h.order("ann", "click", want("S01", "good")) }()
		p.wait(t)
		require.Len(t, server.Keys(), 1)
		assert.Equal(t, 30*time.Second, server.TTL(server.Keys()[0]))
		assert.Equal(t, inProgress, h.order("ann", "click", want("S01", "good")).kind())
		assert.Equal(t, 201, h.order("bob", "click", want("S02", "good")).status, "another buyer's key is another lock")
		name := server.Keys()[0]
		close(p.release)
		assert.Equal(t, 201, (<-first).status)
		assert.Empty(t, server.Keys())

		require.NoError(t, server.Set(name, "another's"))
		assert.True(t, h.order("ann", "click", want("S01", "good")).replayed(), "an answer is given all the same")
		assert.Equal(t, keyReused, h.order("ann", "click", want("S03", "good")).kind())
		_, err := s.exec(t.Context(), "DELETE FROM claims")
		require.NoError(t, err)
		assert.Equal(t, inProgress, h.order("ann", "click", want("S04", "good")).kind())
		assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM claims"), "but no key is claimed")
	})
}

// A lock that is lost while its holder works changes nothing: the table decides.
// What another has taken meanwhile is not given back in its place.
func TestLockIsLost(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		server, lock := newRedis(t)
		p := newPause("charged")
		h := newHouse(t, s, Config{Lock: lock, At: p.at})
		first := make(chan reply)
		go func() { first <- h.order("ann", "click", want("S01", "good")) }()
		p.wait(t)
		name := server.Keys()[0]
		server.FastForward(31 * time.Second)
		require.Empty(t, server.Keys())
		assert.Equal(t, inProgress, h.order("ann", "click", want("S01", "good")).kind(), "by the table")
		require.NoError(t, server.Set(name, "another's"))
		close(p.release)
		assert.Equal(t, 201, (<-first).status)
		assert.Equal(t, []string{name}, server.Keys())
		h.one()
	})
}

// Without Redis everybody passes, and one order is made.
func TestLockIsDown(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		server, lock := newRedis(t)
		var mu sync.Mutex
		told := 0
		h := newHouse(t, s, Config{Lock: lock, OnError: func(error) { mu.Lock(); defer mu.Unlock(); told++ }})
		server.Close()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := h.order("ann", "click", want("S01", "good"))
				assert.Contains(t, []int{http.StatusCreated, http.StatusConflict}, r.status)
			})
		}
		all.Wait()
		assert.Equal(t, 201, h.order("ann", "click", want("S01", "good")).status)
		assert.Positive(t, told)
		h.one()
	})
}

func TestNewLock(t *testing.T) {
	none, err := newLock("")
	assert.NoError(t, err)
	assert.Nil(t, none)
	local, err := newLock("redis")
	assert.NoError(t, err)
	assert.Equal(t, "127.0.0.1:6379", local.redis.Options().Addr)
	_, err = newLock("memcached")
	assert.ErrorContains(t, err, "-lock")
}
