// Package gateway is a service that receives an Idempotency-Key and calls two
// APIs for it, under its own accounts there.
//
// The keys that go out are derived from (account, key that came in), never the
// key itself: two customers may choose the same one, and under the gateway's own
// account the second charge would come back as a replay of the first.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// Gateway serves POST /checkouts.
type Gateway struct {
	Payments *idem.Client // POST /charges
	Stock    *idem.Client // POST /orders
	// Account returns the account that a request is authenticated for.
	Account func(*http.Request) (string, error)
	// FirstSeen returns when a key of an account first came. It must outlive the
	// process: see Memory.
	FirstSeen func(ctx context.Context, account, key string) (time.Time, error)
}

// Checkout is what a customer sends, Done what it gets.
type (
	Checkout struct {
		Item   string `json:"item"`
		Amount int    `json:"amount"`
	}
	Done struct {
		Charge string `json:"charge"`
		Order  string `json:"order"`
	}
)

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	account, err := g.Account(r)
	if err != nil {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 255 {
		http.Error(w, "an Idempotency-Key of 1 to 255 characters is required", http.StatusBadRequest)
		return
	}
	var checkout Checkout
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&checkout); err != nil {
		http.Error(w, "the body is not a checkout", http.StatusBadRequest)
		return
	}
	done, err := g.checkout(r.Context(), account, key, checkout)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(done); err != nil {
		return // the customer has gone, and will ask again with its key
	}
}

// checkout makes both calls. Whoever comes again with the same key, in this
// process or another, makes them with the same keys again.
func (g *Gateway) checkout(ctx context.Context, account, key string, c Checkout) (done Done, err error) {
	since, err := g.FirstSeen(ctx, account, key)
	if err != nil {
		return done, err
	}
	checkout, err := idem.Derive("gateway/"+account, key, since)
	if err != nil {
		return done, err
	}
	var charge, order struct{ ID string }
	_, err = g.Payments.Call(ctx, checkout.Child("charge"), http.MethodPost, "/charges", map[string]int{"amount": c.Amount}, &charge)
	if err != nil {
		return done, err
	}
	_, err = g.Stock.Call(ctx, checkout.Child("order"), http.MethodPost, "/orders", map[string]string{"item": c.Item}, &order)
	return Done{Charge: charge.ID, Order: order.ID}, err
}

// refuse tells the customer no more than is known. A derived key may have been
// sent by another process, so that "certainly not done" is never said here.
func refuse(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*idem.Error](err)
	switch {
	case ok && errors.Is(err, idem.ErrExpired):
		http.Error(w, "this key is too old to be sure: look the checkout up", http.StatusConflict)
	case ok && errors.Is(err, idem.ErrMismatch):
		http.Error(w, "this key came before with another checkout", http.StatusUnprocessableEntity)
	case ok && e.Outcome == idem.Answered && e.Status == http.StatusPaymentRequired:
		http.Error(w, "the payment was declined", e.Status)
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "not known yet: ask again with the same key", http.StatusServiceUnavailable)
	}
}

// Memory is a FirstSeen for tests. A real one is a table with (account, key) as
// its primary key: INSERT … ON CONFLICT DO NOTHING, then SELECT, committed before
// anything is sent.
type Memory struct{ m sync.Map }

// FirstSeen returns when the pair first came.
func (m *Memory) FirstSeen(_ context.Context, account, key string) (time.Time, error) {
	first, _ := m.m.LoadOrStore([2]string{account, key}, time.Now())
	return first.(time.Time), nil
}
