package main

import (
	"context"
	"encoding/json"
	"net/http"
)

// receive answers deliveries of events to one receiver. An event's work is done in
// one transaction with the note that it was received. A second delivery finds the
// note; one that comes while the first is still at work waits for it, and then finds
// the note, or none if the first has failed.
func (s *Shop) receive(receiver string, work func(context.Context, conn, event) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var e event
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&e); err != nil || e.ID == "" {
			problem(http.StatusBadRequest, badRequest, "The body is no event").write(w)
			return
		}
		err := s.store.inTx(r.Context(), func(tx conn) error {
			n, err := tx.exec(r.Context(), `INSERT INTO inbox (receiver, event) VALUES ($1, $2)
				ON CONFLICT (receiver, event) DO NOTHING`, receiver, e.ID)
			if err != nil || n == 0 {
				return err
			}
			s.At("received")
			return work(r.Context(), tx, e)
		})
		if err != nil {
			s.OnError(err)
			problem(http.StatusServiceUnavailable, notYet, "Not done; deliver it again").write(w)
			return
		}
		w.WriteHeader(http.StatusNoContent) // also if it was done before: it need not come again
	}
}

// mail writes the mail with the ticket: the outbox's receiver. What leaves the
// database, as the mail itself would, is a call to another system again, and needs a
// key there: the event's id.
func mail(ctx context.Context, tx conn, e event) error {
	if e.Kind != "paid" {
		return nil
	}
	_, err := tx.exec(ctx, `INSERT INTO mails (recipient, order_id) VALUES ($1, $2)`, e.Buyer, e.Order)
	return err
}

// credit adds 5.00 to the buyer's wallet for a charge: the receiver of the provider's
// webhooks, which come as often as the provider likes. Adding is what must not
// happen twice; it stands or falls with the note. A real one verifies the webhook's
// signature first.
func credit(ctx context.Context, tx conn, e event) error {
	_, err := tx.exec(ctx, `INSERT INTO wallets (buyer, balance, credits) VALUES ($1, 500, 1)
		ON CONFLICT (buyer) DO UPDATE SET balance = wallets.balance + excluded.balance, credits = wallets.credits + 1`, e.Buyer)
	return err
}
