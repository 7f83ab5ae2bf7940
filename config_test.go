package idem_test

import (
	"net/http"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewClient_AllFaultsAtOnce(t *testing.T) {
	bad := contract.Default()
	bad.MinKey, bad.MaxKey = 10, 5
	_, err := idem.NewClient(idem.Config{
		BaseURL:   "ftp://x",
		Header:    http.Header{"Idempotency-Key": {"k"}, "X-A": {"a\nSECRET"}, "X B": {"b"}},
		Transport: &idem.Transport{MaxAttempts: -1, MaxRetryAfter: -1, Contract: bad},
	})
	require.Error(t, err)
	for _, part := range []string{"BaseURL", "Idempotency-Key", "X-A", "X B", "MaxAttempts", "MaxRetryAfter", "Contract"} {
		require.Contains(t, err.Error(), part)
	}
	require.NotContains(t, err.Error(), "SECRET")
}

func TestNewClient_BaseURL(t *testing.T) {
	for _, good := range []string{"http://api", "https://api/", "https://api.example.com/v1", "http://[::1]:8080/a/b/", "HTTP://api"} {
		_, err := idem.NewClient(idem.Config{BaseURL: good})
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		"", "api", "//api", "/v1", "http:", "http://", "http:///v1", "http://:80", "ftp://api", "unix:///x", "mailto:a@b",
		"http://api?x=1", "http://api?", "http://api#f", "http://api/%zz", "http://a b", "http://api\n", "https:api", "http://api:port",
	} {
		c, err := idem.NewClient(idem.Config{BaseURL: bad})
		assert.Error(t, err, bad)
		assert.Nil(t, c, bad)
	}
}

func TestNewClient_Header(t *testing.T) {
	for name, header := range map[string]http.Header{
		"key":               {"Idempotency-Key": {"k"}},
		"key in lower case": {"idempotency-key": {"k"}},
		"LF":                {"X-A": {"a\nb"}},
		"CR":                {"X-A": {"a\rb"}},
		"NUL":               {"X-A": {"a\x00b"}},
		"DEL":               {"X-A": {"a\x7fb"}},
		"control byte":      {"X-A": {"a\x01b"}},
		"name with a space": {"X A": {"a"}},
		"name with a colon": {"X:A": {"a"}},
		"empty name":        {"": {"a"}},
		"name with umlaut":  {"X-\u00c4": {"a"}},
		"name with a slash": {"X/A": {"a"}},
	} {
		_, err := idem.NewClient(idem.Config{BaseURL: "http://api", Header: header})
		assert.Error(t, err, name)
	}
	t.Run("sent, copied, overridden by nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			header := http.Header{"X-Version": {"2024", "2025"}, "Accept": {"text/plain"}, "content-type": {"application/vnd.x+json"}, "X-Empty": {""}, "X-None": nil}
			c := r.api(t, func(cfg *idem.Config) { cfg.Header = header })
			header.Set("X-Version", "changed")
			header["X-Late"] = []string{"a"}
			_, err := c.Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			require.NoError(t, err)
			got := r.all()[0].header
			require.Equal(t, []string{"2024", "2025"}, got["X-Version"])
			require.Equal(t, []string{"text/plain"}, got["Accept"])
			require.Equal(t, []string{"application/vnd.x+json"}, got["Content-Type"])
			require.NotContains(t, got, "X-Late")
		}, created)
	})
	t.Run("the host, which net/http does not read from there", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			c := r.api(t, func(cfg *idem.Config) { cfg.Header = http.Header{"Host": {"virtual"}} })
			in := idem.Open()
			_, err := c.Call(t.Context(), in, "POST", "/x", 1, nil)
			require.NoError(t, err)
			require.Equal(t, 2, r.count())
		}, status(503), func(s *server, w http.ResponseWriter, q *http.Request, h hit) {
			assert.Equal(s.t, "virtual", q.Host)
			created(s, w, q, h)
		})
	})
	t.Run("two spellings of one name", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			c := r.api(t, func(cfg *idem.Config) { cfg.Header = http.Header{"X-A": {"1"}, "x-a": {"2"}} })
			_, err := c.Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"1", "2"}, r.all()[0].header["X-A"])
		}, created)
	})
}
