package otelidem

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

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
	c := &call{t: t.telemetry, ctx: ctx, span: span, start: time.Now(), before: resultOf(r).Attempts}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	err = errPanic // until it is known better
	defer func() { c.end(r, resp, err) }()
	return t.next.RoundTrip(r) //nolint:spancheck // as above
}

// A call is one INTERNAL span that is not ended yet. The attempts below find it in
// their context.
type call struct {
	t      *telemetry
	ctx    context.Context
	span   trace.Span
	start  time.Time
	before int                     // attempts of earlier hops, which the Transport counts as its own
	open   atomic.Pointer[attempt] // the last one that was answered
}

type callKey struct{}

// callFrom returns the call that ctx is part of, or nil.
func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// end ends the call, and the attempt whose body is handed over.
func (c *call) end(r *http.Request, resp *http.Response, err error) {
	if a := c.open.Load(); a != nil {
		a.end(nil)
	}
	res := c.result(r, resp, err)
	labels := []attribute.KeyValue{
		c.t.contract,
		attribute.Bool("idem.keyed", res.Key != ""),
		attribute.String("idem.outcome", res.Outcome.String()),
		attribute.String("idem.replay", res.Replay.String()),
	}
	if reason := c.reason(r, resp, err, res.Attempts); reason != "" {
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

// reason returns why the call ended, if not by a final answer, or "".
func (c *call) reason(r *http.Request, resp *http.Response, err error, attempts int) string {
	switch {
	case resp == nil:
		if e, ok := errors.AsType[*idem.Error](err); ok {
			err = e.Reason
		}
		return reasonOf(err)
	case resp.StatusCode >= http.StatusBadRequest:
		return reasonOf(c.gaveUp(r, attempts))
	case resp.StatusCode >= http.StatusMultipleChoices && resp.Header.Get("Location") != "":
		return "redirected"
	}
	return ""
}

// gaveUp returns why the attempt with this number was the last, which only the
// Intent knows. If another call with it has as many attempts at the same time
// there is no telling them apart, and no reason.
func (c *call) gaveUp(r *http.Request, number int) error {
	in, _ := idem.IntentFromContext(r.Context())
	if in == nil {
		return nil
	}
	var reason error
	found := 0
	for _, a := range in.Attempts() {
		if a.Number == number && !a.Retry && !a.Start.Before(c.start) {
			reason = a.Reason
			found++
		}
	}
	if found != 1 {
		return nil
	}
	return reason
}
