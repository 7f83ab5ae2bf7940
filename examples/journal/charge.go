package main

import (
	"context"
	"database/sql"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
)

// Order is what is charged for.
type Order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// buy writes the order and the promise to charge for it in one transaction, and
// then charges. If the process dies anywhere, a dispatcher goes on.
func buy(ctx context.Context, db *sql.DB, j *journal.Journal, client *idem.Client, order Order) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, amount) VALUES (?, ?)", order.ID, order.Amount); err != nil {
		return err
	}
	ref := journal.Ref{Scope: "shop/charge", ID: order.ID}
	if err := j.Mint(ctx, tx, ref); err != nil { // the promise, in the order's transaction
		return err
	}
	if err := tx.Commit(); err != nil { // nothing can be sent before this
		return err
	}
	charge, err := j.Claim(ctx, ref) // records what it sends, and what comes back
	if err != nil {
		return err
	}
	_, err = client.Call(ctx, charge, "POST", "/charges", order, nil)
	return err
}

// resume charges for orders whose process died, until ctx is done.
func resume(ctx context.Context, db *sql.DB, j *journal.Journal, client *idem.Client) error {
	return j.Run(ctx, journal.Dispatcher{Handle: func(ctx context.Context, ref journal.Ref, charge *idem.Intent) error {
		order := Order{ID: ref.ID}
		if err := db.QueryRowContext(ctx, "SELECT amount FROM orders WHERE id = ?", ref.ID).Scan(&order.Amount); err != nil {
			return err
		}
		_, err := client.Call(ctx, charge, "POST", "/charges", order, nil)
		return err
	}})
}
