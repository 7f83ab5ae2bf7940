package otelidem_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
	"github.com/idem-go/idem/otelidem"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// What only the user knows: which part of a path is an id, and which parameter of
// a query is secret.
func ExampleConfig() {
	server := start()
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	transport, err := otelidem.Instrument(&idem.Transport{Base: server.Transport()}, otelidem.Config{
		TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
		Template:       func(*http.Request) string { return "/orders/{id}" },
		Redact:         []string{"code"},
	})
	if err != nil {
		panic(err)
	}
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: transport})
	if err != nil {
		panic(err)
	}
	_, _ = client.Call(context.Background(), nil, http.MethodGet, "/orders/17?code=4711", nil, nil)
	for _, kv := range spans.Ended()[0].Attributes() {
		if kv.Key == "url.full" || kv.Key == "url.template" {
			fmt.Println(kv.Key, kv.Value.String())
		}
	}
	// Output:
	// url.full http://mock.test/orders/17?code=REDACTED
	// url.template /orders/{id}
}

// The journal's own numbers convert.
func ExampleJournalStats() {
	stats := otelidem.JournalStats(journal.Stats{Unknown: 2, Oldest: time.Hour, Window: 22 * time.Hour})
	fmt.Println(stats.Unknown, "unknown, the oldest for", stats.Oldest, "and to be settled within", stats.Window)
	// Output: 2 unknown, the oldest for 1h0m0s and to be settled within 22h0m0s
}
