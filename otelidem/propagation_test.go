package otelidem_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

// Each attempt carries its own span in its headers, over one key and one body,
// and nothing of it gets into what the Intent is bound to: the fingerprint is that
// of a Transport without telemetry, and the same request in another trace is the
// same request.
func TestPropagation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("reset@stored", "503@head")
		transport := w.instrument(&idem.Transport{Base: server.Transport()})
		in := idem.Open()
		request := func(name string) *http.Request {
			ctx, span := w.TracerProvider.Tracer("test").Start(t.Context(), name)
			t.Cleanup(func() { span.End() })
			r, err := http.NewRequestWithContext(idem.WithIntent(ctx, in), http.MethodPost, server.URL+"/charges", strings.NewReader(`{"amount":1}`))
			require.NoError(t, err)
			r.Header.Set("Traceparent", "of the caller's caller")
			return r
		}
		first := request("first")
		resp, err := transport.RoundTrip(first)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "of the caller's caller", first.Header.Get("Traceparent"), "the caller's request is left alone")
		assert.Equal(t, "of the caller's caller", resp.Request.Header.Get("Traceparent"), "and so is the frozen one")
		assert.Equal(t, trace.SpanContextFromContext(first.Context()), trace.SpanContextFromContext(resp.Request.Context()))
		again, err := transport.RoundTrip(request("again"))
		require.NoError(t, err)
		require.NoError(t, again.Body.Close())
		assert.Equal(t, idem.Replayed, idem.ResultOf(again).Replay)

		var attempts []string
		for _, s := range w.ended() {
			if s.SpanKind() == trace.SpanKindClient {
				c := s.SpanContext()
				attempts = append(attempts, "00-"+c.TraceID().String()+"-"+c.SpanID().String()+"-01")
			}
		}
		var carried []string
		for _, r := range server.Requests(in.Key()) {
			carried = append(carried, r.Header.Values("Traceparent")...)
		}
		assert.Equal(t, attempts, carried)
		assert.Len(t, carried, 4)
		require.NoError(t, server.Verify(), "one key, one body")

		plain, err := idem.Adopt(in.Key(), in.Attempts()[0].Start)
		require.NoError(t, err)
		require.NoError(t, plain.Bind(request("plain")))
		assert.Equal(t, plain.State().Fingerprint, in.State().Fingerprint)
	})
}
