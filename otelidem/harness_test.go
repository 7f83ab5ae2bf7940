package otelidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A watch is a pair of providers that keep in memory what they get.
type watch struct {
	otelidem.Config

	t      *testing.T
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
}

// newWatch returns a watch that fails the test if it ends with an open span.
func newWatch(t *testing.T) *watch {
	w := &watch{t: t, spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	w.TracerProvider = trace.NewTracerProvider(trace.WithSpanProcessor(w.spans))
	w.MeterProvider = metric.NewMeterProvider(metric.WithReader(w.reader))
	w.Propagator = propagation.TraceContext{}
	t.Cleanup(func() {
		assert.Len(t, w.spans.Ended(), len(w.spans.Started()), "a span was left open, or ended twice")
	})
	return w
}

// instrument returns t as the watch sees it.
func (w *watch) instrument(t *idem.Transport) *idem.Transport {
	w.t.Helper()
	instrumented, err := otelidem.Instrument(t, w.Config)
	require.NoError(w.t, err)
	return instrumented
}

// ended returns the spans, in the order in which they began.
func (w *watch) ended() []trace.ReadOnlySpan {
	spans := w.spans.Ended()
	order := map[string]int{}
	for i, s := range w.spans.Started() {
		order[s.SpanContext().SpanID().String()] = i
	}
	slices.SortFunc(spans, func(a, b trace.ReadOnlySpan) int {
		return order[a.SpanContext().SpanID().String()] - order[b.SpanContext().SpanID().String()]
	})
	return spans
}

// lines writes each span as a line: what it is called, whether it failed, and its
// attributes without those that are the same in every test.
func (w *watch) lines() (lines []string) {
	for _, s := range w.ended() {
		line := fmt.Sprintf("%s %q", strings.ToUpper(s.SpanKind().String()), s.Name())
		if code := s.Status().Code.String(); code != "Unset" {
			line += " " + code
		}
		if ours := s.InstrumentationScope().Name == "github.com/idem-go/idem/otelidem"; ours {
			assert.Empty(w.t, s.Status().Description)
			assert.Empty(w.t, s.Events())
		}
		for _, kv := range s.Attributes() {
			switch key, _, _ := strings.Cut(string(kv.Key), "."); {
			case key == "server", key == "url", kv.Key == "http.request.method", kv.Key == "idem.contract":
			default:
				line += fmt.Sprintf(" %s=%s", short(kv.Key), kv.Value.String())
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// short is the last part of an attribute's name, which is unique here.
func short(key attribute.Key) string { return string(key[strings.LastIndex(string(key), ".")+1:]) }

// points returns the series of a metric, each as its attributes and its value: the
// sum, or the number of measurements.
func (w *watch) points(name string) map[string]float64 {
	w.t.Helper()
	found := map[string]float64{}
	add := func(set attribute.Set, v float64) { found[set.Encoded(attribute.DefaultEncoder())] += v }
	for _, m := range w.metrics() {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, float64(p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, float64(p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, float64(p.Count))
			}
		default:
			w.t.Fatalf("%s is a %T", name, data)
		}
	}
	return found
}

func (w *watch) metrics() (metrics []metricdata.Metrics) {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(w.t, w.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		metrics = append(metrics, scope.Metrics...)
	}
	return metrics
}

// newClient returns a client of the server that the watch sees.
func (w *watch) newClient(server *mockserver.Server, t *idem.Transport) *idem.Client {
	w.t.Helper()
	if t.Base == nil {
		t.Base = server.Transport()
	}
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: w.instrument(t)})
	require.NoError(w.t, err)
	return client
}

type order struct {
	Amount int `json:"amount"`
}

// charge makes a call with an Intent of its own.
func charge(ctx context.Context, client *idem.Client) error {
	_, err := client.Call(ctx, idem.Open(), http.MethodPost, "/charges", order{500}, nil)
	return err
}

// base is a RoundTripper of a function.
type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is the answer of a stub.
func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
