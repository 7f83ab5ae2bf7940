package otelidem

import (
	"context"
	"errors"
	"net/http"

	"github.com/idem-go/idem"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// around returns the Layer that makes a span of each call, outside of inner.
func (t *telemetry) around(inner idem.Layer) idem.Layer {
	return func(next http.RoundTripper) http.RoundTripper {
		if inner != nil {
			next = inner(next)
		}
		return &calls{next, t}
	}
}

// calls makes a span of each call.
type calls struct {
	next http.RoundTripper

	*telemetry
}

func (t *calls) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	name, _ := t.spanName(r)
	ctx, span := t.tracer.Start(r.Context(), "idem "+name, trace.WithAttributes(t.contract)) //nolint:spancheck // end ends it
	c := &call{t: t.telemetry, ctx: ctx, span: span, before: resultOf(r).Attempts}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	err = errPanic // until it is known better
	defer func() { c.end(r, resp, err) }()
	return t.next.RoundTrip(r) //nolint:spancheck // as above
}

// A call is one INTERNAL span that is not ended yet. The attempts below find it in
// their context. All of it runs in the caller's goroutine.
type call struct {
	t      *telemetry
	ctx    context.Context
	span   trace.Span
	before int      // attempts of earlier hops, which the Transport counts as its own
	open   *attempt // the one under way
	reason error    // why the last one was the last
}

type callKey struct{}

// callFrom returns the call that ctx is part of, if it is part of one; nil inside
// of an attempt.
func callFrom(ctx context.Context) (*call, bool) {
	c, ok := ctx.Value(callKey{}).(*call)
	return c, ok
}

// attempted ends the attempt under way, with what the Transport tells of it.
func (c *call) attempted(a idem.Attempt) {
	c.reason = a.Reason
	if c.open != nil {
		c.open.end(failure(a.Status, a.Err))
		c.open = nil
	}
}

// end ends the call, and an attempt whose end a panic has kept from being told.
func (c *call) end(r *http.Request, resp *http.Response, err error) {
	if c.open != nil {
		c.open.end(failure(c.open.status, errPanic))
	}
	res := c.result(r, resp, err)
	labels := []attribute.KeyValue{
		c.t.contract,
		attribute.Bool("idem.keyed", res.Key != ""),
		attribute.String("idem.outcome", res.Outcome.String()),
		attribute.String("idem.replay", res.Replay.String()),
	}
	if reason := c.why(resp, err); reason != "" {
		labels = append(labels, attribute.String("idem.reason", reason))
	}
	if resp == nil || resp.StatusCode >= http.StatusBadRequest {
		c.span.SetStatus(codes.Error, "")
	}
	c.span.SetAttributes(labels...)
	c.span.SetAttributes(attribute.Int("idem.attempts", res.Attempts), attribute.Int("idem.sends", res.Sends))
	c.t.calls.Add(c.ctx, 1, metric.WithAttributes(labels...))
	c.span.End()
}

// result is what the call comes to when the Transport has heard what the layers
// below this one say: their own store may have answered, or know more.
func (c *call) result(r *http.Request, resp *http.Response, err error) idem.Result {
	res := resultOf(r)
	if resp != nil && res.Attempts == c.before {
		res.Outcome, res.Replay = idem.Answered, idem.Replayed
	}
	if e, ok := errors.AsType[*idem.Error](err); ok && e.Outcome != idem.NotExecuted && res.Outcome != idem.Answered {
		res.Outcome = e.Outcome
	}
	return res
}

// resultOf returns what is known so far of the call that r is a request of.
func resultOf(r *http.Request) idem.Result { return idem.ResultOf(&http.Response{Request: r}) }

// why returns why the call ended, if not by a final answer, or "".
func (c *call) why(resp *http.Response, err error) string {
	switch {
	case resp == nil:
		if e, ok := errors.AsType[*idem.Error](err); ok {
			err = e.Reason
		}
		return reasonOf(err)
	case resp.StatusCode >= http.StatusBadRequest:
		return reasonOf(c.reason)
	case resp.StatusCode >= http.StatusMultipleChoices && resp.Header.Get("Location") != "":
		return "redirected"
	}
	return ""
}
