package idem_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntentShowsNoKey(t *testing.T) {
	intents := map[string]*idem.Intent{
		"opened":        idem.Open(),
		"adopted":       adopt(t, "customer-anna@example.com"),
		"UUID shape":    adopt(t, "annasmit-0123-secret-order-id-number"), // 36 bytes, but no UUID
		"short":         adopt(t, "k7"),
		"long":          adopt(t, strings.Repeat("secret", 42)),
		"child":         idem.Open().Child("charge"),
		"resumed":       writtenDown(t, toJSON(t, idem.Open())),
		"in upper case": adopt(t, strings.ToUpper(someKey)),
	}
	for name, in := range intents {
		t.Run(name, func(t *testing.T) {
			key := in.Key()
			most := 8 // digits of a UUID that may be shown; of others none
			if _, err := uuid.Parse(key); err != nil {
				most = 0
			}
			hidden := func(where, text string) {
				t.Helper()
				assert.NotContains(t, text, key[most:], where)
				if most == 0 {
					assert.NotContains(t, text, key[:min(4, len(key))], where)
				} else {
					assert.NotContains(t, text, key[:most+3], where)
				}
			}
			type holder struct{ In *idem.Intent }
			type private struct{ in *idem.Intent }
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%40v", "%T", "%p"} {
				hidden(verb, fmt.Sprintf(verb, in))
				hidden(verb+" in a struct", fmt.Sprintf(verb, holder{in}))
				hidden(verb+" in a private field", fmt.Sprintf(verb, private{in})) // fmt shows what is private without asking
				hidden(verb+" in a slice", fmt.Sprintf(verb, []*idem.Intent{in}))
				hidden(verb+" in a map", fmt.Sprintf(verb, map[string]any{"in": in}))
			}
			hidden("String", in.String())
			hidden("context", fmt.Sprint(idem.WithIntent(context.Background(), in)))
			hidden("error", fmt.Errorf("charge %v: %w", in, idem.ErrExhausted).Error())
			var text, asJSON bytes.Buffer
			for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&asJSON, nil))} {
				log.Info("charged", "intent", in, slog.Any("again", in), slog.Group("g", "in", in))
				log.With("intent", in).Info("charged")
			}
			hidden("slog text", text.String())
			hidden("slog JSON", asJSON.String())
			assert.Contains(t, asJSON.String(), `"outcome":"`)
			assert.Contains(t, asJSON.String(), `"attempts":0`)
			assert.Contains(t, text.String(), "intent.key=")
		})
	}
	assert.Equal(t, "idem.Intent(key 7f3c1a52…)", adopt(t, someKey).String())
	assert.Equal(t, "idem.Intent(key of 2 bytes)", adopt(t, "k7").String())
}

// The contexts of a call carry its key, and contexts get printed.
func TestIntentShowsNoKeyInContexts(t *testing.T) {
	row(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		var contexts []context.Context
		base := r.transport.Base
		r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(req *http.Request) (*http.Response, error) {
				contexts = append(contexts, req.Context())
				return next.RoundTrip(req)
			})
		}
		r.transport.Base = roundTrip(func(req *http.Request) (*http.Response, error) {
			contexts = append(contexts, req.Context())
			return base.RoundTrip(req)
		})
		r.transport.OnAttempt = func(ctx context.Context, a idem.Attempt) {
			contexts = append(contexts, ctx)
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", a, a, a), in.Key())
		}
		resp, _, err := r.post(t.Context(), in, "x")
		require.NoError(t, err)
		contexts = append(contexts, resp.Request.Context())
		for i, ctx := range contexts {
			for _, verb := range []string{"%v", "%+v", "%s"} {
				assert.NotContains(t, fmt.Sprintf(verb, ctx), in.Key(), "context %d, %s", i, verb)
			}
		}
		r.transport.Base = base // for the checks of the row
	}, created)
}
