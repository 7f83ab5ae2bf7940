package otelidem_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/idem-go/idem/otelidem"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// start returns a mock server whose faults are met in turn.
func start(faults ...mockserver.Fault) *mockserver.Server {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		panic(err)
	}
	server.On("POST /charges").Then(faults...)
	return server
}

// soon is a Backoff for examples.
func soon(int) time.Duration { return time.Millisecond }

// call makes a charge through transport, and fails as an example does.
func call(server *mockserver.Server, transport *idem.Transport) {
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: transport})
	if err != nil {
		panic(err)
	}
	_, _ = client.Call(context.Background(), idem.Open(), http.MethodPost, "/charges", map[string]int{"amount": 500}, nil)
}

// printed writes what is printed of a span.
func printed(spans []trace.ReadOnlySpan) {
	for _, s := range spans {
		fmt.Print(s.Name())
		for _, kv := range s.Attributes() {
			switch kv.Key {
			case "idem.outcome", "idem.attempts", "http.request.resend_count", "error.type":
				fmt.Printf(" %s=%s", kv.Key, kv.Value.String())
			}
		}
		fmt.Println()
	}
}

// The answer to the first attempt is lost: two attempts, one call.
func Example() {
	server := start("reset@stored")
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))

	transport, err := otelidem.Instrument(&idem.Transport{Base: server.Transport(), Backoff: soon}, otelidem.Config{
		TracerProvider: tracers,
		Propagator:     propagation.TraceContext{},
		Template:       func(*http.Request) string { return "/charges" },
	})
	if err != nil {
		panic(err)
	}
	call(server, transport)
	printed(spans.Ended())
	// Output:
	// POST /charges error.type=connection_reset
	// POST /charges http.request.resend_count=1
	// idem POST /charges idem.outcome=answered idem.attempts=2
}

// The zero Config uses what otel.SetTracerProvider, otel.SetMeterProvider and
// otel.SetTextMapPropagator have set.
func ExampleInstrument() {
	transport, err := otelidem.Instrument(&idem.Transport{}, otelidem.Config{})
	if err != nil {
		panic(err)
	}
	client, err := idem.NewClient(idem.Config{BaseURL: "https://api.example.com", Transport: transport})
	fmt.Println(client != nil, err)
	// Output: true <nil>
}

// Where otelhttp is in use already, it makes the spans of the attempts. Below it,
// CountResends numbers them.
func ExampleCountResends() {
	server := start("503@received")
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))

	base := otelidem.CountResends(server.Transport()) // nil: http.DefaultTransport
	transport, err := otelidem.Instrument(&idem.Transport{
		Base:    otelhttp.NewTransport(base, otelhttp.WithTracerProvider(tracers)),
		Backoff: soon,
	}, otelidem.Config{TracerProvider: tracers, BaseTraces: true})
	if err != nil {
		panic(err)
	}
	call(server, transport)
	printed(spans.Ended())
	// Output:
	// HTTP POST error.type=503
	// HTTP POST http.request.resend_count=1
	// idem POST idem.outcome=answered idem.attempts=2
}

// logAttempt logs at a level that says what an attempt means: Debug, another one
// follows or the first has told the outcome; Info, it took more than one to tell
// it; Warn, nobody knows what became of it.
func logAttempt(logger *slog.Logger) func(context.Context, idem.Attempt) {
	return func(ctx context.Context, a idem.Attempt) {
		level := slog.LevelDebug
		switch {
		case a.Retry:
		case a.Outcome == idem.OutcomeUnknown:
			level = slog.LevelWarn
		case a.Number > 1:
			level = slog.LevelInfo
		}
		logger.Log(ctx, level, "attempt", "idem", a)
	}
}

// Logs need no OpenTelemetry.
func Example_slog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case "time", "host", "duration", "wait", "error": // differ from run to run
				return slog.Attr{}
			}
			return a
		},
	}))
	for _, faults := range [][]mockserver.Fault{{"503@received"}, {"reset@stored", "reset@head"}} {
		server := start(faults...)
		call(server, &idem.Transport{Base: server.Transport(), Backoff: soon, MaxAttempts: 2, OnAttempt: logAttempt(logger)})
		_ = server.Close()
	}
	// Output:
	// level=DEBUG msg=attempt idem.number=1 idem.call=1 idem.method=POST idem.sends=1 idem.status=503 idem.outcome=unknown
	// level=INFO msg=attempt idem.number=2 idem.call=1 idem.method=POST idem.sends=1 idem.status=201 idem.outcome=answered
	// level=DEBUG msg=attempt idem.number=1 idem.call=1 idem.method=POST idem.sends=1 idem.outcome=unknown
	// level=WARN msg=attempt idem.number=2 idem.call=1 idem.method=POST idem.sends=1 idem.outcome=unknown idem.reason="every attempt is used up"
}
