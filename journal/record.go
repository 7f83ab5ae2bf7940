package journal

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// State is how far an Intent has come; the package documentation has the list.
type State string

const (
	Minted    State = "minted"    // promised; no send can have had an effect
	Unknown   State = "unknown"   // sent, or perhaps sent; the outcome is not known
	Stuck     State = "stuck"     // unknown, and sending again cannot tell more
	Settled   State = "settled"   // answered
	Expired   State = "expired"   // not settled when the window ended; a person decides
	Cancelled State = "cancelled" // withdrawn before anything was sent
)

// A Record is a row as it was read. It holds the key in full; what fmt and slog
// print of it does not.
type Record struct {
	Ref         Ref
	Key         string
	State       State
	Status      int       // of the answer that settled it; 0: none
	Attempts    int       // calls that were begun
	Created     time.Time // when it was minted; like all times here by the database's clock
	FirstSent   time.Time // zero: never
	KeyDeadline time.Time // when the last attempt may start; zero: not sent yet, or no window
	LeaseUntil  time.Time // zero: nobody holds it
	SettledAt   time.Time // zero: it is not settled
	LastError   string    // why the last call did not settle it; of a Handler's own error its text, cut short
}

// Format prints the reference, the state and the key cut short, for every verb.
func (r Record) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "journal.Record(%v %s, key %s)", r.Ref, r.State, shortKey(r.Key))
}

// LogValue returns the record as a group without the whole key.
func (r Record) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("scope", r.Ref.Scope), slog.String("ref", r.Ref.ID), slog.String("key", shortKey(r.Key)),
		slog.String("state", string(r.State)), slog.Int("status", r.Status), slog.Int("attempts", r.Attempts),
	)
}

// shortKey makes a key fit to be shown.
func shortKey(key string) string {
	if _, err := uuid.Parse(key); err == nil && len(key) == 36 {
		return key[:8] + "…"
	}
	return fmt.Sprintf("of %d bytes", len(key))
}

// Find reads the row of an Intent. It claims nothing. If there is none the error
// matches ErrNotMinted.
func (j *Journal) Find(ctx context.Context, ref Ref) (Record, error) {
	own, cancel := j.own(ctx, false)
	defer cancel()
	r, err := j.read(own, j.run, ref)
	switch {
	case err != nil:
		return Record{}, failed(own, "find", ref, err)
	case r == nil:
		return Record{}, because(ErrNotMinted, "find %v", ref)
	}
	return r.record(), nil
}

// Purge drops the stored bytes of rows that were settled, expired or cancelled at
// least age ago, and returns how many rows had some. The rows themselves stay: a
// reference keeps its key and its state, and a settled one answers ErrNoAnswer.
func (j *Journal) Purge(ctx context.Context, age time.Duration) (int, error) {
	res, err := j.db.ExecContext(ctx, j.q.purge, -age.Milliseconds())
	if err != nil {
		return 0, explain("purge", Ref{}, err)
	}
	n, err := res.RowsAffected()
	return int(n), explain("purge", Ref{}, err)
}

// row is a row as the statements give it; times in milliseconds, 0 for none.
type row struct {
	ref                                                         Ref
	key, fingerprint, lastError                                 string
	state                                                       State
	request, outcome                                            []byte
	status, attempts                                            int
	token                                                       int64
	created, firstSent, keyDeadline, settledAt, leaseUntil, now int64
	asked                                                       time.Time // by this process's clock, before the statement
}

func (r *row) record() Record {
	record := Record{
		Ref: r.ref, Key: r.key, State: r.state, Status: r.status, Attempts: r.attempts,
		Created: at(r.created), FirstSent: at(r.firstSent), KeyDeadline: at(r.keyDeadline),
		LeaseUntil: at(r.leaseUntil), LastError: r.lastError,
	}
	if r.state == Settled { // of an expired row it is when it expired
		record.SettledAt = at(r.settledAt)
	}
	return record
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// local is a time of the database's clock by this process's: never later than
// the truth, as the statement may have taken a while.
func (r *row) local(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return r.asked.Add(time.Duration(ms-r.now) * time.Millisecond)
}

// read returns a row, or nil if there is none.
func (j *Journal) read(ctx context.Context, q Querier, ref Ref) (*row, error) {
	rows, err := j.rows(ctx, q, j.q.read, ref.Scope, ref.ID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// rows runs a statement that gives whole rows, to its end: SQLite commits an
// UPDATE with RETURNING no sooner.
func (j *Journal) rows(ctx context.Context, q Querier, query string, args ...any) ([]*row, error) {
	asked := time.Now()
	found, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	var all []*row
	for found.Next() {
		r := &row{asked: asked}
		if err := found.Scan(&r.ref.Scope, &r.ref.ID, &r.key, &r.state, &r.fingerprint, &r.request, &r.outcome, &r.status, &r.attempts,
			&r.created, &r.firstSent, &r.keyDeadline, &r.token, &r.settledAt, &r.lastError, &r.leaseUntil, &r.now); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, found.Err()
}

// one runs a statement that gives at most one row, to its end, and reports
// whether it gave one.
func one(ctx context.Context, q Querier, into []any, query string, args ...any) (bool, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	found := rows.Next()
	if found {
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
	}
	for rows.Next() { //nolint:revive // to the end: that is when SQLite commits
	}
	return found, rows.Err()
}
