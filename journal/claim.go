package journal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// Claim takes the Intent of a reference for this process, for one Lease, and
// returns it. Use it for the request that the reference stands for, and for no
// other; the Layer that it carries writes down what becomes of it. When the call
// ends without a settled answer the claim ends with it, and the next one may come
// from a dispatcher anywhere; the same Intent may be used again meanwhile, and
// takes the claim up again if nobody else has. There is nothing to give back.
//
// A settled Intent is returned as well: it answers from its row and sends
// nothing. Call Claim after the transaction that minted has committed, never
// inside it.
//
// The error matches ErrNotMinted, ErrLeased (another holds it), ErrCancelled, or
// idem.ErrExpired: its window has ended and what became of it is not known.
func (j *Journal) Claim(ctx context.Context, ref Ref) (*idem.Intent, error) {
	if err := ref.check(); err != nil {
		return nil, err
	}
	own, cancel := j.own(ctx, false)
	defer cancel()
	rows, err := j.rows(own, j.run, j.q.claim, ref.Scope, ref.ID, j.set.lease.Milliseconds())
	if err != nil {
		return nil, failed(own, "claim", ref, err)
	}
	if len(rows) == 1 {
		c, err := j.take(rows[0])
		if err != nil {
			return nil, err
		}
		return c.intent, nil
	}
	r, err := j.read(own, j.run, ref)
	switch {
	case err != nil:
		return nil, failed(own, "claim", ref, err)
	case r != nil && r.state == Settled:
		c, err := j.take(r)
		if err != nil {
			return nil, err
		}
		return c.intent, nil
	default:
		return nil, r.why(ref, ErrLeased)
	}
}

// why tells why an Intent is not to be had: because another has it (which is
// held), unless its state says more. r may be nil.
func (r *row) why(ref Ref, held error) error {
	switch {
	case r == nil:
		return because(ErrNotMinted, "%v", ref)
	case r.state == Cancelled:
		return because(ErrCancelled, "%v", ref)
	case r.state == Expired, r.keyDeadline != 0 && r.keyDeadline <= r.now && r.leaseUntil <= r.now:
		return because(idem.ErrExpired, "%v, which is not settled", ref)
	default:
		return because(held, "%v", ref)
	}
}

// A claim is one lease on one Intent, and the Layer of it.
type claim struct {
	j      *Journal
	ref    Ref
	token  int64
	row    *row
	fresh  bool // no send was open when it was claimed
	unsent bool // nothing was ever sent
	intent *idem.Intent

	mu       sync.Mutex // held while the row is written
	held     bool       // the row is leased: a call is under way, or none has begun
	bound    bool       // a call was begun, so that something may have been sent
	active   int        // calls under way
	attempts int        // calls begun, over all claims
	sends    int        // by calls of this claim
	ends     time.Time  // of the lease, by this process's clock and never too late
	done     *outcome   // it is settled
}

// outcome is what a settled row says.
type outcome struct {
	status int
	bytes  []byte // nil: the answer is not stored
}

// take makes a claim, and its Intent, of a row that was just claimed or is
// settled.
func (j *Journal) take(r *row) (*claim, error) {
	c := &claim{
		j: j, ref: r.ref, token: r.token, row: r, held: true, attempts: r.attempts,
		fresh: r.state == Minted, unsent: r.firstSent == 0, ends: r.asked.Add(j.set.lease),
	}
	s := idem.State{Key: r.key, Fingerprint: r.fingerprint, FirstSent: r.local(r.firstSent)}
	if r.firstSent == 0 {
		s.Since = r.asked
	}
	switch {
	case r.state == Settled:
		s.Outcome, c.held = idem.Answered, false
		c.done = &outcome{status: r.status, bytes: r.outcome}
	case c.fresh:
		// Whoever held it before could not send without binding it, and can do
		// neither from now on: the token is another.
		s.Outcome = idem.NotExecuted
	}
	in, err := idem.Resume(s, c.layer)
	if err != nil {
		return nil, fmt.Errorf("journal: claim %v: the row is damaged: %w", r.ref, err)
	}
	c.intent = in
	return c, nil
}

// mine reports whether the lease holds for certain, whatever the database would
// say. The wall clock counts too: the other stands still while a machine sleeps.
func (c *claim) mine() bool {
	now := time.Now()
	return now.Before(c.ends) && now.Round(0).Before(c.ends.Round(0))
}

// write runs a statement that must meet the row in our hands, and reports whether
// it did. Args come after the reference and the token.
func (c *claim) write(ctx context.Context, late bool, query string, args ...any) (bool, error) {
	args = append([]any{c.ref.Scope, c.ref.ID, c.token}, args...)
	var err error
	for try := range 5 {
		own, cancel := c.j.own(ctx, late)
		res, e := c.j.run.ExecContext(own, query, args...)
		if err = failed(own, "write", c.ref, e); err == nil {
			n, e := res.RowsAffected()
			cancel()
			return n == 1, explain("write", c.ref, e)
		}
		cancel()
		if !isRetryTx(err) {
			break
		}
		time.Sleep(time.Duration(rand.IntN(1+10<<try)) * time.Millisecond) // the statement is a transaction of its own
	}
	return false, err
}

// later ends the claim without an outcome: the next one may come after a wait of
// at least wait.
func (c *claim) later(ctx context.Context, state State, unsent bool, wait time.Duration, why error) (bool, error) {
	d := c.j.set.backoff(max(c.attempts, 1))
	d -= time.Duration(rand.Float64() * float64(d/2))
	withdraw, text := 0, any(nil)
	if unsent {
		withdraw = 1
	}
	if why != nil {
		text = brief(why)
	}
	ok, err := c.write(ctx, true, c.j.q.later, string(state), max(d, wait).Milliseconds(), text, withdraw)
	c.held = false
	return ok, err
}

// layer is the idem.Layer of the claimed Intent.
func (c *claim) layer(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return c.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
