package otelidem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestObserveJournal(t *testing.T) {
	w := newWatch(t)
	var stats otelidem.JournalStats
	var failure error
	observed, err := otelidem.ObserveJournal(w.Config, func(context.Context) (otelidem.JournalStats, error) { return stats, failure })
	require.NoError(t, err)

	assert.Equal(t, map[string]float64{"idem.state=minted": 0, "idem.state=unknown": 0, "idem.state=stuck": 0}, w.points("idem.intents"))
	assert.Equal(t, map[string]float64{"": 0}, w.points("idem.oldest_unresolved_age"))
	assert.Empty(t, w.points("idem.key_window_remaining"), "no window runs")

	stats = otelidem.JournalStats{Minted: 1, Unknown: 2, Stuck: 3, Expired: 4, Oldest: time.Hour, Window: -time.Minute}
	assert.Equal(t, map[string]float64{"idem.state=minted": 1, "idem.state=unknown": 2, "idem.state=stuck": 3}, w.points("idem.intents"))
	assert.Equal(t, map[string]float64{"": 3600}, w.points("idem.oldest_unresolved_age"))
	assert.Equal(t, map[string]float64{"": -60}, w.points("idem.key_window_remaining"))
	assert.Equal(t, map[string]float64{"": 4}, w.points("idem.expired"))

	failure = errors.New("the database is gone")
	var all metricdata.ResourceMetrics
	require.ErrorIs(t, w.reader.Collect(t.Context(), &all), failure)

	failure = nil
	require.NoError(t, observed.Unregister())
	assert.Empty(t, w.points("idem.intents"))
}

func TestObserveJournalNeedsAReader(t *testing.T) {
	_, err := otelidem.ObserveJournal(otelidem.Config{}, nil)
	assert.ErrorContains(t, err, "otelidem: ")
}
