package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A waitCost is what one call costs that waits in its backoff.
type waitCost struct {
	heap, stack float64 // bytes
	goroutines  float64 // one is the caller's own
}

func (w waitCost) total() float64 { return w.heap + w.stack }

// errLate says that the machine was so busy that the look came late.
var errLate = errors.New("some may wait no longer")

// patientlyWaiting measures again if the look came late.
func patientlyWaiting(p peers.Peer, calls int, wait time.Duration) (cost waitCost, err error) {
	for range 5 {
		if cost, err = measureWaiting(p, calls, wait); !errors.Is(err, errLate) {
			break
		}
	}
	return cost, err
}

// measureWaiting lets so many calls fail once and looks at them while they wait.
func measureWaiting(p peers.Peer, calls int, wait time.Duration) (waitCost, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ms := fmt.Sprint(wait.Milliseconds())
	stub := &peers.Stub{Header: http.Header{"Retry-After-Ms": {ms}}} // openai-go waits its own time otherwise
	// Two attempts, because some go on to wait when their context is done.
	client := p.New(peers.Config{Transport: stub, BaseURL: peers.StubURL, Attempts: 2, Wait: wait})
	c := peers.Call{URL: peers.StubURL + path, Body: peers.Order(1), Key: usualKey(p)}
	if err := good(client.Do(ctx, c)); err != nil {
		return waitCost{}, err
	}
	stub.Down()
	stub.Begin()
	before, goroutines := measure.Live(), runtime.NumGoroutine()

	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	start := time.Now()
	for range calls {
		callers.Go(func() { _, _ = client.Do(ctx, c) })
	}
	for stub.Calls() < int64(calls) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // the last ones reach their timer
	after := measure.Live()
	goroutines = runtime.NumGoroutine() - goroutines
	if took := time.Since(start); took > wait/2 { // idem draws from the upper half
		return waitCost{}, fmt.Errorf("after %v: %w", took, errLate)
	}
	per := func(after, before uint64) float64 { return (float64(after) - float64(before)) / float64(calls) }
	return waitCost{
		heap:       per(after.HeapAlloc, before.HeapAlloc),
		stack:      per(after.StackInuse, before.StackInuse),
		goroutines: float64(goroutines) / float64(calls),
	}, nil
}
