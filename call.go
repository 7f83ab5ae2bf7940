package idem

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
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
	req       *http.Request // the frozen copy
	body      source
	header    string    // canonical name of the key header; empty: the request has none
	wire      string    // the key as it goes out
	line      [1]string // the same, as a header has it; written once

	in    *Intent // nil: without a key
	book  *ledger // the Intent's, or own
	own   ledger
	about *ledger // whose outcome is reported: book, or that of the write a GET was redirected from
	index int     // of the Intent's calls

	firstNumber int // of this hop's first attempt
	attempts    int // over all hops
	sent        int // over all hops

	first   attempt // backs the first one
	ended   ended   // the last attempt
	verdict verdict
	resp    *http.Response  // to hand over
	failed  *Error          // what the loop returned
	layered context.Context // what the layers passed on: a child of the call, or the call
	partial []byte          // of an answer that was cut
	waiting bool            // the loop is in a wait
	seeded  bool            // the loop knows of the first attempt

	running  bool // counted in book
	finished bool
	final    Result
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

func (c *call) keyed() bool { return c.in != nil }

// begin finds the request's key, freezes the request and binds the Intent to it.
// Nothing is sent before it succeeds.
func (c *call) begin() (err error) {
	req := c.original
	c.book = &c.own
	c.about = c.book
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
	if err := c.findKey(); err != nil {
		return err
	}
	if !keyInBody {
		if err := c.takeBody(); err != nil {
			return err
		}
	}
	c.req = req.WithContext(c)
	c.req.Header = c.headers(req.Header, c.line[:])
	if c.keyed() {
		// A hop of a redirect is no other request than the one it comes from.
		if err := c.in.bind(c.req, &c.body, c.attempts > 0, c.transport.Around != nil); err != nil {
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
	return c.body.take(c.original, most)
}

// checkURL refuses what no Base can send.
func checkURL(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("idem: the request has no URL")
	case u.Scheme == "":
		return errors.New("idem: the request's URL has no scheme")
	case u.Host == "" && (u.Scheme == "http" || u.Scheme == "https"):
		return errors.New("idem: the request's URL has no host")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("idem: the request's URL has a host that cannot be")
	}
	return nil
}

// findKey finds out whether the request carries a key, and which.
func (c *call) findKey() error {
	req, k := c.original, &c.settings.contract
	in, has := IntentFromContext(c.Context)
	if has {
		if err := in.usable(); err != nil {
			return err
		}
	}
	if k.Place == contract.InHeader {
		c.header = textproto.CanonicalMIMEHeaderKey(k.Header)
	}
	previous := previousCall(req)
	if !k.Keys(methodOf(req)) {
		if has && k.Keys(strings.ToUpper(req.Method)) {
			return errors.New("idem: the method is not in upper case, so that it would carry no key")
		}
		if previous != nil {
			c.about = previous.about // a GET that a write was redirected to is not its answer
		}
		return nil
	}
	carried, err := c.carried(has)
	if err != nil {
		return err
	}
	switch {
	case previous != nil && previous.keyed() && (!has || in == previous.in):
		in = previous.in
		c.attempts, c.sent = previous.attempts, previous.sent
		if from, to := originOf(previous.original), originOf(req); from != to {
			c.use(in)
			c.wire = previous.wire
			return because(ErrCrossOrigin, "from %s to %s", from, to)
		}
	case !has && carried == "":
		if previous != nil && !previous.keyed() { // to its caller, one request
			c.book, c.about = previous.book, previous.about
			c.attempts, c.sent = previous.attempts, previous.sent
		}
		return nil
	case !has:
		key, err := k.Unwire(carried)
		if err != nil {
			return because(ErrInvalidKey, "%s", strings.TrimPrefix(err.Error(), "contract: "))
		}
		if in, err = Adopt(key, time.Now()); err != nil {
			return err
		}
	}
	c.use(in)
	if c.wire, err = k.Wire(in.Key()); err != nil {
		return because(ErrInvalidKey, "%s", strings.TrimPrefix(err.Error(), "contract: "))
	}
	c.line[0] = c.wire
	if carried != "" && carried != c.wire && (c.header == "" || carried != in.Key()) {
		return ErrKeyConflict
	}
	return nil
}

// use makes the call one of in.
func (c *call) use(in *Intent) {
	c.in, c.book, c.about = in, &in.book, &in.book
	c.index = in.nextCall()
}

// carried returns the key header that the caller has put on the request, of
// whatever case; empty ones count as absent, and so does the nil UUID under an
// Intent: both are what code generators send for a parameter that was left out.
func (c *call) carried(underIntent bool) (string, error) {
	if c.header == "" {
		return c.keyInBody(underIntent)
	}
	found := ""
	for name, values := range c.original.Header {
		if !strings.EqualFold(name, c.header) {
			continue
		}
		for _, v := range values {
			switch {
			case v == "", underIntent && isNilUUID(v), v == found:
			case isNilUUID(v):
				return "", because(ErrInvalidKey, "the nil UUID")
			case underIntent && c.transport.IntentWins:
			case found != "":
				return "", because(ErrKeyConflict, "it has two")
			default:
				found = v
			}
		}
	}
	return found, nil
}

// keyInBody returns the key that the body carries, where the contract puts it
// there. It is verified, never put in: a body is the caller's.
func (c *call) keyInBody(underIntent bool) (string, error) {
	if c.body.once {
		return "", because(ErrNotRepeatable, "the contract puts the key into the body, and %s", c.body.whyOnce)
	}
	var body bytes.Buffer
	if _, err := c.body.writeTo(&body); err != nil {
		return "", &bodyError{err}
	}
	key, err := c.settings.contract.FromBody(body.Bytes())
	if err != nil {
		return "", because(ErrKeyConflict, "%s", plain(err))
	}
	if key == "" && underIntent {
		return "", because(ErrInvalidKey, "the body must carry it at %q", c.settings.contract.Header)
	}
	return key, nil
}

// headers returns a copy of from that has the key on exactly one line, which is
// line, or on none. Values are shared, but an append to them makes a copy.
func (c *call) headers(from http.Header, line []string) http.Header {
	h := make(http.Header, len(from)+1)
	for name, values := range from {
		if c.header == "" || !strings.EqualFold(name, c.header) {
			h[name] = slices.Clip(values)
		}
	}
	if c.keyed() && c.header != "" {
		h[c.header] = line
	}
	return h
}

func (c *call) repeatable() bool { return c.keyed() || isIdempotent(methodOf(c.original)) }

// run makes the call, inside the layers that there are.
func (c *call) run() (*http.Response, error) {
	c.transport.Budget.earn()
	c.book.enter()
	c.running = true
	defer c.book.leave()
	defer c.release()
	var next http.RoundTripper
	if c.keyed() && c.in.around != nil {
		next = c.in.around(roundTripper(c.loop))
	}
	if around := c.transport.Around; around != nil {
		if next == nil {
			next = roundTripper(c.loop)
		}
		next = around(next)
	}
	if next == nil {
		return c.finish(c.loop(c.req))
	}
	if !c.body.once && c.body.kind != noBody {
		c.req.GetBody = c.body.reread
	}
	return c.finish(c.throughLayers(next))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// throughLayers makes the call and brings what the layers return into form.
func (c *call) throughLayers(next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(c.req)
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, c.layersError(err)
	case resp == nil:
		return nil, c.layersError(errors.New("idem: a Layer returned neither a response nor an error"))
	case c.attempts == 0: // from the layer's own store
		c.fromStore(resp)
	}
	return resp, nil
}

// layersError brings the error of a layer into form. The loop's own passes. What
// another *Error says of the outcome is what the layer's store knows.
func (c *call) layersError(err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && e == c.failed:
		return err
	case ok:
		switch e.Outcome {
		case OutcomeUnknown:
			c.book.disown()
		case Answered:
			c.book.settle(e.Status)
		}
		c.verdict.reason, c.ended.err = e.Reason, e.Last
		if e.Header != nil {
			c.ended.header = e.Header
		}
	default:
		c.verdict.reason = err
	}
	return c.failure()
}

