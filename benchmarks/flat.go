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

// A stretch is a run of calls through one Transport, each with a new Intent, and
// as many bare ones.
type stretch struct {
	from, to int // numbers of the calls, counted from 1
	measure.Sample
	bare measure.Sample
}

// ratio is what a call costs as a multiple of a bare one.
func (s stretch) ratio() float64 { return s.CPU / s.bare.CPU }

// measureIntents makes so many calls, each with a new Intent, and returns what
// they cost in ten stretches, and the bytes of heap that are left of each.
func measureIntents(calls int, step func()) (list []stretch, left float64, err error) {
	run := func(name string) func(n int) error {
		p := peers.Named(name)
		client := p.New(peers.Config{Transport: new(peers.Stub), BaseURL: peers.StubURL, Attempts: attempts})
		return serial(client, peers.StubURL, usualKey(p))
	}
	ours, bare := run(peers.Idem), run(peers.Bare)
	before := measure.LiveHeap()
	for done, each := 0, calls/10; done < calls; done += each {
		s := stretch{from: done + 1, to: done + each}
		if s.bare, err = measure.Measure(each, bare); err != nil {
			return nil, 0, err
		}
		if s.Sample, err = measure.Measure(each, ours); err != nil {
			return nil, 0, err
		}
		list = append(list, s)
		step()
	}
	return list, (float64(measure.LiveHeap()) - float64(before)) / float64(calls), nil
}
