package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

const (
	odds   = 0.5                    // of an attempt to meet a fault
	lease  = 500 * time.Millisecond // of a claim whose worker died
	rounds = 200                    // the most that an order is asked for again
	answer = 400 * time.Millisecond // the longest wait for one
)

// A batch is one server and the orders from one number to another.
type batch struct {
	kind     kind
	seed     uint64
	from, to int
	parallel int
	total    *tally

	server  *mockserver.Server
	clients []*idem.Client
	orders  []*order
}

type order struct {
	Number int `json:"number"` // so that no two are the same
	Amount int `json:"amount"`

	in      *idem.Intent
	outcome idem.Outcome
	random  *rand.Rand
}

// run places the orders, looks at what became of them, and asks again for those
// that are not done.
func (b *batch) run(ctx context.Context) error {
	if err := b.start(); err != nil {
		return err
	}
	defer func() { _ = b.server.Close() }()
	open := b.orders
	for round := 0; len(open) > 0; round++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if round == rounds {
			return fmt.Errorf("%d orders are still not done after %d rounds", len(open), rounds)
		}
		stop := b.disturb(round)
		b.each(open, func(o *order) { b.place(ctx, o, round) })
		if err := stop(); err != nil {
			return err
		}
		b.settle()
		open = b.judge(open, round)
	}
	b.audit()
	return nil
}

// start starts the server and its clients, each with connections of its own.
func (b *batch) start() (err error) {
	k := contract.Default()
	k.Lease = lease
	b.server, err = mockserver.Start(mockserver.Config{
		Handler: newShop(), Contract: k, TLS: b.kind.tls, HTTP2: b.kind.http2, Idle: 300 * time.Millisecond, MaxAttempts: 1 << 20,
	})
	if err != nil {
		return err
	}
	if !strings.Contains(b.server.URL, "://127.0.0.1:") {
		return errors.New("the server is not on the loopback interface")
	}
	b.server.On("POST /orders").Sometimes(odds, b.dice(b.from, 255).Uint64(), b.kind.faults()...)
	for _, attempts := range []int{1, 3, 4, 8} {
		for _, patience := range []time.Duration{100 * time.Millisecond, 2 * time.Second} {
			c, err := idem.NewClient(idem.Config{BaseURL: b.server.URL, Transport: &idem.Transport{
				Base: b.server.Transport(), MaxAttempts: attempts, MaxRetryAfter: patience,
				AttemptTimeout: answer, Backoff: idem.Exponential(2*time.Millisecond, 20*time.Millisecond),
				OnAttempt: func(_ context.Context, a idem.Attempt) { b.total.attempt(a.Sends) },
			}})
			if err != nil {
				return err
			}
			b.clients = append(b.clients, c)
		}
	}
	for n := b.from; n < b.to; n++ {
		b.orders = append(b.orders, &order{
			Number: n, Amount: 1 + n%1000, in: idem.Open(), random: b.dice(n, 0),
		})
	}
	return nil
}

// dice returns the chance that belongs to n, the same for the same seed.
func (b *batch) dice(n, use int) *rand.Rand {
	return rand.New(rand.NewPCG(b.seed, uint64(n)<<8+uint64(use))) //nolint:gosec // both count from 0
}

// disturb restarts the server now and then, until it is told to stop. Each
// round has fewer restarts, so that the last orders get through.
func (b *batch) disturb(round int) (stop func() error) {
	done, gone := make(chan struct{}), make(chan error, 1)
	r := b.dice(b.from, 1+round)
	go func() {
		for {
			wait := time.Duration(200+r.IntN(400))*time.Millisecond + time.Duration(round)*time.Second
			select {
			case <-done:
				gone <- nil
				return
			case <-time.After(wait):
			}
			if err := b.restart(); err != nil {
				gone <- err
				return
			}
		}
	}()
	return func() error { close(done); return <-gone }
}

// restart restarts the server. Its port may be taken for a moment by a
// connection that goes out.
func (b *batch) restart() (err error) {
	for range 100 {
		if err = b.server.Restart(); err == nil {
			b.total.restart()
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// each calls f for every order, some at the same time.
func (b *batch) each(orders []*order, f func(*order)) {
	next := make(chan *order)
	var wg sync.WaitGroup
	for range b.parallel {
		wg.Go(func() {
			for o := range next {
				f(o)
			}
		})
	}
	for _, o := range orders {
		next <- o
	}
	close(next)
	wg.Wait()
}

// place asks for an order as callers do: once, or twice at the same time; and
// later also from a process that knows only what the first one wrote down.
func (b *batch) place(ctx context.Context, o *order, round int) {
	if round > 0 && o.random.IntN(2) == 0 {
		o.in = b.resumed(o.in)
	}
	calls := 1
	if o.random.IntN(20) == 0 {
		calls = 2
	}
	var wg sync.WaitGroup
	for range calls {
		client := b.clients[o.random.IntN(len(b.clients))]
		mine, cancel := patience(ctx, o.random, round)
		wg.Go(func() {
			defer cancel()
			b.call(mine, client, o, calls == 1)
		})
	}
	wg.Wait()
	if o.random.IntN(2) == 0 { // what a gateway holds arrives now, or when all is over
		b.server.Release(o.in.Key())
	}
	o.outcome = o.in.Outcome()
	b.total.placed(round)
}

// resumed writes an Intent down and reads it again.
func (b *batch) resumed(in *idem.Intent) *idem.Intent {
	text, err := json.Marshal(in)
	again := new(idem.Intent)
	if err == nil {
		err = json.Unmarshal(text, again)
	}
	if err != nil {
		b.total.wrongf("an Intent cannot be written down and read: %v", err)
		return in
	}
	return again
}

// patience returns the context of a call: with a cancel, with a deadline, or as
// it is.
func patience(ctx context.Context, r *rand.Rand, round int) (context.Context, context.CancelFunc) {
	d := time.Duration(r.IntN(60)) * time.Millisecond
	switch n := r.IntN(20 + 10*round); {
	case n < 3:
		ctx, cancel := context.WithCancel(ctx)
		t := time.AfterFunc(d, cancel)
		return ctx, func() { t.Stop(); cancel() }
	case n < 6:
		return context.WithTimeout(ctx, d)
	case n == 6:
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	return context.WithCancel(ctx)
}

// call makes one call and holds what it says at once against the ledger. That
// nothing was executed is true of the moment at which a call ends: while another
// one is about to send, judge looks at it later.
func (b *batch) call(ctx context.Context, client *idem.Client, o *order, alone bool) {
	var receipt struct {
		ID     string `json:"id"`
		Number int    `json:"number"`
	}
	res, err := client.Call(ctx, o.in, http.MethodPost, "/orders", o, &receipt)
	if err == nil && (receipt.ID == "" || receipt.Number != o.Number || res.Outcome != idem.Answered) {
		b.total.wrongf("order %d came back as %+v, %+v", o.Number, receipt, res)
	}
	switch effects := len(b.server.Effects(o.in.Key())); {
	case res.Outcome == idem.Answered && effects == 0:
		b.total.losef("order %d is answered with %d, and there is no effect", o.Number, res.Status)
	case res.Outcome == idem.NotExecuted && effects > 0 && alone:
		b.total.wrongf("order %d is not executed, and there are effects: %d (%v)", o.Number, effects, err)
	}
}

// settle lets everything that is still held arrive, and the server come to rest.
func (b *batch) settle() {
	for _, o := range b.orders {
		b.server.Release(o.in.Key())
	}
	time.Sleep(answer) // what a delay holds
	_ = b.server.Verify()
}