// fromStore takes the answer of a layer that did not send.
func (c *call) fromStore(resp *http.Response) {
	k := &c.settings.contract
	c.ended = ended{how: answered, status: resp.StatusCode, header: resp.Header, replay: Replayed}
	var prefix []byte
	if k.Peeks(resp.StatusCode) && resp.Body != nil {
		prefix, _ = peek(resp) // the caller meets the same error
	}
	c.ended.means = k.Classify(resp.StatusCode, resp.Header, prefix)
	c.book.settle(resp.StatusCode)
}

// succeeded reports whether the call's answer says that the work is done.
func (c *call) succeeded() bool { return succeeded(c.ended.status, c.ended.means) }

// loop makes the first attempt, and hands over to the retry loop only if that is
// to be repeated. Of the request that a layer passes on it takes the context and
// the headers.
func (c *call) loop(req *http.Request) (*http.Response, error) {
	c.firstNumber = c.attempts + 1
	c.layered = req.Context()
	c.once(req)
	if c.verdict.retry {
		c.repeat(req)
	}
	if c.resp != nil {
		return c.resp, nil
	}
	c.failed = c.failure()
	return nil, c.failed
}

// repeat runs go-retryablehttp's loop, seeded with the attempt already made. The
// loop waits, counts and repeats; it sees blanks in place of requests and
// responses, so that it cannot read, drain, close or change any of ours, and a
// client of its own, so that its giving up closes no connections.
func (c *call) repeat(req *http.Request) {
	ctx, stop := c.untilDone()
	defer stop()
	loop := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			if c.seeded {
				c.waiting = false
				c.once(req)
			}
			c.seeded = true
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}, nil
		})},
		RetryMax: c.settings.maxAttempts, // a guard: decide stops before
		CheckRetry: func(context.Context, *http.Response, error) (bool, error) {
			c.waiting = c.verdict.retry
			return c.verdict.retry, nil
		},
		Backoff: func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return c.verdict.wait },
	}
	blank := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "attempt"}, Header: http.Header{}}
	_, _ = loop.Do(&retryablehttp.Request{Request: blank.WithContext(ctx)}) //nolint:bodyclose // it is NoBody
	if c.waiting {
		c.stop(c.done())
	}
}

