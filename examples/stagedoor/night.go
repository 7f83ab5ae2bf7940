package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// A night is the story, told while it happens.
type night struct {
	out      io.Writer
	shop     *Shop
	provider *Provider
	front    *mockserver.Server // the network in front of the shop
	clicks   atomic.Int64
}

// play plays the night and ends with the table.
func play(ctx context.Context, out io.Writer, store *Store, lock *Lock) (err error) {
	n := &night{out: out}
	if n.provider, err = startProvider(); err != nil {
		return err
	}
	defer func() { _ = n.provider.Close() }()
	if n.shop, err = openShop(ctx, store, Config{
		Provider: n.provider.URL, Base: n.provider.Transport(), Lock: lock,
	}, 18); err != nil {
		return err
	}
	// A contract without methods: it breaks the network and keeps no keys.
	if n.front, err = mockserver.Start(mockserver.Config{
		Handler: n.shop.Handler(), Contract: contract.Contract{Methods: []string{}},
	}); err != nil {
		return err
	}
	defer func() { _ = n.front.Close() }()
	n.sayf("The hall has 18 seats. Of every charge the provider loses the first request, and the answer to the second.\n")
	n.badNetwork(ctx)
	n.doubleClick(ctx)
	n.sharedKey(ctx)
	n.declinedCard(ctx)
	n.lastSeat(ctx)
	return errors.Join(n.deadProcess(ctx), n.silentProvider(ctx), n.receivers(ctx), n.oldKeys(ctx), n.tally(ctx))
}

func (n *night) badNetwork(ctx context.Context) {
	for i := range 4 {
		n.front.On("POST /orders").Caller(fmt.Sprint("buyer ", i)).Then("drop@received")
		n.front.On("POST /orders").Caller(fmt.Sprint("buyer ", i+4)).Then("drop@stored")
	}
	got := crowd(12, func(i int) string { return n.click(ctx, fmt.Sprint("buyer ", i), seat(i+1), "good") })
	n.sayf("20:00  12 buyers click once. 4 requests are lost, and 4 answers; the phones ask again with the same keys.")
	n.sayf("       %d × 201, %d × the 201 that was lost.", got["201"], got["201 replayed"])
}

func (n *night) doubleClick(ctx context.Context) {
	n.clicks.Add(1)
	got := crowd(200, func(int) string {
		res, body := n.ask(ctx, "fred", "a-key", "S13", "good", 1)
		return fmt.Sprint(res.Status, body)
	})
	delete(got, "409")
	n.sayf("20:10  Fred's browser sends one click 200 times at once. It gets %d answer, the same bytes each time, or the", len(got))
	n.sayf("       advice to come again.")
}

func (n *night) sharedKey(ctx context.Context) {
	n.clicks.Add(2)
	n.sayf("20:20  Fay happens to use Fred's key, and gets a seat: %d.", n.once(ctx, "fay", "a-key", "S14"))
	n.sayf("       Fred uses it for another seat: %d.", n.once(ctx, "fred", "a-key", "S14"))
}

func (n *night) declinedCard(ctx context.Context) {
	n.front.On("POST /orders").Caller("dora").Then("drop@stored")
	dora, emil := n.click(ctx, "dora", "S15", "declined"), n.click(ctx, "emil", "S15", "good")
	n.sayf("20:30  Dora's card is declined, and the answer is lost. She is told all the same: %s.", dora)
	n.sayf("       Her seat is free again, and Emil gets it: %s.", emil)
}

func (n *night) lastSeat(ctx context.Context) {
	got := crowd(50, func(i int) string { return n.click(ctx, fmt.Sprint("late ", i), "S16", "good") })
	n.sayf("20:40  50 buyers want one seat: %d × 201, %d × 409.", got["201"], got["409"])
}

