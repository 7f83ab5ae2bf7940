package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/idem-go/idem/contract"
)

// A call is one RoundTrip of a Transport. It is also a context, the caller's
// plus itself, which the response's request carries: that is where ResultOf and
// the next hop of a redirect find it.
type call struct {
	opaque
	context.Context
	transport *Transport
	settings  *settings
	original  *http.Request // the caller's; never written to
	req       http.Request  // the frozen copy
	body      source
	wire      string // the key as it goes out

	in    *Intent // nil: the request is of no Intent
	book  *ledger // the Intent's; else one of the call's own, or of the write that it was redirected from
	about *ledger // whose outcome is reported: book, or that of the write a GET was redirected from
	index int     // of the Intent's calls

	attempts int // over all hops
	sent     int // over all hops

	first   attempt // the first of this hop
	ended   ended   // the last attempt
	verdict verdict
	resp    *http.Response  // to hand over
	answer  memory          // its body, if it was read here
	failed  *Error          // what the loop returned
	layered context.Context // what the layers passed on: a child of the call, or the call
	partial []byte          // of an answer that was cut

	layers   bool // the call goes through some
	running  bool // counted in book
	finished bool // and so outcome and status are fixed
	outcome  Outcome
	status   int
}

// opaque keeps fmt from printing what a context of ours holds: keys and bodies.
type opaque struct{}

func (opaque) String() string               { return "idem context" }
func (o opaque) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

type callKey struct{}

// Value makes the call findable in its own context.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// keyed reports whether the request carries a key. It may be one of an Intent and
// carry none, where the contract has no key for its method.
func (c *call) keyed() bool { return c.wire != "" }

// begin finds the request's key, freezes the request and binds the Intent to it.
// Nothing is sent before it succeeds.
func (c *call) begin() (err error) {
	req := c.original
	c.index = 1
	c.body.own(req)
	if c.settings, err = c.transport.settings(); err != nil {
		return err
	}
	if err := checkURL(req.URL); err != nil {
		return err
	}
	keyInBody := c.settings.contract.Place == contract.InBody && c.settings.contract.Keys(methodOf(req))
	if keyInBody {
		if err := c.takeBody(); err != nil {
			return err
		}
	}
	header, keys := c.copyHeaders(req.Header)
	if err := c.findKey(keys); err != nil {
		return err
	}
	if c.book == nil {
		c.book = new(ledger)
	}
	if c.about == nil {
		c.about = c.book
	}
	if !keyInBody {
		if err := c.takeBody(); err != nil {
			return err
		}
	}
	c.req = *req.WithContext(c)
	c.first.line[0] = c.wire
	c.req.Header = header
	c.putKey(header, c.first.line[:])
	if c.keyed() {
		// A hop of a redirect is no other request than the one it comes from.
		if err := c.in.bind(&c.req, &c.body, c.attempts > 0, c.transport.Around != nil); err != nil {
			return err
		}
	}
	if c.body.buffered && len(req.Trailer) == 0 { // trailers need chunks
		c.req.ContentLength = c.body.size // where it was not known, now it is
	}
	return nil
}

// takeBody finds out how the body can be sent again.
func (c *call) takeBody() error {
	if done := c.done(); done != nil {
		return done // before a body is read for nothing
	}
	most := c.settings.maxBody
	if !c.repeatable() && c.settings.contract.Place != contract.InBody {
		most = -1 // sent once at most: reading it into memory would serve nothing
	}
	return c.body.take(c.original, most, c.keyed())
}

func (c *call) repeatable() bool { return c.keyed() || isIdempotent(methodOf(c.original)) }

// run makes the call, inside the layers that there are.
func (c *call) run() (*http.Response, error) {
	c.transport.Budget.earn()
	c.book.enter()
	c.running = true
	defer c.book.leave()
	defer c.end()
	var next http.RoundTripper
	if c.in != nil && c.in.around != nil {
		next = c.in.around(roundTripper(c.loop))
	}
	if around := c.transport.Around; around != nil {
		if next == nil {
			next = roundTripper(c.loop)
		}
		next = around(next)
	}
	if next == nil {
		return c.finish(c.loop(&c.req))
	}
	c.layers = true
	if !c.body.once && c.body.kind != noBody {
		c.req.GetBody = c.body.reread
	}
	return c.finish(c.throughLayers(next))
}

// succeeded reports whether the call's answer says that the work is done.
func (c *call) succeeded() bool { return succeeded(c.ended.status, c.ended.means) }

// refuse ends a call before it has begun. Nothing was sent by it. What became of
// earlier sends of the Intent is told where the request may be the one that they
// were: an error that says "not executed" invites a new Intent.
func (c *call) refuse(reason error) error {
	defer c.release()
	if c.about == nil { // it was refused before its key was looked for
		c.about = new(ledger)
		if in, has := IntentFromContext(c.Context); has && in.usable() == nil {
			c.about = &in.book
		}
	}
	c.verdict.reason = reason
	e := c.failure()
	switch {
	case errors.Is(reason, ErrCrossOrigin), c.done() != nil && errors.Is(reason, cmp.Or(c.Err(), context.Canceled)):
	case errors.Is(reason, ErrIntentReused), c.about.untouched():
		e.Outcome, e.Status = NotExecuted, 0
	}
	return e
}

// failure is the error of a call that has no response.
func (c *call) failure() *Error {
	e := &Error{
		Result: c.result(), Reason: c.verdict.reason, Last: c.ended.err,
		Header: c.ended.header, Body: c.partial[:min(len(c.partial), maxErrorBody)],
	}
	if c.ended.means == contract.InProgress && e.Last == nil {
		e.Last = ErrInProgress
	}
	return e
}

// finish fixes what the call came to.
func (c *call) finish(resp *http.Response, err error) (*http.Response, error) {
	c.outcome, c.status = c.state()
	c.finished = true
	if err != nil {
		return nil, err
	}
	resp.Request = &c.req
	return resp, nil
}

// result is what the call has come to, so far or in the end.
func (c *call) result() Result {
	outcome, status := c.outcome, c.status
	if !c.finished {
		outcome, status = c.state()
	}
	return Result{
		Key: c.wire, Status: status, Replay: c.ended.replay,
		Outcome: outcome, Attempts: c.attempts, Sends: c.sent,
	}
}

// state is the outcome now, and the status that a Result has with it.
func (c *call) state() (Outcome, int) {
	own := 0
	if c.running && c.about == c.book {
		own = 1
	}
	outcome, status := c.about.state(own)
	if outcome != Answered {
		status = c.ended.status
	}
	return outcome, status
}

// end leaves of a call whose answer does not settle the Intent what a State needs,
// and gives back the caller's body.
func (c *call) end() {
	if c.keyed() {
		c.in.forget(&c.body, c.verdict.answer == settled)
	}
	c.release()
}

// release gives back the caller's body.
func (c *call) release() { _ = c.body.release() }
