package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/benchmarks/internal/measure"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

const mib = 1 << 20

// The forms of a body.
const (
	fromBytes   = "bytes.Reader"
	fromGetBody = "GetBody"
	fromKnown   = "reader, known length"
	fromUnknown = "reader, unknown length"
)

// idemRoomy is idem with a MaxBody that the body fits into.
const idemRoomy = "idem, greater MaxBody"

// forms returns the same body in each form.
func forms(length int64) []form {
	big := make([]byte, length)
	stream := func() io.Reader { return io.LimitReader(zeros{}, length) }
	return []form{
		{fromBytes, peers.Call{Body: big, Stream: func() io.Reader { return bytes.NewReader(big) }}},
		{fromGetBody, peers.Call{Stream: stream, Length: length, Again: true}},
		{fromKnown, peers.Call{Stream: stream, Length: length}},
		{fromUnknown, peers.Call{Stream: stream}},
	}
}

type form struct {
	name string
	call peers.Call
}

// zeros is a body without end that holds no memory.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A bodyCost is what one client does with one form of the body and one 503.
type bodyCost struct {
	client, form string
	taken        bool    // it takes such a body
	bytes        float64 // allocated by a call
	live, peak   float64 // MiB of heap above what was there before: at the last attempt, and with garbage
	end          string  // what the caller gets
}

// bodyPeers are those of part D, idem with both bounds.
func bodyPeers(length int64) []peers.Peer {
	list := peers.Of("D")
	roomy := peers.Named(peers.Idem)
	usual := roomy.New
	roomy.Name, roomy.New = idemRoomy, func(cfg peers.Config) peers.Client {
		cfg.MaxBody = length
		return usual(cfg)
	}
	return append(list, roomy)
}

func measureBody(p peers.Peer, f form) bodyCost {
	cost := bodyCost{client: p.Name, form: f.name}
	stub := &peers.Stub{Failures: 1}
	client := p.New(peers.Config{Transport: stub, BaseURL: peers.StubURL, Attempts: attempts})
	c := f.call
	c.URL, c.Key = peers.StubURL+path, usualKey(p)
	var status int
	var err error
	call := func() {
		stub.Begin()
		status, err = client.Do(context.Background(), c)
	}
	base := float64(measure.LiveHeap())
	above := func(heap uint64) float64 { return max(0, float64(heap)-base) / mib }
	stub.Look = func(*http.Request) { cost.live = above(measure.LiveHeap()) }
	call()
	if errors.Is(err, peers.ErrNoSuchBody) {
		return cost
	}
	stub.Look = nil
	cost.taken = true
	cost.peak = above(peakHeap(call))
	sample, _ := measure.Measure(3, func(n int) error {
		for range n {
			call()
		}
		return nil
	})
	cost.bytes = sample.Bytes
	cost.end = ending(status, err, stub.Calls())
	runtime.KeepAlive(f)
	return cost
}

// repeated is the end of a call that was repeated and succeeded.
const repeated = "repeated"

func ending(status int, err error, calls int64) string {
	switch {
	case err != nil:
		return "error"
	case status == http.StatusCreated && calls == 2:
		return repeated
	default:
		return fmt.Sprintf("%d, not repeated", status)
	}
}

// peakHeap returns the most of the heap that is seen while do runs.
func peakHeap(do func()) (peak uint64) {
	measure.LiveHeap()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		every := time.NewTicker(100 * time.Microsecond)
		defer every.Stop()
		for {
			metrics.Read(heap)
			peak = max(peak, heap[0].Value.Uint64())
			select {
			case <-stop:
				return
			case <-every.C:
			}
		}
	}()
	do()
	close(stop)
	<-done
	return peak
}

// refuses reports whether a client says that it cannot repeat a call with such a
// body, when the first attempt has failed.
func refuses(p peers.Peer, f form) bool {
	stub := &peers.Stub{Failures: 1, Err: errors.New("the connection was dropped")}
	client := p.New(peers.Config{Transport: stub, BaseURL: peers.StubURL, Attempts: attempts})
	c := f.call
	c.URL = peers.StubURL + path
	_, err := client.Do(context.Background(), c)
	return errors.Is(err, idem.ErrNotRepeatable) && stub.Calls() == 1
}
