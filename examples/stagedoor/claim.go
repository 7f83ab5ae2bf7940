package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A claim is what one key of one buyer stands for: a row of the table claims. It
// commits together with its order, so that a claim without an answer always has
// an order to go on with.
type claim struct {
	buyer, key string // unique together: another buyer's key is one that nobody has seen
	print      string // SHA-256 over method, path and body
	orderID    string
	token      int64 // the fence: only who holds the newest may store an answer
}

// errFenced: the claim was taken over while this process slept or waited. What
// it has done keeps its key, and so was done once; what is stored is the other's.
var errFenced = errors.New("stagedoor: the claim was taken over by another")

// printOf is what must be the same for two requests to be the same.
func printOf(method, path string, body []byte) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s %s\n%s", method, path, body)
	return hex.EncodeToString(sum.Sum(nil))
}

// insertClaim claims the key and reports whether nobody had. It asks by inserting:
// between a look and an insert another may come. A second insert of one key waits
// for the first one's transaction, and meets its row, or none if that was undone.
func (s *Shop) insertClaim(ctx context.Context, tx conn, c claim) (won bool, err error) {
	n, err := tx.exec(ctx, `INSERT INTO claims (buyer, key, print, order_id, token, held_until, created_at)
		VALUES ($1, $2, $3, $4, $5, {now} + $6, {now}) ON CONFLICT (buyer, key) DO NOTHING`,
		c.buyer, c.key, c.print, c.orderID, c.token, s.Stale.Milliseconds())
	return n == 1, err
}

// lost finds out what a lost insert means. One of three things, and then there is
// an answer; or the claim is stale, and now it is ours: go on with the same order.
func (s *Shop) lost(ctx context.Context, mine claim) (known *answer, c claim, err error) {
	c = claim{buyer: mine.buyer, key: mine.key}
	stored, status, stale := answer{replayed: true}, sql.NullInt64{}, false
	there, err := s.store.find(ctx, []any{&c.print, &c.orderID, &c.token, &stale, &status, &stored.location, &stored.body},
		`SELECT print, order_id, token, held_until <= {now}, status, location, body FROM claims WHERE buyer = $1 AND key = $2`,
		c.buyer, c.key)
	switch {
	case err != nil:
		return nil, c, err
	case there && c.print != mine.print:
		return problem(http.StatusUnprocessableEntity, keyReused, "This key came before with another request; that needs a new key"), c, nil
	case status.Valid:
		stored.status = int(status.Int64)
		return &stored, c, nil
	case stale:
		if won, err := s.takeOver(ctx, &c); won || err != nil {
			return nil, c, err
		}
	}
	return busy(), c, nil // also if the clean-up has just deleted it
}

// takeOver makes a stale claim ours, whose holder has died or given it up, by raising
// its token. Of many who try, one finds the token that all have read.
func (s *Shop) takeOver(ctx context.Context, c *claim) (bool, error) {
	n, err := s.store.exec(ctx, `UPDATE claims SET token = token + 1, held_until = {now} + $4
		WHERE buyer = $1 AND key = $2 AND token = $3 AND status IS NULL AND held_until <= {now}`,
		c.buyer, c.key, c.token, s.Stale.Milliseconds())
	if err != nil || n == 0 {
		return false, err
	}
	c.token++
	return true, nil
}

// giveUp makes a claim stale before its time: its work is not done and nobody is
// at it any more. The next request with the key goes on.
func (s *Shop) giveUp(ctx context.Context, c claim) error {
	// It may be the time that has run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := s.store.exec(ctx, `UPDATE claims SET held_until = {now}
		WHERE buyer = $1 AND key = $2 AND token = $3 AND status IS NULL`, c.buyer, c.key, c.token)
	return err
}

// storeAnswer writes the answer into the claim, in the transaction that makes it
// true. A 5xx is never stored: it says that we do not know, or could not.
func storeAnswer(ctx context.Context, tx conn, c claim, a *answer) error {
	if a.status >= 500 {
		return fmt.Errorf("stagedoor: a %d must not be stored", a.status)
	}
	n, err := tx.exec(ctx, `UPDATE claims SET status = $4, location = $5, body = $6
		WHERE buyer = $1 AND key = $2 AND token = $3 AND status IS NULL`,
		c.buyer, c.key, c.token, a.status, a.location, a.body)
	if err == nil && n == 0 {
		return errFenced
	}
	return err
}
