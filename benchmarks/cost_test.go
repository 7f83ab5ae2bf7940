package main

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func benchmark(b *testing.B, cases []measure.Case) {
	for _, c := range cases {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, c.Run(b.N))
		})
	}
}

// The parts A, B and C for go test's own tools, such as -cpuprofile.
func BenchmarkStub(b *testing.B)  { benchmark(b, stubCases()) }
func BenchmarkRetry(b *testing.B) { benchmark(b, retryCases()) }

func BenchmarkLoopback(b *testing.B) {
	base, stop, err := startServer(b.Context())
	require.NoError(b, err)
	defer stop()
	one, many := loopbackCases(base)
	b.Run("one", func(b *testing.B) { benchmark(b, one) })
	b.Run("many", func(b *testing.B) { benchmark(b, many) })
}

// counting counts what a client is asked to do.
type counting struct {
	calls  chan string
	status int
}

func (c counting) Do(_ context.Context, call peers.Call) (int, error) {
	c.calls <- call.Key
	return c.status, nil
}

func TestCallsAreMade(t *testing.T) {
	const n = 50
	for _, run := range []func(peers.Client) func(int) error{
		func(c peers.Client) func(int) error { return serial(c, "", "k") },
		func(c peers.Client) func(int) error { return parallel(c, "", "k", 8) },
		func(c peers.Client) func(int) error { return together(serial(c, "", "k"), 10) },
	} {
		c := counting{make(chan string, 2*n), http.StatusCreated}
		require.NoError(t, run(c)(n))
		assert.Len(t, c.calls, n)
		assert.Equal(t, "k", <-c.calls)
		c.status = http.StatusServiceUnavailable
		assert.ErrorContains(t, run(c)(10), "the answer is 503")
	}
}

func TestGood(t *testing.T) {
	lost := errors.New("lost")
	assert.NoError(t, good(201, nil))
	assert.Error(t, good(200, nil))
	assert.ErrorIs(t, good(0, lost), lost)
}

// A gate lets nobody through before all are there.
func TestGate(t *testing.T) {
	const size = 5
	stub := new(peers.Stub)
	g := newGate(stub, size)
	client := peers.Named(peers.Bare).New(peers.Config{Transport: g})
	done := make(chan error, size)
	call := func() { done <- serial(client, peers.StubURL, "")(1) }
	for range size - 1 {
		go call()
	}
	assert.Empty(t, done)
	assert.Zero(t, stub.Calls())
	go call()
	for range size {
		require.NoError(t, <-done)
	}
	assert.EqualValues(t, size, stub.Calls())
}
