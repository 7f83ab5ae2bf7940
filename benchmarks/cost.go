package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// What is sent: one order, for the clients that make no key with a ready one.
const (
	path     = "/v1/orders"
	readyKey = "order-0001-key"
	attempts = 6
	callers  = 64
)

// Cases that are no peer by themselves.
const (
	keyGiven = ", key given"
	noKey    = ", no key"
)

// stubCases are the happy path over a stub: each peer as it is used, those that
// make keys also with one given, and bare net/http also without one.
func stubCases() []measure.Case {
	var cases []measure.Case
	add := func(p peers.Peer, suffix, key string) {
		client := p.New(peers.Config{Transport: new(peers.Stub), BaseURL: peers.StubURL, Attempts: attempts})
		cases = append(cases, measure.Case{Name: p.Name + suffix, Run: serial(client, peers.StubURL, key)})
	}
	for _, p := range peers.Of("A") {
		add(p, "", usualKey(p))
	}
	for _, p := range peers.Of("A") {
		switch {
		case p.Keys == peers.OwnKey && p.Takes("B"):
			add(p, keyGiven, readyKey)
		case p.Name == peers.Bare || p.Name == peers.BareTimeout:
			add(p, noKey, "")
		}
	}
	return cases
}

// usualKey is what the caller gives a peer as it is used.
func usualKey(p peers.Peer) string {
	if p.Keys == peers.GivenKey {
		return readyKey
	}
	return ""
}

// retryCases are one 503, no wait, then success. What is bare is called twice.
func retryCases() []measure.Case {
	list := peers.Of("C")
	cases := make([]measure.Case, 0, len(list))
	for _, p := range list {
		client := p.New(peers.Config{Transport: &peers.Stub{Failures: 1}, BaseURL: peers.StubURL, Attempts: attempts})
		if p.Name == peers.Bare || p.Name == peers.BareTimeout {
			client = twice{client}
		}
		cases = append(cases, measure.Case{Name: p.Name, Run: serial(client, peers.StubURL, usualKey(p))})
	}
	return cases
}

// loopbackCases are the happy path to a server at base, one after another and by
// many callers at once.
func loopbackCases(base string) (one, many []measure.Case) {
	for _, p := range peers.Of("B") {
		client := p.New(peers.Config{Transport: newTransport(), BaseURL: base, Attempts: attempts})
		key := usualKey(p)
		one = append(one, measure.Case{Name: p.Name, Run: serial(client, base, key)})
		many = append(many, measure.Case{Name: p.Name, Run: parallel(client, base, key, callers)})
	}
	return one, many
}

// newTransport keeps as many idle connections as there are callers.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConns: 4 * callers, MaxIdleConnsPerHost: 4 * callers}
}

// serial returns what makes n calls, one after another.
func serial(client peers.Client, base, key string) func(n int) error {
	ctx, c := context.Background(), peers.Call{URL: base + path, Body: peers.Order(1), Key: key}
	return func(n int) error {
		for range n {
			if err := good(client.Do(ctx, c)); err != nil {
				return err
			}
		}
		return nil
	}
}

// parallel returns what makes n calls from as many goroutines as workers says.
func parallel(client peers.Client, base, key string, workers int) func(n int) error {
	ctx, c := context.Background(), peers.Call{URL: base + path, Body: peers.Order(1), Key: key}
	return func(n int) error {
		var wg sync.WaitGroup
		var made atomic.Int64
		var failed atomic.Value
		for range workers {
			wg.Go(func() {
				for made.Add(1) <= int64(n) {
					if err := good(client.Do(ctx, c)); err != nil {
						failed.Store(err)
						return
					}
				}
			})
		}
		wg.Wait()
		err, _ := failed.Load().(error)
		return err
	}
}

// good turns an answer that is not 201 into an error.
func good(status int, err error) error {
	if err == nil && status != http.StatusCreated {
		return fmt.Errorf("the answer is %d", status)
	}
	return err
}

// twice makes each call two times, as a caller does by hand.
type twice struct{ peers.Client }

func (t twice) Do(ctx context.Context, c peers.Call) (int, error) {
	if _, err := t.Client.Do(ctx, c); err != nil {
		return 0, err
	}
	return t.Client.Do(ctx, c)
}
