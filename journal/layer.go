package journal

import (
	"context"
	"net/http"
	"time"

	"github.com/idem-go/idem"
)

// roundTrip makes one call: bind before the first byte, settle after the answer.
// A hop of a redirect within the same call comes here again.
func (c *claim) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	deadline, err := c.bind(r)
	if err != nil {
		return nil, err
	}
	if c.answeredAlready() {
		return c.fromRow(r)
	}
	ctx, end := c.watch(r.Context(), deadline)
	returned := false
	defer func() {
		if !returned { // a panic: whoever recovers it, the lease must end
			end()
			c.mu.Lock()
			c.active--
			c.mu.Unlock()
		}
	}()
	resp, err := next.RoundTrip(r.WithContext(ctx))
	returned = true
	if err != nil {
		end()
		return nil, c.after(r, nil, err)
	}
	body := c.readBody(resp, end)
	if err := c.after(r, resp, nil, body...); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (c *claim) answeredAlready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil
}

// bind writes what must be known before the first byte leaves: the request, when
// the key is first sent, and when its window ends, which is returned. It takes
// the lease anew. If the row is settled by now, done is set.
func (c *claim) bind(r *http.Request) (deadline time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return time.Time{}, nil
	}
	mark := c.intent.State().Fingerprint
	if mark == "" {
		return time.Time{}, because(idem.ErrNotRepeatable, "the body can be read only once, so that it could not be sent again after a crash")
	}
	var request []byte
	calls := 0
	if r.Response == nil {
		calls = 1
		if request, err = c.j.set.keep.request(r.Context(), c.ref, r); err != nil {
			return time.Time{}, err
		}
	}
	own, cancel := c.j.own(r.Context(), false)
	defer cancel()
	asked, lease := time.Now(), c.j.set.lease
	var end, now int64
	found, err := one(own, c.j.run, []any{&end, &now}, c.j.q.bind, c.ref.Scope, c.ref.ID, c.token,
		calls, mark, null(request), c.j.set.deadlineAfter, lease.Milliseconds())
	switch {
	case err != nil:
		return time.Time{}, c.certain(failed(own, "bind", c.ref, err))
	case !found:
		return time.Time{}, c.lost(own)
	}
	c.held, c.bound, c.ends = true, true, asked.Add(lease)
	c.active++
	c.attempts += calls
	if end == 0 {
		return time.Time{}, nil
	}
	return asked.Add(time.Duration(end-now) * time.Millisecond), nil
}

// certain makes of a failure before a send one that claims no more than is known:
// that nothing was sent by anybody holds only as long as the lease does.
func (c *claim) certain(err error) error {
	if c.mine() {
		return err
	}
	return c.unknown(err)
}

func (c *claim) unknown(err error) error {
	return &idem.Error{Result: idem.Result{Key: c.row.key}, Reason: err}
}

// lost finds out why the row is not in our hands. It is nil, and done is set, if
// it was settled.
func (c *claim) lost(ctx context.Context) error {
	r, err := c.j.read(ctx, c.j.run, c.ref)
	if err != nil {
		return c.unknown(failed(ctx, "read", c.ref, err))
	}
	if r != nil && r.state == Settled {
		c.done = &outcome{status: r.status, bytes: r.outcome}
		return nil
	}
	c.held = false
	if r != nil && r.token == c.token && r.state != Cancelled {
		return c.unknown(because(idem.ErrExpired, "%v, which is not settled", c.ref))
	}
	return c.unknown(r.why(c.ref, ErrLeaseLost))
}

// fromRow answers with what the row says.
func (c *claim) fromRow(r *http.Request) (*http.Response, error) {
	told := func(err error) error {
		return &idem.Error{Result: idem.Result{Key: c.row.key, Status: c.done.status, Outcome: idem.Answered}, Reason: err}
	}
	if c.done.bytes == nil {
		return nil, told(because(ErrNoAnswer, "%v", c.ref))
	}
	resp, err := c.j.set.keep.answered(r.Context(), c.ref, c.done.bytes)
	if err != nil {
		return nil, told(err)
	}
	resp.Request = r
	return resp, nil
}

// after writes what the call came to. It returns the error to hand over: err, or
// one that says less where the lease is lost and another may have sent since.
func (c *claim) after(r *http.Request, resp *http.Response, err error, body ...[]byte) error {
	res := resultOf(r, resp, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
	c.sends += res.Sends
	var held bool
	var failure error
	switch {
	case c.done != nil: // by another call of this claim
		return err
	case res.Outcome == idem.Answered:
		held, failure = c.settle(r, res, resp, body)
	case resp != nil && resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil // a hop may follow; if none does, the lease ends by itself
	case c.active > 0:
		return err // what that call comes to will be written
	default:
		state, unsent := Unknown, false
		switch {
		case res.Outcome == idem.NotExecuted:
			state, unsent = Minted, c.unsent && c.sends == 0
		case c.pointless(resp, body):
			state = Stuck
		}
		c.unsent = c.unsent && c.sends == 0
		held, failure = c.later(r.Context(), state, unsent, c.waitAsked(), whyUnsettled(res, err))
	}
	if failure != nil {
		c.j.set.onError(r.Context(), c.ref, failure)
		held = c.mine()
	}
	if held || res.Outcome == idem.OutcomeUnknown || c.standsAnyway(res, resp, body) {
		return err
	}
	return c.tellLess(res, resp, err)
}

// settle writes the answer. An answer whose body was not read is settled without.
func (c *claim) settle(r *http.Request, res idem.Result, resp *http.Response, body [][]byte) (bool, error) {
	var data []byte
	if resp != nil && len(body) == 1 {
		var err error
		if data, err = c.j.set.keep.answer(context.WithoutCancel(r.Context()), c.ref, res.Status, resp.Header, body[0]); err != nil {
			c.j.set.onError(r.Context(), c.ref, err) // settled all the same: that is what must not be lost
			data = nil
		}
	}
	ok, err := c.write(r.Context(), true, c.j.q.settle, res.Status, null(data))
	c.held = false
	if ok {
		c.done = &outcome{status: res.Status, bytes: data}
	}
	return ok, err
}
