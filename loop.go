package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// loop makes the first attempt, and hands over to the retry loop only if that is
// to be repeated. Of the request that a layer passes on it takes the context and
// the headers.
func (c *call) loop(req *http.Request) (*http.Response, error) {
	c.layered = req.Context()
	if c.verdict = c.keepGap(); c.verdict.wait == 0 {
		c.once(req)
	}
	if c.verdict.retry {
		c.repeat(req)
	}
	if c.resp != nil {
		return c.resp, nil
	}
	c.failed = c.failure()
	return nil, c.failed
}

// repeat runs go-retryablehttp's loop, seeded with the attempt already made.
func (c *call) repeat(req *http.Request) {
	ctx, stop := c.untilDone()
	defer stop()
	r := &repetition{call: c, req: req}
	r.prepare(ctx)
	_, _ = r.loop.Do(&r.blank) //nolint:bodyclose // it is NoBody
	if r.waiting {
		c.stop(c.done())
	}
}

// A repetition is a loop of go-retryablehttp around a call. The loop waits,
// counts and repeats; it sees blanks in place of requests and responses, so that
// it cannot read, drain, close or change any of ours, and a client of its own, so
// that its giving up closes no connections. What it takes for the first attempt
// is a request without a URL, which its client refuses without looking further:
// two allocations less than an answer.
type repetition struct {
	call    *call
	req     *http.Request // as the layers pass it on
	waiting bool          // the loop is in a wait

	// Together, because they are made together.
	loop     retryablehttp.Client
	client   http.Client
	blank    retryablehttp.Request
	request  http.Request
	url      url.URL
	response http.Response
}

// prepare is apart from what runs the loop, so that calls wait without its 700
// bytes of stack.
func (r *repetition) prepare(ctx context.Context) {
	r.client.Transport = r
	r.request = *(&http.Request{Header: http.Header{}}).WithContext(ctx)
	r.url = url.URL{Scheme: "http", Host: "attempt"}
	r.blank.Request = &r.request
	r.loop = retryablehttp.Client{
		HTTPClient: &r.client,
		RetryMax:   r.call.settings.maxAttempts, // a guard: decide stops before
		CheckRetry: r.goOn,
		Backoff:    func(_, most time.Duration, _ int, _ *http.Response) time.Duration { return most },
	}
}

func (r *repetition) RoundTrip(*http.Request) (*http.Response, error) {
	r.waiting = false
	r.call.once(r.req)
	r.response = http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	return &r.response, nil
}

func (r *repetition) goOn(context.Context, *http.Response, error) (bool, error) {
	r.waiting = r.call.verdict.retry
	r.loop.RetryWaitMax = r.call.verdict.wait
	r.request.URL = &r.url
	return r.waiting, nil
}

// untilDone returns the context of the loop's waits: the caller's, which also
// ends with the old Request.Cancel.
func (c *call) untilDone() (context.Context, func()) { return withCancel(c.layered, c.original) }

// withCancel returns ctx so that it also ends with the old Request.Cancel of r.
func withCancel(ctx context.Context, r *http.Request) (context.Context, func()) {
	if r.Cancel == nil { //nolint:staticcheck // http.Client.Timeout still sets it
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-r.Cancel: //nolint:staticcheck // as above
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
	if isOver(windowEnd, now) {
		c.stop(ErrExpired)
		return
	}
	c.attempts++
	c.book.begin(now)
	a := c.newAttempt(req.Context(), now, windowEnd)
	a.req = *c.req.WithContext(a.sends.trace(a))
	areq := &a.req
	switch {
	case c.layers: // they may have changed them in place
		areq.Header = c.headers(req.Header, a.line[:])
	case a != &c.first: // the last one's may still be in use, or changed by Base
		areq.Header = c.headers(c.original.Header, a.line[:])
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
	if c.keyed() && v.answer != settled && !c.body.inMem() {
		c.in.remember(&c.req, &c.body)
	}
	end := time.Now()
	outcome := c.book.fold(sent, v.answer, e.status, end)
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
	c.tell(&Attempt{
		Number: c.attempts, Call: c.index, Method: methodOf(req), Host: c.req.URL.Host,
		Start: now, Duration: end.Sub(now), Sends: sent, Status: e.status, Err: e.err,
		Replay: e.replay, Outcome: outcome, Retry: v.retry, Wait: v.wait, Asked: e.asked(end), Reason: v.reason,
	})
}

func isTimeout(err error) bool {
	_, ok := errors.AsType[attemptTimeoutError](err)
	return ok
}

func (c *call) tell(a *Attempt) {
	if c.in != nil {
		c.in.record(a)
	}
	if c.transport.OnAttempt != nil {
		c.transport.OnAttempt(c.layered, *a)
	}
}

// decide asks the judgement, and the Budget after it.
func (c *call) decide(e ended) verdict {
	h := history{attempt: c.attempts, keyed: c.keyed(), repeatable: c.repeatable()}
	v := judge(&c.settings.contract, h, e)
	if !v.retry {
		return v // nearly every call ends here: no clock, no chance, no wait
	}
	h.now = time.Now()
	h.limit, h.maxWait, h.windowEnd = c.settings.maxAttempts, c.settings.maxRetryAfter, c.windowEnd(h.now)
	h.bound, h.draw = c.settings.backoff(c.attempts), rand.Float64()
	h.deadline, _ = c.layered.Deadline()
	if c.body.once {
		h.cannotRepeat = because(ErrNotRepeatable, "%s", c.body.whyOnce)
	}
	v = decide(&c.settings.contract, h, e)
	if v.retry && !c.transport.Budget.spend() {
		return verdict{reason: ErrOverBudget, answer: v.answer}
	}
	return v
}
