// Outage simulates a fleet of clients whose service fails for a while, once with
// unbounded repetition and once with a Budget, and draws what gets through.
//
//	go run ./examples/outage -o docs/outage.svg
//
// The time is simulated and the same seed gives the same picture, byte for byte.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "what arrivals and jitter are drawn from")
	file := flag.String("o", "", "where to write the picture; empty: only the numbers are printed")
	flag.Parse()
	log.SetFlags(0)
	without, with := both(*seed)
	table(os.Stdout, without, with)
	if *file == "" {
		return
	}
	if err := os.WriteFile(*file, []byte(draw(without, with)), 0o600); err != nil {
		log.Fatal(err)
	}
}

// table prints what gets through in each ten seconds.
func table(out io.Writer, without, with *result) {
	const every = 10
	_, _ = fmt.Fprintln(out, "seconds     without a Budget    with one   (calls a second that succeed)")
	for at := 0; at+every <= len(with.good); at += every {
		_, _ = fmt.Fprintf(out, "%3d to %3d  %16.1f  %10.1f\n", at, at+every, without.rate(at, at+every), with.rate(at, at+every))
	}
}

// both simulates the same fleet without a Budget and with one.
func both(seed uint64) (without, with *result) {
	f := fleet{
		clients: 20, calls: 3.5, attempts: 4, timeout: time.Second,
		capacity: 100, queue: 250,
		outage: [2]time.Duration{20 * time.Second, 40 * time.Second}, length: 120 * time.Second,
	}
	without = f.simulate(seed)
	f.ratio, f.floor = 0.1, 10
	return without, f.simulate(seed)
}
