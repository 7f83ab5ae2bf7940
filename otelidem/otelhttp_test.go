package otelidem_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
)

// Over otelhttp the attempts are otelhttp's, once each, and numbered.
func TestOverOtelhttp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		w.BaseTraces = true
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("reset@stored", "cut@body after=5")
		client := w.newClient(server, &idem.Transport{Base: w.otelhttp(otelidem.CountResends(server.Transport()))})
		in := idem.Open()
		_, err := client.Call(t.Context(), in, http.MethodPost, "/charges", order{500}, nil)
		require.NoError(t, err)
		lines := w.lines()
		require.Len(t, lines, 4)
		assert.Equal(t, `INTERNAL "idem POST" keyed=true outcome=answered replay=replayed attempts=3 sends=3`, lines[0])
		for i, want := range []string{"", " resend_count=1 ", " resend_count=2 "} {
			assert.True(t, strings.HasPrefix(lines[i+1], `CLIENT "HTTP POST"`), lines[i+1])
			assert.Contains(t, lines[i+1], want)
			assert.Equal(t, want != "", strings.Contains(lines[i+1], "resend_count"))
			assert.Equal(t, w.ended()[0].SpanContext().SpanID(), w.ended()[i+1].Parent().SpanID())
		}
		assert.Equal(t, 3, total(w.points("idem.attempts")))
		traces := map[string]bool{}
		for _, r := range server.Requests(in.Key()) {
			traces[r.Header.Get("Traceparent")] = true
		}
		assert.Len(t, traces, 3, "otelhttp writes the headers")
	})
}

func (w *watch) otelhttp(next http.RoundTripper, options ...otelhttp.Option) http.RoundTripper {
	return otelhttp.NewTransport(next, append(options, otelhttp.WithTracerProvider(w.TracerProvider),
		otelhttp.WithMeterProvider(w.MeterProvider), otelhttp.WithPropagators(w.Propagator))...)
}

// Where otelhttp makes no span, the one of the call is not taken for it.
func TestCountResendsWithoutSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		w.BaseTraces = true
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("reset@stored")
		none := otelhttp.WithFilter(func(*http.Request) bool { return false })
		client := w.newClient(server, &idem.Transport{Base: w.otelhttp(otelidem.CountResends(server.Transport()), none)})
		require.NoError(t, charge(t.Context(), client))
		assert.Equal(t, []string{`INTERNAL "idem POST" keyed=true outcome=answered replay=replayed attempts=2 sends=2`}, w.lines())
	})
}

// Nothing is measured twice: of an attempt there is one measurement, ours or
// otelhttp's.
func TestOneMeasurement(t *testing.T) {
	for name, otelhttps := range map[string]bool{"ours": false, "otelhttp's": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				w.BaseTraces = otelhttps
				server := mockserver.New(t, mockserver.Config{})
				server.On("/").Then("503@received")
				transport := server.Transport()
				if otelhttps {
					transport = w.otelhttp(transport)
				}
				require.NoError(t, charge(t.Context(), w.newClient(server, &idem.Transport{Base: transport})))
				assert.Equal(t, 2, total(w.points("http.client.request.duration")))
			})
		})
	}
}

func total(points map[string]float64) (sum int) {
	for _, v := range points {
		sum += int(v)
	}
	return sum
}
