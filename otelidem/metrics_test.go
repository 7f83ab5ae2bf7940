package otelidem_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// What a few calls count.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{Contract: contract.Stripe()})
		server.On("/lost").Then("reset@stored", "503@received retry-after=10")
		server.On("/down").Always("503@received")
		client := w.newClient(server, &idem.Transport{Contract: contract.Stripe(), MaxAttempts: 3})
		for _, path := range []string{"/lost", "/plain", "/down"} {
			_, _ = client.Call(t.Context(), idem.Open(), http.MethodPost, path, order{500}, nil)
		}
		assert.Equal(t, map[string]float64{
			"idem.contract=stripe,idem.outcome=answered":                            2,
			"error.type=503,idem.contract=stripe,idem.outcome=unknown":              4,
			"error.type=connection_reset,idem.contract=stripe,idem.outcome=unknown": 1,
		}, w.points("idem.attempts"))
		assert.Equal(t, map[string]float64{"idem.contract=stripe": 7}, w.points("idem.attempt.duration"))
		assert.Equal(t, map[string]float64{"idem.contract=stripe": 4}, w.points("idem.wait.duration"))
		assert.Equal(t, map[string]float64{"idem.contract=stripe": 0}, w.points("idem.resends"))
		assert.Equal(t, map[string]float64{
			"idem.contract=stripe,idem.keyed=true,idem.outcome=answered,idem.replay=unknown":                      1,
			"idem.contract=stripe,idem.keyed=true,idem.outcome=answered,idem.replay=replayed":                     1,
			"idem.contract=stripe,idem.keyed=true,idem.outcome=unknown,idem.reason=exhausted,idem.replay=unknown": 1,
		}, w.points("idem.calls"))
		assert.Equal(t, 7, total(w.points("http.client.request.duration")))
		var waited float64
		for _, m := range w.metrics() {
			data, ok := m.Data.(metricdata.Histogram[float64])
			switch {
			case !ok:
			case m.Name == "idem.wait.duration":
				waited = data.DataPoints[0].Sum
			default:
				assert.Equal(t, "s", m.Unit)
				assert.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}, data.DataPoints[0].Bounds)
			}
		}
		assert.Greater(t, waited, 10.0, "seconds")
	})
}

// net/http sends a request with a key again on the next connection when a pooled
// one turns out to be dead; that is no attempt.
func TestResends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{Idle: time.Minute})
		client := w.newClient(server, &idem.Transport{})
		require.NoError(t, charge(t.Context(), client))
		server.On("POST /charges").Then("reset@received send=1")
		require.NoError(t, charge(t.Context(), client))
		assert.Equal(t, map[string]float64{"idem.contract=default": 1}, w.points("idem.resends"))
		assert.Equal(t, 2, total(w.points("idem.attempts")))
		assert.Contains(t, strings.Join(w.lines(), "\n"), "attempts=1 sends=2")
	})
}

// The number of series depends on what can happen and not on how much of it does:
// many keys, paths and Intents make no more of them, every label is on the list,
// and neither a label nor an attribute of a span holds a key.
func TestCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Sometimes(0.6, 7, "reset@stored", "503@received", "429@received retry-after=1", "cut@body after=3", "drop@received", "402@received")
		client := w.newClient(server, &idem.Transport{})
		var keys []string
		calls := func(from, to int) {
			for i := from; i < to; i++ {
				in, err := idem.Derive("test", fmt.Sprint(i), time.Now())
				require.NoError(t, err)
				keys = append(keys, in.Key())
				_, _ = client.Call(t.Context(), in, http.MethodPost, fmt.Sprintf("/charges%d?customer=%d", i, i), order{i}, nil)
			}
		}
		series := func() (n int) {
			for _, m := range w.metrics() {
				n += len(w.points(m.Name))
			}
			return n
		}
		calls(0, 300)
		before := series()
		calls(300, 400)
		assert.Equal(t, before, series())

		known := []string{
			"error.type", "http.request.method", "http.response.status_code", "network.protocol.version", "server.address", "server.port",
			"idem.contract", "idem.keyed", "idem.outcome", "idem.reason", "idem.replay",
		}
		for _, m := range w.metrics() {
			for point := range w.points(m.Name) {
				for pair := range strings.SplitSeq(point, ",") {
					label, value, _ := strings.Cut(pair, "=")
					assert.Contains(t, known, label, m.Name)
					assert.False(t, slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(value, key[:8]) }), pair)
				}
			}
		}
		for _, s := range w.ended() {
			for _, kv := range append(s.Attributes(), attribute.String("name", s.Name())) {
				value := kv.Value.String()
				assert.False(t, slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(value, key[:8]) }), kv)
			}
		}
	})
}
