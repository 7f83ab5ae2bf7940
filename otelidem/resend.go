package otelidem

import (
	"net/http"

	"github.com/idem-go/idem"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// CountResends returns a RoundTripper for the place below otelhttp, which does
// not know that it is called for another attempt. It sets
// http.request.resend_count on the span of the request's context: absent on the
// first attempt, then 1, 2. base nil stands for http.DefaultTransport.
//
//	Base: otelhttp.NewTransport(otelidem.CountResends(nil))
func CountResends(base http.RoundTripper) http.RoundTripper { return &counter{below{base}} }

type counter struct{ below }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	span := trace.SpanFromContext(r.Context())
	if n := resends(r); n > 0 && !isCall(span, r) {
		span.SetAttributes(semconv.HTTPRequestResendCount(n))
	}
	return c.next().RoundTrip(r)
}

// isCall reports whether span is that of the call: otelhttp has made none.
func isCall(span trace.Span, r *http.Request) bool {
	c, _ := callFrom(r.Context())
	return c != nil && c.span.SpanContext().Equal(span.SpanContext())
}

// resends returns how often the request was sent before, redirects included.
func resends(r *http.Request) int { return idem.AttemptNumber(r.Context()) - 1 }
