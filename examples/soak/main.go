// Soak places many orders over real sockets of the loopback interface, through
// every fault that the mock server knows, with callers that lose patience and
// servers that restart, and compares what idem said of each order with what the
// servers did. Orders that are not done by then are asked for again with their
// Intents, until every order has its effect.
//
//	go run ./examples/soak -orders 100000 -seed 7
//
// It exits with 1 unless no effect was doubled, none that was reported is
// missing, and no outcome was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"
)

func main() {
	var p plan
	flag.IntVar(&p.orders, "orders", 10000, "how many orders to place")
	flag.Uint64Var(&p.seed, "seed", 1, "what faults and patience are drawn from")
	flag.IntVar(&p.parallel, "parallel", 64, "how many orders are under way at the same time")
	limit := flag.Duration("limit", time.Hour, "when to stop, done or not")
	flag.Parse()
	log.SetOutput(io.Discard) // http.Server tells there of each connection that broke
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	err := run(ctx, p, os.Stdout, os.Stderr)
	cancel()
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A plan is what to do.
type plan struct {
	orders   int
	seed     uint64
	parallel int
}

const perServer = 500 // orders; then there is a new one

// run carries out the plan, one lane for each kind of server, and prints the
// table to out.
func run(ctx context.Context, p plan, out, progress io.Writer) error {
	kinds := kindsOfServer()
	total := &tally{orders: p.orders, began: time.Now()}
	stopBar := total.bar(progress)
	lanes := make(chan error)
	for i, k := range kinds {
		go func() { lanes <- lane(ctx, p, k, i, len(kinds), total) }()
	}
	var err error
	for range kinds {
		err = errors.Join(err, <-lanes)
	}
	stopBar()
	total.table(out)
	return errors.Join(err, total.verdict())
}

// lane places every n-th share of the orders with servers of one kind.
func lane(ctx context.Context, p plan, k kind, i, n int, total *tally) error {
	for from := i * perServer; from < p.orders; from += n * perServer {
		b := &batch{
			kind: k, seed: p.seed, from: from, to: min(from+perServer, p.orders),
			parallel: max(p.parallel/n, 1), total: total,
		}
		if err := b.run(ctx); err != nil {
			return fmt.Errorf("soak: orders %d to %d, %s: %w", b.from, b.to, k.name, err)
		}
	}
	return nil
}
