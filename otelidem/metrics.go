package otelidem

import (
	"context"
	"errors"

	"github.com/idem-go/idem"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
)

// instruments are what is counted and measured; the package documentation has
// the list.
type instruments struct {
	requests httpconv.ClientRequestDuration
	attempts metric.Int64Counter
	duration metric.Float64Histogram
	wait     metric.Float64Histogram
	resends  metric.Int64Counter
	calls    metric.Int64Counter
}

func newInstruments(m metric.Meter) (made instruments, err error) {
	var errs [6]error
	// The buckets are those that the conventions advise.
	short := metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
	long := metric.WithExplicitBucketBoundaries(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
	made.requests, errs[0] = httpconv.NewClientRequestDuration(m, short)
	made.attempts, errs[1] = m.Int64Counter("idem.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts that have ended."))
	made.duration, errs[2] = m.Float64Histogram("idem.attempt.duration", metric.WithUnit("s"), short,
		metric.WithDescription("How long an attempt took until its end was judged, reading of the body included."))
	made.wait, errs[3] = m.Float64Histogram("idem.wait.duration", metric.WithUnit("s"), long,
		metric.WithDescription("The waits before further attempts, as planned."))
	made.resends, errs[4] = m.Int64Counter("idem.resends", metric.WithUnit("{send}"),
		metric.WithDescription("What net/http has sent again by itself, within an attempt."))
	made.calls, errs[5] = m.Int64Counter("idem.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that have ended, by what is known of their effect."))
	return made, errors.Join(errs[:]...)
}

// onAttempt returns the OnAttempt that counts, ends the attempt's span, and tells
// next.
func (t *telemetry) onAttempt(next func(context.Context, idem.Attempt)) func(context.Context, idem.Attempt) {
	return func(ctx context.Context, a idem.Attempt) {
		t.count(ctx, a)
		if c, _ := callFrom(ctx); c != nil {
			c.attempted(a)
		}
		if next != nil {
			next(ctx, a)
		}
	}
}

func (t *telemetry) count(ctx context.Context, a idem.Attempt) {
	of := metric.WithAttributes(t.contract)
	labels := []attribute.KeyValue{t.contract, attribute.String("idem.outcome", a.Outcome.String())}
	if kind := failure(a.Status, a.Err); kind != "" {
		labels = append(labels, semconv.ErrorTypeKey.String(kind))
	}
	t.attempts.Add(ctx, 1, metric.WithAttributes(labels...))
	t.duration.Record(ctx, a.Duration.Seconds(), of)
	if a.Retry {
		t.wait.Record(ctx, a.Wait.Seconds(), of)
	}
	t.resends.Add(ctx, int64(max(a.Sends-1, 0)), of) // also nothing, so that the series is there
}