// deadProcess dies as far as one can from within: the handler ends where it stands.
// The tests kill real processes.
func (n *night) deadProcess(ctx context.Context) error {
	n.clicks.Add(1)
	var once sync.Once
	n.shop.At = func(step string) {
		if step == "charged" {
			once.Do(func() { panic(http.ErrAbortHandler) })
		}
	}
	n.once(ctx, "gwen", "c-key", "S17")
	n.sayf("20:50  The process dies between Gwen's charge and her answer. While the dead one's claim holds she is told %d;",
		n.once(ctx, "gwen", "c-key", "S17"))
	_, err := n.shop.store.exec(ctx, `UPDATE claims SET held_until = held_until - $1`, n.shop.Stale.Milliseconds())
	n.sayf("       half a minute later it is taken over, with the same order and the same charge: %d.",
		n.once(ctx, "gwen", "c-key", "S17"))
	return err
}

func (n *night) silentProvider(ctx context.Context) (err error) {
	n.clicks.Add(1)
	charges := n.provider.On("POST /charges").Always("drop@head")
	n.sayf("21:00  Every answer about Hugo's charge is lost. He is told %d, not decided yet, and goes home.",
		n.once(ctx, "hugo", "b-key", "S18"))
	charges.Always("pass")
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	var asking sync.WaitGroup
	asking.Go(func() { n.shop.reconcile(ctx, 20*time.Millisecond) })
	finished := 0
	for finished == 0 && err == nil {
		time.Sleep(20 * time.Millisecond)
		finished, err = n.shop.finishOrders(ctx)
	}
	stop()
	asking.Wait()
	n.sayf("       The reconciliation asks the provider: it has charged. Orders finished: %d.", finished)
	return err
}

func (n *night) receivers(ctx context.Context) error {
	n.front.On("POST /events").Then("drop@received", "pass", "drop@stored")
	first, _ := n.shop.relay(ctx, http.DefaultClient, n.front.URL+"/events")
	again, err := n.shop.relay(ctx, http.DefaultClient, n.front.URL+"/events")
	n.sayf("21:10  The outbox is delivered: %d events, and %d whose request or answer was lost once more.", first, again)
	sent, e := n.provider.notify(ctx, http.DefaultClient, n.front.URL+"/webhooks")
	n.sayf("       The provider sends %d webhooks: each twice, at the same time.", sent)
	return errors.Join(err, e)
}

func (n *night) oldKeys(ctx context.Context) error {
	_, err := n.shop.store.exec(ctx, `UPDATE claims SET created_at = created_at - $1`, (25 * time.Hour).Milliseconds())
	deleted, e := n.shop.cleanUp(ctx)
	n.sayf("A day later the clean-up deletes %d keys.\n", deleted)
	return errors.Join(err, e)
}

func (n *night) sayf(format string, args ...any) { _, _ = fmt.Fprintf(n.out, format+"\n", args...) }

// click is one click: one key, and the request as often as it takes.
func (n *night) click(ctx context.Context, buyer, seat, card string) string {
	n.clicks.Add(1)
	res, _ := n.ask(ctx, buyer, rand.Text(), seat, card, 9)
	if res.Replay == idem.Replayed {
		return fmt.Sprint(res.Status, " replayed")
	}
	return fmt.Sprint(res.Status)
}

// once is one request, and the status of its answer.
func (n *night) once(ctx context.Context, buyer, key, seat string) int {
	res, _ := n.ask(ctx, buyer, key, seat, "good", 1)
	return res.Status
}

// ask sends an order, in at most so many attempts. The body is that of a 2xx.
func (n *night) ask(ctx context.Context, buyer, key, seat, card string, attempts int) (idem.Result, string) {
	phone, err := idem.NewClient(idem.Config{
		BaseURL: n.front.URL, Header: http.Header{"Authorization": {"Bearer " + buyer}},
		Transport: &idem.Transport{Base: n.front.Transport(), Contract: shopContract(), MaxAttempts: attempts},
	})
	intent, e := idem.Adopt(key, time.Now())
	if err = errors.Join(err, e); err != nil {
		return idem.Result{}, err.Error()
	}
	var body json.RawMessage
	res, _ := phone.Call(ctx, intent, http.MethodPost, "/orders", map[string]string{"seat": seat, "card": card}, &body)
	return res, string(body)
}

// crowd runs f for each of many at once, and counts what they get.
func crowd(size int, f func(i int) string) map[string]int {
	answers := make(chan string)
	for i := range size {
		go func() { answers <- f(i) }()
	}
	got := make(map[string]int)
	for range size {
		got[<-answers]++
	}
	return got
}
