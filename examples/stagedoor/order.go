package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// An order is for one seat.
type order struct {
	id     string
	buyer  string
	seat   string
	card   string
	amount int64
	state  string // pending, paid or declined
}

// placeOrder is the transaction that everything rests on: the claim first, and
// before any other work; then the order, the hold on its seat, the promise to
// charge for it and the event that tells of it. All of them happen, or none.
//
// Nothing is sent in it. A charge cannot be rolled back, and while it takes its
// time every duplicate would wait for our lock.
//
// An order that is refused at once has its answer here, stored like any other.
func (s *Shop) placeOrder(ctx context.Context, c claim, o order) (won bool, refusal *answer, err error) {
	err = s.store.inTx(ctx, func(tx conn) (err error) {
		if won, err = s.insertClaim(ctx, tx, c); err != nil || !won {
			return err
		}
		s.At("claimed")
		if refusal, err = hold(ctx, tx, &o); err != nil {
			return err
		}
		if refusal != nil {
			return storeAnswer(ctx, tx, c, refusal)
		}
		_, err = tx.exec(ctx, `INSERT INTO orders (id, buyer, seat, card, amount, state) VALUES ($1, $2, $3, $4, $5, 'pending')`,
			o.id, o.buyer, o.seat, o.card, o.amount)
		if err == nil {
			err = s.journal.Mint(ctx, tx, chargeRef(o.id))
		}
		if err == nil {
			err = addEvent(ctx, tx, o, "placed")
		}
		s.At("ordered")
		return err
	})
	return won, refusal, err
}

// hold takes the seat for the order and fills in its price, or says why not. The
// unique constraint on the seat decides, and not a look at what is free: of two
// who want the last seat, the second insert waits for the first one's end.
func hold(ctx context.Context, tx conn, o *order) (*answer, error) {
	there, err := tx.find(ctx, []any{&o.amount}, `SELECT price FROM seats WHERE id = $1`, o.seat)
	if err != nil {
		return nil, err
	}
	if !there {
		return problem(http.StatusNotFound, noSuchSeat, "There is no such seat"), nil
	}
	n, err := tx.exec(ctx, `INSERT INTO holds (seat, order_id) VALUES ($1, $2) ON CONFLICT (seat) DO NOTHING`, o.seat, o.id)
	if err != nil || n == 1 {
		return nil, err
	}
	return problem(http.StatusConflict, seatTaken, "The seat is taken"), nil
}

// settleOrder writes what the charge came to: the answer, the order's state and
// the event are one fact. Of two who try, the fence lets one through.
func (s *Shop) settleOrder(ctx context.Context, c claim, o order, paid bool) (*answer, error) {
	o.state = "paid"
	a := &answer{status: http.StatusCreated, location: "/orders/" + o.id, body: o.body()}
	if !paid {
		o.state = "declined"
		a = problem(http.StatusPaymentRequired, declined, "The card was declined; nothing was charged")
	}
	err := s.store.inTx(ctx, func(tx conn) error {
		if err := storeAnswer(ctx, tx, c, a); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `UPDATE orders SET state = $2 WHERE id = $1`, o.id, o.state)
		if err == nil && !paid { // the seat is free again
			_, err = tx.exec(ctx, `DELETE FROM holds WHERE order_id = $1`, o.id)
		}
		if err == nil {
			err = addEvent(ctx, tx, o, o.state)
		}
		s.At("settled")
		return err
	})
	return a, err
}

// body is the order as its buyer sees it.
func (o order) body() string {
	b, _ := json.Marshal(map[string]any{ //nolint:errchkjson // strings and a number
		"order": o.id, "seat": o.seat, "amount": o.amount, "state": o.state,
	})
	return string(b)
}

func (s *Shop) readOrder(ctx context.Context, id string) (order, error) {
	o := order{id: id}
	there, err := s.store.find(ctx, []any{&o.buyer, &o.seat, &o.card, &o.amount, &o.state},
		`SELECT buyer, seat, card, amount, state FROM orders WHERE id = $1`, id)
	if err == nil && !there {
		err = fmt.Errorf("stagedoor: there is no order %s", id)
	}
	return o, err
}

// getOrder answers GET /orders/{id}, to the buyer whose order it is.
func (s *Shop) getOrder(w http.ResponseWriter, r *http.Request) {
	o, err := s.readOrder(r.Context(), r.PathValue("id"))
	if err != nil || o.buyer != buyerOf(r) {
		problem(http.StatusNotFound, notFound, "There is no such order of yours").write(w)
		return
	}
	answer{status: http.StatusOK, body: o.body()}.write(w)
}

// buyerOf is who asks. That the token is a name is this example's simplicity.
func buyerOf(r *http.Request) string {
	_, name, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
	return name
}
