package main

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A gate lets requests through in groups: when the last of a group is there, and
// so all of them are under way at once.
type gate struct {
	next http.RoundTripper
	size int

	mu   sync.Mutex
	here int
	open chan struct{}
}

func newGate(next http.RoundTripper, size int) *gate {
	return &gate{next: next, size: size, open: make(chan struct{})}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	open := g.open
	if g.here++; g.here == g.size {
		close(open)
		g.here, g.open = 0, make(chan struct{})
	}
	g.mu.Unlock()
	<-open
	return g.next.RoundTrip(r)
}

// flatPeers are those that are compared.
func flatPeers() []string { return []string{peers.Bare, peers.BareTimeout, peers.Idem} }

// flatCases are calls of which so many are under way at once, of calls in all.
func flatCases(concurrent, calls int) []measure.Case {
	names := flatPeers()
	cases := make([]measure.Case, 0, len(names))
	for _, name := range names {
		p := peers.Named(name)
		client := p.New(peers.Config{Transport: newGate(new(peers.Stub), concurrent), BaseURL: peers.StubURL, Attempts: attempts})
		cases = append(cases, measure.Case{
			Name: name, Size: max(calls, concurrent),
			Run: together(serial(client, peers.StubURL, usualKey(p)), concurrent),
		})
	}
	return cases
}

// together divides n calls among so many callers.
func together(run func(n int) error, callers int) func(n int) error {
	return func(n int) error {
		var wg sync.WaitGroup
		var failed atomic.Value
		for range callers {
			wg.Go(func() {
				if err := run(n / callers); err != nil {
					failed.Store(err)
				}
			})
		}
		wg.Wait()
		err, _ := failed.Load().(error)
		return err
	}
}

// A stretch is a run of calls through one Transport, each with a new Intent.
type stretch struct {
	from, to int // numbers of the calls, counted from 1
	measure.Sample
}

// measureIntents makes so many calls, each with a new Intent, and returns what
// they cost in ten stretches, and the bytes of heap that are left of each.
func measureIntents(calls int, step func()) (list []stretch, left float64, err error) {
	p := peers.Named(peers.Idem)
	client := p.New(peers.Config{Transport: new(peers.Stub), BaseURL: peers.StubURL, Attempts: attempts})
	run := serial(client, peers.StubURL, usualKey(p))
	before := measure.LiveHeap()
	for done, each := 0, calls/10; done < calls; done += each {
		sample, err := measure.Measure(each, run)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, stretch{done + 1, done + each, sample})
		step()
	}
	return list, (float64(measure.LiveHeap()) - float64(before)) / float64(calls), nil
}
