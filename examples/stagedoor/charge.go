package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
)

// A chargeRequest is what the provider is sent. It is made of what the order's row
// says and of nothing else, so that every process makes the same bytes of it.
type chargeRequest struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"`
	Card   string `json:"card"`
	Buyer  string `json:"buyer"`
}

// chargeRef names the one charge of an order. A second charge for it, such as a
// fee, would have to have another ID.
func chargeRef(orderID string) journal.Ref {
	return journal.Ref{Scope: "stagedoor/charge", ID: "order-" + orderID}
}

// newJournal keeps the Intents to charge. Their keys follow from the order, so that
// they come out the same even if the table is lost and the orders are not.
func newJournal(store *Store, cfg Config) (*journal.Journal, error) {
	return journal.New(store.db, journal.Config{
		Dialect: store.dialect,
		Lease:   cfg.Stale,
		Timeout: cfg.Stale, // a crowd may stand in front of SQLite's one connection
		Key:     func(ref journal.Ref) string { return ref.ID },
		OnError: func(_ context.Context, ref journal.Ref, err error) { cfg.OnError(fmt.Errorf("%v: %w", ref, err)) },
	})
}

func newProviderClient(cfg Config) (*idem.Client, error) {
	return idem.NewClient(idem.Config{BaseURL: cfg.Provider, Transport: &idem.Transport{
		Base: cfg.Base, AttemptTimeout: 5 * time.Second, Backoff: idem.Exponential(20*time.Millisecond, time.Second),
	}})
}

// pay charges for an order, once, by whomever and however often it is called, and
// reports whether the card was charged. An error means that this is not known, or
// not done yet.
//
// It is never called in a transaction. The Intent was committed with the order, its
// outcome is written by the journal before this returns.
func (s *Shop) pay(ctx context.Context, o order) (paid bool, err error) {
	intent, err := s.journal.Claim(ctx, chargeRef(o.id))
	if err != nil {
		return false, err
	}
	s.At("intent claimed")
	return s.charge(ctx, intent, o)
}

// charge asks the provider, or the journal if it knows the answer already.
func (s *Shop) charge(ctx context.Context, intent *idem.Intent, o order) (paid bool, err error) {
	request := chargeRequest{Order: chargeRef(o.id).ID, Amount: o.amount, Card: o.card, Buyer: o.buyer}
	res, err := s.provider.Call(ctx, intent, http.MethodPost, "/charges", request, nil)
	switch {
	case res.Outcome == idem.Answered && res.Status < 300:
		return true, nil
	case res.Outcome == idem.Answered && res.Status == http.StatusPaymentRequired:
		return false, nil
	default: // a refusal of any other kind is our own fault, for a person to mend
		return false, fmt.Errorf("stagedoor: charge for %s: %w", request.Order, err)
	}
}
