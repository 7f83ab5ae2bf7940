package otelidem

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// base returns the Base of the instrumented Transport.
func (t *telemetry) base(next http.RoundTripper) http.RoundTripper {
	if t.cfg.BaseTraces {
		return next
	}
	return &attempts{below{next}, t}
}

// below is the Base of the Transport that was given; nil in it is
// http.DefaultTransport.
type below struct{ base http.RoundTripper }

func (b below) next() http.RoundTripper {
	if b.base == nil {
		return http.DefaultTransport
	}
	return b.base
}

// CloseIdleConnections closes those of the base, if it has such a method.
func (b below) CloseIdleConnections() {
	if c, ok := b.next().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// attempts makes a span and a measurement of each attempt.
type attempts struct {
	below

	*telemetry
}

// RoundTrip makes one attempt. What it came to the Transport tells OnAttempt,
// where the span is ended.
func (t *attempts) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	c, inCall := callFrom(r.Context())
	if inCall && c == nil { // of another instrumented Transport, which has this one for its Base
		return t.next().RoundTrip(r)
	}
	a, out := t.begin(r)
	if inCall {
		c.open = a
	} else { // a Transport without telemetry has this one for its Base
		err = errPanic // until it is known better
		defer func() { a.end(failure(a.status, err)) }()
	}
	resp, err = t.next().RoundTrip(out)
	if err == nil && resp != nil {
		a.answered(resp)
	}
	return resp, err
}

// An attempt is one CLIENT span that is not ended yet.
type attempt struct {
	t      *telemetry
	ctx    context.Context
	span   trace.Span
	start  time.Time
	labels []attribute.KeyValue // of the measurement
	status int
}

// begin starts the span of an attempt and returns the request to send, which has
// the trace in a copy of its headers.
func (t *telemetry) begin(r *http.Request) (*attempt, *http.Request) {
	method := t.method(r)
	labels := append(server(r), semconv.HTTPRequestMethodKey.String(method))
	attrs := slices.Concat(labels, []attribute.KeyValue{semconv.URLFull(t.fullURL(r.URL))})
	if method == other {
		attrs = append(attrs, semconv.HTTPRequestMethodOriginal(r.Method))
	}
	if n := resends(r); n > 0 {
		attrs = append(attrs, semconv.HTTPRequestResendCount(n))
	}
	name, template := t.spanName(r)
	if template != "" {
		attrs = append(attrs, semconv.URLTemplate(template))
	}
	start := time.Now()
	ctx, span := t.tracer.Start(r.Context(), name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	out := r.WithContext(context.WithValue(ctx, callKey{}, (*call)(nil))) // see RoundTrip
	if out.Header = r.Header.Clone(); out.Header == nil {
		out.Header = http.Header{}
	}
	propagator := t.propagator
	if propagator == nil {
		propagator = otel.GetTextMapPropagator()
	}
	propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
	return &attempt{t: t, ctx: ctx, span: span, start: start, labels: labels}, out
}

// answered notes the head of an answer.
func (a *attempt) answered(resp *http.Response) {
	a.status = resp.StatusCode
	a.labels = append(a.labels, semconv.HTTPResponseStatusCode(a.status))
	if v := protocol(resp); v != "" {
		a.labels = append(a.labels, semconv.NetworkProtocolVersion(v))
		a.span.SetAttributes(semconv.NetworkProtocolVersion(v))
	}
	a.span.SetAttributes(semconv.HTTPResponseStatusCode(a.status))
}

// end ends the attempt, with an error.type if it failed.
func (a *attempt) end(kind string) {
	if kind != "" {
		a.labels = append(a.labels, semconv.ErrorTypeKey.String(kind))
		a.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		a.span.SetStatus(codes.Error, "")
	}
	a.t.requests.RecordSet(a.ctx, time.Since(a.start).Seconds(), attribute.NewSet(a.labels...))
	a.span.End()
}
