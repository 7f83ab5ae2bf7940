package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/idem-go/idem/mockserver"
)

// measureMock returns what a request to a mock server in memory costs, client and
// server together, with many callers.
func measureMock(requests int) (cost measure.Sample, err error) {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		return cost, err
	}
	defer func() {
		if closed := server.Close(); err == nil {
			err = closed
		}
	}()
	bare := peers.Named(peers.Bare).New(peers.Config{Transport: server.Transport()})
	return measure.Measure(requests, parallel(newOrders{bare, server.URL + "/orders"}, "", "", callers))
}

// newOrders makes of each call an order with a new key.
type newOrders struct {
	peers.Client

	url string
}

func (n newOrders) Do(ctx context.Context, c peers.Call) (int, error) {
	c.URL, c.Key = n.url, uuid.NewString()
	return n.Client.Do(ctx, c)
}
