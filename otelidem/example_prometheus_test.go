package otelidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/otelidem"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// metrics returns a MeterProvider and the handler of what it has measured, with
// names of underscores, as the dashboard has them.
func metrics() (*metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(
		exporter.WithRegisterer(registry),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
	)
	if err != nil {
		return nil, nil, err
	}
	return metric.NewMeterProvider(metric.WithReader(reader)), promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// What Prometheus finds after a call whose first answer was lost.
func Example_prometheus() {
	server := start("reset@stored")
	defer server.Close()
	meters, handler, err := metrics()
	if err != nil {
		panic(err)
	}
	cfg := otelidem.Config{MeterProvider: meters}
	transport, err := otelidem.Instrument(&idem.Transport{Base: server.Transport(), Backoff: soon}, cfg)
	if err != nil {
		panic(err)
	}
	if _, err := otelidem.ObserveJournal(cfg, func(context.Context) (otelidem.JournalStats, error) {
		return otelidem.JournalStats{Unknown: 1, Oldest: time.Minute, Window: 23 * time.Hour}, nil
	}); err != nil {
		panic(err)
	}
	call(server, transport)

	scrape := httptest.NewRecorder()
	handler.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, _ := io.ReadAll(scrape.Body)
	for line := range strings.Lines(string(text)) {
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok && kind != "target_info gauge\n" {
			fmt.Print(kind)
		}
	}
	// Output:
	// http_client_request_duration_seconds histogram
	// idem_attempt_duration_seconds histogram
	// idem_attempts_total counter
	// idem_calls_total counter
	// idem_expired_total counter
	// idem_intents gauge
	// idem_key_window_remaining_seconds gauge
	// idem_oldest_unresolved_age_seconds gauge
	// idem_resends_total counter
	// idem_wait_duration_seconds histogram
}
