package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// An event is something that has happened to an order. Its id is the same as often
// as it is told.
type event struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // placed, paid or declined; charged, from the provider
	Order string `json:"order"`
	Buyer string `json:"buyer"`
}

// addEvent writes an event down in the transaction that makes it true. Its id
// follows from what it tells, so that nothing is told under two ids.
func addEvent(ctx context.Context, tx conn, o order, kind string) error {
	_, err := tx.exec(ctx, `INSERT INTO outbox (id, kind, order_id, buyer, created_at) VALUES ($1, $2, $3, $4, {now})`,
		o.id+"/"+kind, kind, o.id, o.buyer)
	return err
}

// relay delivers what has not been delivered, each event at least once: it is marked
// after the receiver has answered, and if the answer or the mark is lost it goes out
// again. Exactly once is the receiver's part.
//
// An event that is refused stays for the next time and does not hold up the others,
// so that the order of events is not kept.
func (s *Shop) relay(ctx context.Context, client *http.Client, url string) (delivered int, err error) {
	var e event
	var at int64
	for {
		found, broken := s.store.find(ctx, []any{&e.ID, &e.Kind, &e.Order, &e.Buyer, &at},
			`SELECT id, kind, order_id, buyer, created_at FROM outbox
			WHERE delivered_at IS NULL AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT 1`, at, e.ID)
		if !found {
			return delivered, errors.Join(err, broken)
		}
		failed := deliver(ctx, client, url, e)
		if failed == nil {
			_, failed = s.store.exec(ctx, `UPDATE outbox SET delivered_at = {now} WHERE id = $1`, e.ID)
			delivered++
		}
		err = errors.Join(err, failed)
	}
}

// deliver sends one event.
func deliver(ctx context.Context, client *http.Client, url string, e event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("stagedoor: %s answered %d", r.URL.Path, resp.StatusCode)
	}
	return nil
}
