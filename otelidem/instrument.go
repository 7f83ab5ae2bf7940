package otelidem

import (
	"net/http"
	"runtime/debug"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Config says where telemetry goes and what it may hold. The zero Config uses
// OpenTelemetry's global providers, as set when Instrument is called or later.
type Config struct {
	// TracerProvider makes the spans; nil: the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics; nil: the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes the trace into the headers of each attempt; nil: the
	// global one, which writes nothing unless it was set.
	Propagator propagation.TextMapPropagator
	// BaseTraces says that the Transport's Base makes a span and a measurement
	// of each attempt and writes the headers, as otelhttp.NewTransport does.
	// Then this package leaves that alone and makes the spans of calls only. Put
	// CountResends below otelhttp. false: Base does none of it.
	BaseTraces bool
	// Template returns the low-cardinality form of a request's path, such as
	// "/charges/{id}", for span names and url.template; an empty one stands for
	// none. It is called from several goroutines. nil: none.
	Template func(*http.Request) string
	// Methods are the known methods; another is _OTHER. nil: those of RFC 9110,
	// PATCH and QUERY.
	Methods []string
	// Redact are the query parameters whose values url.full does not show.
	// nil: those that the conventions name, which sign or grant access.
	Redact []string

	_ [0]func() // forbids comparison and literals without field names
}

// scope is the name of the instrumentation.
const scope = "github.com/idem-go/idem/otelidem"

// Instrument returns a Transport that works as t does and shows what it does. t
// is not changed; nil stands for the zero Transport. t's own Around, Base and
// OnAttempt stay in force: Around inside the span of the call, Base inside that of
// the attempt.
//
// The error is about metrics that cannot be made.
func Instrument(t *idem.Transport, cfg Config) (*idem.Transport, error) {
	if t == nil {
		t = &idem.Transport{}
	}
	tel, err := newTelemetry(cfg, t.Contract)
	if err != nil {
		return nil, err
	}
	return &idem.Transport{
		Base:           tel.base(t.Base),
		Around:         tel.around(t.Around),
		Contract:       t.Contract,
		MaxAttempts:    t.MaxAttempts,
		AttemptTimeout: t.AttemptTimeout,
		Backoff:        t.Backoff,
		MaxRetryAfter:  t.MaxRetryAfter,
		Budget:         t.Budget,
		MaxBody:        t.MaxBody,
		MaxResponse:    t.MaxResponse,
		IntentWins:     t.IntentWins,
		OnAttempt:      tel.onAttempt(t.OnAttempt),
	}, nil
}

// telemetry is what the parts of one instrumented Transport share.
type telemetry struct {
	instruments

	cfg        Config
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator // nil: the global one
	contract   attribute.KeyValue
}

func newTelemetry(cfg Config, c contract.Contract) (*telemetry, error) {
	made, err := newInstruments(cfg.meter())
	if err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = contract.Default().Name
	}
	tracers := cfg.TracerProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	return &telemetry{
		instruments: made,
		cfg:         cfg,
		tracer: tracers.Tracer(scope, trace.WithInstrumentationVersion(version()),
			trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: cfg.Propagator,
		contract:   attribute.String("idem.contract", c.Name),
	}, nil
}

func (cfg Config) meter() metric.Meter {
	meters := cfg.MeterProvider
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	return meters.Meter(scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(semconv.SchemaURL))
}

// version is that of this module as it was built, empty if that is not known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == scope {
			return m.Version
		}
	}
	return ""
}
