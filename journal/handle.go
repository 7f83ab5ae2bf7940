package journal

import (
	"cmp"
	"context"
	"fmt"

	"github.com/idem-go/idem"
)

// handle brings one Intent further.
func (d *dispatch) handle(ctx context.Context, c *claim) {
	if ctx.Err() != nil {
		d.giveBack(ctx, c)
		return
	}
	if !c.mine() {
		return // it waited too long for a worker; whoever takes it next is welcome
	}
	r := c.row
	past := r.keyDeadline != 0 && r.keyDeadline <= r.now
	var found Finding
	var why error
	if r.state != Minted && d.Reconcile != nil {
		if found, why = d.Reconcile(ctx, r.record()); why != nil {
			found = Finding{}
			why = fmt.Errorf("journal: reconcile: %w", why)
			d.j.set.onError(ctx, c.ref, why)
		}
	}
	pointless := r.state == Stuck && (d.Reconcile == nil || found.Outcome == idem.NotExecuted)
	switch {
	case found.Outcome == idem.Answered:
		d.settle(ctx, c, found)
	case past, pointless:
		d.expire(ctx, c, found, why)
	case r.state == Stuck:
		c.attempts++ // each asking makes the next wait longer, as each call does
		d.later(ctx, c, why)
	default:
		err := d.Handle(context.WithValue(ctx, claimKey{}, c), c.ref, c.intent)
		if err != nil {
			d.j.set.onError(ctx, c.ref, err)
		}
		d.later(ctx, c, err)
	}
}

// settle writes what Reconcile has found.
func (d *dispatch) settle(ctx context.Context, c *claim, f Finding) {
	var data []byte
	if f.Status != 0 {
		header := map[string][]string{"Content-Type": {cmp.Or(f.ContentType, "application/json")}}
		var err error
		if data, err = d.j.set.keep.answer(ctx, c.ref, f.Status, header, f.Body); err != nil {
			d.j.set.onError(ctx, c.ref, err)
		}
	}
	var status any
	if f.Status != 0 {
		status = f.Status
	}
	if _, err := c.write(ctx, true, d.j.q.settle, status, null(data)); err != nil {
		d.j.set.onError(ctx, c.ref, err) // it will be asked again
	}
}

// expire ends an Intent whose outcome cannot be known any more.
func (d *dispatch) expire(ctx context.Context, c *claim, f Finding, why error) {
	record := c.row.record()
	record.State = Expired
	switch {
	case c.row.state == Minted:
		record.LastError = "journal: refused until the window ended; it was not done"
	case f.Outcome == idem.NotExecuted:
		record.LastError = "journal: the server says that it was not done"
	case why != nil:
		record.LastError = brief(why)
	}
	if d.OnExpired != nil {
		d.OnExpired(ctx, record)
	}
	if _, err := c.write(ctx, true, d.j.q.expire, null(record.LastError)); err != nil {
		d.j.set.onError(ctx, c.ref, err)
	}
}

// later ends a claim that no call has ended.
func (d *dispatch) later(ctx context.Context, c *claim, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil || !c.held || c.active > 0 {
		return
	}
	state := c.row.state
	if c.bound {
		state = Unknown // as after a redirect that led nowhere
	}
	if _, err := c.later(ctx, state, false, 0, why); err != nil {
		d.j.set.onError(ctx, c.ref, err)
	}
}
