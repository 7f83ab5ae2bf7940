package main

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/idem-go/idem/mockserver"
)

// measureMock returns the requests a second that a mock server in memory answers,
// each of them an order with a key of its own, asked for by many callers.
func measureMock(requests int) (rate float64, err error) {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := server.Close(); err == nil {
			err = closed
		}
	}()
	client := server.Client()
	var wg sync.WaitGroup
	var made atomic.Int64
	var failed atomic.Value
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for made.Add(1) <= int64(requests) {
				if err := good(placeOrder(client, server.URL+"/orders")); err != nil {
					failed.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	err, _ = failed.Load().(error)
	return float64(requests) / time.Since(start).Seconds(), err
}

func placeOrder(client *http.Client, url string) (int, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(peers.Order(1))) //nolint:noctx // it ends by itself
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(peers.KeyHeader, uuid.NewString())
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, err
}
