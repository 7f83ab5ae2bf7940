package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
)

// reconcile goes on with the charges that nobody waits for any more, until ctx is
// done. What was never sent is sent; of what was sent the provider is asked first.
// What stays unknown until its key's window ends is told to a person.
func (s *Shop) reconcile(ctx context.Context, poll time.Duration) {
	err := s.journal.Run(ctx, journal.Dispatcher{
		Scopes:    []string{chargeRef("").Scope},
		Poll:      poll,
		Reconcile: s.askProvider,
		Handle: func(ctx context.Context, ref journal.Ref, intent *idem.Intent) error {
			o, err := s.readOrder(ctx, strings.TrimPrefix(ref.ID, "order-"))
			if err != nil {
				return err
			}
			_, err = s.charge(ctx, intent, o)
			return err
		},
		OnExpired: func(_ context.Context, r journal.Record) {
			s.OnError(fmt.Errorf("stagedoor: nobody knows what became of the charge for %s: %s", r.Ref.ID, r.LastError))
		},
	})
	if err != nil {
		s.OnError(err)
	}
}

// askProvider looks a charge up. That there is none may mean that the request is
// still on its way: the charge is then sent again with its key, which is safe.
func (s *Shop) askProvider(ctx context.Context, r journal.Record) (journal.Finding, error) {
	var c charge
	res, err := s.provider.Call(ctx, nil, http.MethodGet, "/charges/"+r.Ref.ID, nil, &c)
	switch {
	case res.Status == http.StatusNotFound:
		return journal.Finding{Outcome: idem.NotExecuted}, nil
	case err != nil:
		return journal.Finding{}, err
	case c.Status == "declined":
		return journal.Finding{Outcome: idem.Answered, Status: http.StatusPaymentRequired}, nil
	default:
		return journal.Finding{Outcome: idem.Answered, Status: http.StatusCreated}, nil
	}
}

// finishOrders settles the orders whose charge is settled and whose process died in
// between, and returns how many they were. The rest is left: to its own process
// while the claim holds, to reconcile while the charge is open.
func (s *Shop) finishOrders(ctx context.Context) (finished int, err error) {
	var c claim
	for {
		found, broken := s.store.find(ctx, []any{&c.buyer, &c.key, &c.orderID, &c.token},
			`SELECT buyer, key, order_id, token FROM claims
			WHERE status IS NULL AND held_until <= {now} AND order_id > $1 ORDER BY order_id LIMIT 1`, c.orderID)
		if !found {
			return finished, errors.Join(err, broken)
		}
		record, failed := s.journal.Find(ctx, chargeRef(c.orderID))
		won := false
		if failed == nil && record.State == journal.Settled {
			won, failed = s.takeOver(ctx, &c)
		}
		if won {
			_, failed = s.goOn(ctx, c) // sends nothing: the journal has the answer
			finished++
		}
		err = errors.Join(err, failed)
	}
}