// untilDone returns the context of the loop's waits: the caller's, which also
// ends with the old Request.Cancel.
func (c *call) untilDone() (context.Context, func()) {
	if c.original.Cancel == nil { //nolint:staticcheck // http.Client.Timeout still sets it
		return c.layered, func() {}
	}
	ctx, cancel := context.WithCancel(c.layered)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-c.original.Cancel: //nolint:staticcheck // as above
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-gone }
}

// done returns why the caller, or a layer, wants no more, or nil.
func (c *call) done() error {
	switch {
	case c.Err() != nil:
		return causeOf(c.Context)
	case c.layered != nil && c.layered.Err() != nil:
		return causeOf(c.layered)
	}
	select {
	case <-c.original.Cancel: //nolint:staticcheck // http.Client.Timeout still sets it
		return context.Canceled
	default:
		return nil
	}
}

// stop ends the call before another attempt.
func (c *call) stop(reason error) {
	c.resp = nil
	c.verdict = verdict{reason: reason}
}

// once makes one attempt.
func (c *call) once(req *http.Request) {
	if done := c.done(); done != nil {
		c.stop(done)
		return
	}
	now := time.Now()
	windowEnd := c.windowEnd(now)
	if !windowEnd.IsZero() && !now.Before(windowEnd) {
		c.stop(ErrExpired)
		return
	}
	c.attempts++
	c.book.begin(now)
	a := c.newAttempt(req.Context(), now, windowEnd)
	areq := c.req.WithContext(a.sends.trace(a, a))
	switch {
	case req != c.req: // a layer's
		areq.Header = c.headers(req.Header, []string{c.wire})
	case c.attempts > c.firstNumber: // the last one's may still be in use, or changed by Base
		areq.Header = c.headers(c.original.Header, []string{c.wire})
	}
	c.stampFirstSent(areq.Header)
	// A connection on which an attempt ran out of time may be dead without a
	// sign. HTTP/1 drops it; HTTP/2 would use it again, unless told to close.
	areq.Close = areq.Close || isTimeout(c.ended.err)
	resp, e, sent := a.roundTrip(areq)
	c.sent += sent
	var v verdict
	if resp != nil {
		e, v = a.judgeAnswer(resp, e)
	} else {
		v = c.decide(e)
	}
	if c.keyed() && (v.answer != settled || c.attempts > 1) {
		c.in.remember(c.req, &c.body)
	}
	outcome := c.book.fold(sent, v.answer, e.status)
	c.ended, c.verdict, c.resp = e, v, nil
	switch {
	case resp == nil:
		a.over()
	case v.retry, e.how != answered:
		a.discard(resp)
	default:
		a.handOver(resp)
		c.resp = resp
	}
	c.tell(Attempt{
		Number: c.attempts, Call: c.index, Method: methodOf(req), Host: c.req.URL.Host,
		Start: now, Duration: time.Since(now), Sends: sent, Status: e.status, Err: e.err,
		Replay: e.replay, Outcome: outcome, Retry: v.retry, Wait: v.wait, Reason: v.reason,
	})
}

