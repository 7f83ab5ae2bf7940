package otelidem_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// What the HTTP conventions ask of a request.
func TestRequestAttributes(t *testing.T) {
	for _, test := range []struct {
		name, method, url, host string
		config                  otelidem.Config
		span                    string
		want                    map[string]any
		absent                  []string
	}{
		{
			name: "https has a port of its own", method: "GET", url: "https://api.test/charges?a=1&b=2#part",
			span: "GET",
			want: map[string]any{
				"http.request.method": "GET", "server.address": "api.test", "server.port": int64(443),
				"url.full": "https://api.test/charges?a=1&b=2#part", "network.protocol.version": "1.1",
				"http.response.status_code": int64(200),
			},
			absent: []string{"http.request.method_original", "http.request.resend_count", "url.template", "error.type", "network.protocol.name"},
		}, {
			name: "http has another", method: "GET", url: "http://api.test/", span: "GET",
			want: map[string]any{"server.address": "api.test", "server.port": int64(80)},
		}, {
			name: "a port and an address of IPv6", method: "GET", url: "http://[::1]:8080/", span: "GET",
			want: map[string]any{"server.address": "::1", "server.port": int64(8080), "url.full": "http://[::1]:8080/"},
		}, {
			name: "the Host header says who is asked", method: "GET", url: "http://10.0.0.1:8080/", host: "api.test:81", span: "GET",
			want: map[string]any{"server.address": "api.test", "server.port": int64(81), "url.full": "http://10.0.0.1:8080/"},
		}, {
			name: "credentials", method: "GET", url: "https://me:secret@api.test/", span: "GET",
			want: map[string]any{"url.full": "https://REDACTED:REDACTED@api.test/"},
		}, {
			name: "a user without a password", method: "GET", url: "https://token@api.test/", span: "GET",
			want: map[string]any{"url.full": "https://REDACTED:REDACTED@api.test/"},
		}, {
			name: "query parameters that sign", method: "GET", span: "GET",
			url: "https://api.test/?b=1&X-Amz-Signature=s&sig=s&%73ig=s&sig&SIG=s&X-Amz-Credential=s&X-Amz-Security-Token=s&X-Goog-Signature=s&a=%20",
			want: map[string]any{"url.full": "https://api.test/?b=1&X-Amz-Signature=REDACTED&sig=REDACTED&%73ig=REDACTED&sig=REDACTED&SIG=s" +
				"&X-Amz-Credential=REDACTED&X-Amz-Security-Token=REDACTED&X-Goog-Signature=REDACTED&a=%20"},
		}, {
			name: "query parameters of one's own", method: "GET", url: "https://api.test/?email=a@b.test&sig=1", span: "GET",
			config: otelidem.Config{Redact: []string{"email"}},
			want:   map[string]any{"url.full": "https://api.test/?email=REDACTED&sig=1"},
		}, {
			name: "an unknown method", method: "BREW", url: "http://api.test/", span: "HTTP",
			want: map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "BREW"},
		}, {
			name: "a method is known by its case", method: "Get", url: "http://api.test/", span: "HTTP",
			want: map[string]any{"http.request.method": "_OTHER", "http.request.method_original": "Get"},
		}, {
			name: "no method is GET", method: "", url: "http://api.test/", span: "GET",
			want:   map[string]any{"http.request.method": "GET"},
			absent: []string{"http.request.method_original"},
		}, {
			name: "QUERY", method: "QUERY", url: "http://api.test/", span: "QUERY",
			want: map[string]any{"http.request.method": "QUERY"},
		}, {
			name: "known methods are the caller's", method: "BREW", url: "http://api.test/", span: "BREW",
			config: otelidem.Config{Methods: []string{"BREW"}},
			want:   map[string]any{"http.request.method": "BREW"},
		}, {
			name: "a template", method: "GET", url: "http://api.test/charges/7", span: "GET /charges/{id}",
			config: otelidem.Config{Template: func(*http.Request) string { return "/charges/{id}" }},
			want:   map[string]any{"url.template": "/charges/{id}", "url.full": "http://api.test/charges/7"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWatch(t)
			w.Template, w.Methods, w.Redact = test.config.Template, test.config.Methods, test.config.Redact
			transport := w.instrument(&idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
				return answer(r, http.StatusOK, "{}"), nil
			})})
			r, err := http.NewRequestWithContext(t.Context(), test.method, test.url, nil)
			require.NoError(t, err)
			r.Method, r.Host = test.method, test.host
			resp, err := transport.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			spans := w.ended()
			require.Len(t, spans, 2)
			assert.Equal(t, "idem "+test.span, spans[0].Name())
			assert.Equal(t, test.span, spans[1].Name())
			got := attribute.NewSet(spans[1].Attributes()...)
			for key, want := range test.want {
				value, ok := got.Value(attribute.Key(key))
				assert.True(t, ok, key)
				assert.Equal(t, want, value.AsInterface(), key)
			}
			for _, key := range test.absent {
				assert.False(t, got.HasValue(attribute.Key(key)), key)
			}
			for _, kv := range spans[0].Attributes() {
				assert.Contains(t, string(kv.Key), "idem.", "a span that encloses CLIENT spans has no attributes of HTTP")
			}
		})
	}
}

func TestProtocolVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{HTTP2: true})
		require.NoError(t, charge(t.Context(), w.newClient(server, &idem.Transport{})))
		assert.Contains(t, w.lines()[1], " version=2 ")
	})
}
