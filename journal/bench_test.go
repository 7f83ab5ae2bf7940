package journal

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func benchStores(b *testing.B, bench func(*testing.B, store)) {
	b.Run("SQLite", func(b *testing.B) { bench(b, sqliteStore(b)) })
	b.Run("PostgreSQL", func(b *testing.B) { bench(b, postgresStore(b)) })
}

// One order in a transaction from many goroutines, with its Intent and, to tell
// what that costs, without.
func BenchmarkMintInTx(b *testing.B) {
	benchStores(b, func(b *testing.B, s store) {
		b.Run("with", func(b *testing.B) { benchOrders(b, s.fresh(b), true) })
		b.Run("without", func(b *testing.B) { benchOrders(b, s.fresh(b), false) })
	})
}

func benchOrders(b *testing.B, s store, mint bool) {
	conns := 32
	if s.dialect == SQLite {
		conns = 1 // one writer; its queue is in the process
	}
	db := s.open(b, conns)
	j, err := New(db, Config{Dialect: s.dialect})
	require.NoError(b, err)
	_, err = db.ExecContext(b.Context(), "CREATE TABLE orders (id text PRIMARY KEY, amount integer NOT NULL)")
	require.NoError(b, err)
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := fmt.Sprintf("order-%d", n.Add(1))
			tx, err := db.BeginTx(b.Context(), nil)
			if !assert.NoError(b, err) {
				return
			}
			_, err = tx.ExecContext(b.Context(), "INSERT INTO orders (id, amount) VALUES ($1, 500)", id)
			assert.NoError(b, err)
			if mint {
				assert.NoError(b, j.Mint(b.Context(), tx, Ref{"shop/charge", id}))
			}
			assert.NoError(b, tx.Commit())
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "orders/s")
	b.ReportMetric(0, "ns/op")
}

// An Intent that is due, over HTTP to a server in this process, settled.
func BenchmarkDrain(b *testing.B) {
	benchStores(b, func(b *testing.B, s store) {
		conns := 16
		if s.dialect == SQLite {
			conns = 1
		}
		j, err := New(s.open(b, conns), Config{Dialect: s.dialect, OnError: func(_ context.Context, r Ref, err error) { b.Error(r, err) }})
		require.NoError(b, err)
		var keys sync.Map
		var served atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			keys.Store(r.Header.Get("Idempotency-Key"), true)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"ch_1","amount":500}`)
			served.Add(1)
		}))
		defer srv.Close()
		base := &http.Transport{MaxIdleConnsPerHost: 64}
		defer base.CloseIdleConnections()
		c := client(b, srv.URL, base)
		fill(b, j, b.N, srv.URL+"/charges")
		ctx, stop := context.WithCancel(b.Context())
		b.ResetTimer()
		done := make(chan error)
		resend := j.Resend(c)
		var settled atomic.Int64
		go func() {
			done <- j.Run(ctx, Dispatcher{Workers: 32, Poll: 10 * time.Millisecond, Handle: func(ctx context.Context, ref Ref, in *idem.Intent) error {
				defer settled.Add(1)
				return resend(ctx, ref, in)
			}})
		}()
		for settled.Load() < int64(b.N) {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		stop()
		require.NoError(b, <-done)
		distinct := 0
		keys.Range(func(any, any) bool { distinct++; return true })
		assert.Equal(b, b.N, distinct)
		assert.EqualValues(b, b.N, served.Load())
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "intents/s")
		b.ReportMetric(0, "ns/op")
	})
}

// fill mints n requests that are due at once.
func fill(t testing.TB, j *Journal, n int, url string) {
	tx, err := j.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for i := range n {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"amount":500}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		require.NoError(t, j.MintRequest(t.Context(), tx, Ref{"shop/charge", fmt.Sprintf("order-%d", i)}, r))
	}
	require.NoError(t, tx.Commit())
}