func isTimeout(err error) bool {
	_, ok := errors.AsType[attemptTimeoutError](err)
	return ok
}

func (c *call) tell(a Attempt) {
	if c.keyed() {
		c.in.record(a)
	}
	if c.transport.OnAttempt != nil {
		c.transport.OnAttempt(c.Context, a)
	}
}

// stampFirstSent writes the earliest time at which the key can have been sent,
// where the contract asks for that. It is the same on every attempt, and in every
// process that knows the Intent by the same name.
func (c *call) stampFirstSent(h http.Header) {
	if name := c.settings.contract.FirstSentHeader; name != "" && c.keyed() {
		h.Set(name, c.in.sentSince(c.book.firstSend()).UTC().Format(http.TimeFormat))
	}
}

// decide asks the judgement, and the Budget after it.
func (c *call) decide(e ended) verdict {
	now := time.Now()
	h := history{
		attempt: c.attempts, limit: c.settings.maxAttempts,
		keyed: c.keyed(), repeatable: c.repeatable(),
		now: now, maxWait: c.settings.maxRetryAfter, windowEnd: c.windowEnd(now),
		bound: c.settings.backoff(c.attempts), draw: rand.Float64(),
	}
	h.deadline, _ = c.layered.Deadline()
	if c.body.once {
		h.cannotRepeat = because(ErrNotRepeatable, "%s", c.body.whyOnce)
	}
	v := decide(&c.settings.contract, h, e)
	if v.retry && !c.transport.Budget.spend() {
		return verdict{reason: ErrOverBudget, answer: v.answer}
	}
	return v
}

// windowEnd is when the last attempt may start and the last re-send may leave:
// the end of the window less a margin for what is still on its way then. Zero
// means never.
func (c *call) windowEnd(now time.Time) time.Time {
	window := c.settings.contract.Window
	if !c.keyed() || window < 0 {
		return time.Time{}
	}
	margin := min(max(c.settings.attemptTimeout, 2*time.Minute), window/2)
	var age time.Duration
	for _, start := range []time.Time{c.in.since, c.book.firstSend()} {
		if !start.IsZero() {
			age = max(age, ageOf(start, now))
		}
	}
	return now.Add(window - margin - age)
}

// ageOf is the time since start by the clock that says more: the monotonic clock
// stands still while a machine sleeps, the wall clock may be set back.
func ageOf(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}

// refuse ends a call before it has begun. Nothing was sent by it; what became of
// the Intent's bound request is told only where that is the request at hand.
func (c *call) refuse(reason error) error {
	defer c.release()
	c.verdict.reason = reason
	e := c.failure()
	switch {
	case errors.Is(reason, ErrCrossOrigin), c.done() != nil && errors.Is(reason, cmp.Or(c.Err(), context.Canceled)):
	default:
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
	c.final, c.finished = c.result(), true
	if err != nil {
		return nil, err
	}
	resp.Request = c.req
	return resp, nil
}

// result is what the call has come to, so far or in the end.
func (c *call) result() Result {
	if c.finished {
		return c.final
	}
	own := 0
	if c.running && c.about == c.book {
		own = 1
	}
	outcome, status := c.about.state(own)
	if c.ended.status != 0 {
		status = c.ended.status
	}
	return Result{
		Key: c.wire, Status: status, Replay: c.ended.replay,
		Outcome: outcome, Attempts: c.attempts, Sends: c.sent,
	}
}

// release gives back the caller's body.
func (c *call) release() { _ = c.body.release() }

// previousCall is the call of the hop that redirected to req.
func previousCall(req *http.Request) *call {
	if req.Response == nil || req.Response.Request == nil {
		return nil
	}
	return callOf(req.Response.Request.Context())
}

// originOf is scheme, host and port (RFC 6454, 4).
func originOf(req *http.Request) string {
	u := req.URL
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}
