package otelidem

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// JournalStats is what a store of Intents tells of itself, by the store's own
// clock. The zero value is that of an empty one. It has the fields of
// journal.Stats, which converts to it, so that this module needs no database.
type JournalStats struct {
	// Minted, Unknown and Stuck count the unresolved Intents by state: promised
	// and not sent, sent with an outcome that is not known, and unknown where
	// sending again cannot tell more.
	Minted, Unknown, Stuck int64
	// Expired counts the Intents, over all time, that were not settled when their
	// window had ended.
	Expired int64
	// Oldest is the time since the oldest unresolved Intent was minted; zero:
	// there is none.
	Oldest time.Duration
	// Window is the least time until the last attempt of an unresolved Intent may
	// start, negative if that time is over; zero: no window runs.
	Window time.Duration
}

// ObserveJournal makes gauges of what read returns, each time that metrics are
// collected. Of cfg it uses the MeterProvider. An error of read is told to
// OpenTelemetry's error handler, and that collection has none of the gauges.
//
// It goes on until Unregister is called on what it returns. Processes that share
// a table all report the same numbers: aggregate with max, not with sum.
func ObserveJournal(cfg Config, read func(context.Context) (JournalStats, error)) (metric.Registration, error) {
	if read == nil {
		return nil, errors.New("otelidem: ObserveJournal needs a function that reads")
	}
	m := cfg.meter()
	intents, err1 := m.Int64ObservableGauge("idem.intents", metric.WithUnit("{intent}"),
		metric.WithDescription("Unresolved Intents in the journal."))
	oldest, err2 := m.Float64ObservableGauge("idem.oldest_unresolved_age", metric.WithUnit("s"),
		metric.WithDescription("The age of the oldest unresolved Intent; 0: there is none."))
	window, err3 := m.Float64ObservableGauge("idem.key_window_remaining", metric.WithUnit("s"),
		metric.WithDescription("The least time until the last attempt of an unresolved Intent may start."))
	expired, err4 := m.Int64ObservableCounter("idem.expired", metric.WithUnit("{intent}"),
		metric.WithDescription("Intents that were not settled when their window had ended."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s, err := read(ctx)
		if err != nil {
			return err
		}
		for state, n := range map[string]int64{"minted": s.Minted, "unknown": s.Unknown, "stuck": s.Stuck} {
			o.ObserveInt64(intents, n, metric.WithAttributes(attribute.String("idem.state", state)))
		}
		o.ObserveFloat64(oldest, s.Oldest.Seconds())
		if s.Window != 0 {
			o.ObserveFloat64(window, s.Window.Seconds())
		}
		o.ObserveInt64(expired, s.Expired)
		return nil
	}, intents, oldest, window, expired)
}
