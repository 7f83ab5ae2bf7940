package idem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const someKey = "7f3c1a52-9e04-4d2b-8a61-0c5de7b9f013"

// Values that were computed by another implementation of RFC 9562, version 5:
// UUIDv5(UUIDv5(cf4e9cf3-0f6f-5ab3-ab9a-44981106f4ef, namespace), name). They
// hold for ever: another value is another key, and another charge.
var derivedKeys = []struct{ namespace, name, key string }{
	{"shop/charge", "order-1", "b045af51-4337-501f-8739-f73aa870bd5e"},
	{"shop/refund", "order-1", "f0d94d1c-fe51-5bf3-a26a-9ac193ee60c6"},
	{"", "order-1", "65a0c378-2756-57e9-8a37-cca69678022f"},
	{"shop/charge", "Bestellung Nr. 7 für Zoë ✓", "6425ebfc-8f66-509e-8111-7629a03cec83"},
	{"a", "b/c", "f276bb6a-94c9-5b05-9ea7-d51072a2622e"},
	{"a/b", "c", "cf4c464d-42fd-582a-969d-ad7494a12864"},
	{strings.Repeat("x", 300), strings.Repeat("y", 3000), "372c567f-2496-5773-b447-46bf9f801075"},
	{"shop/charge", " order-1 ", "6d767d52-5f3f-5241-afa6-bd0ab7f82e81"},
}

func adopt(t testing.TB, key string) *idem.Intent {
	t.Helper()
	in, err := idem.Adopt(key, since())
	require.NoError(t, err)
	return in
}

func TestIntentOpen(t *testing.T) {
	const goroutines, each = 16, 500
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				in := idem.Open()
				id, err := uuid.Parse(in.Key())
				assert.NoError(t, err)
				assert.EqualValues(t, 4, id.Version())
				assert.Equal(t, uuid.RFC4122, id.Variant())
				assert.Equal(t, id.String(), in.Key(), "the canonical spelling")
				assert.Equal(t, idem.NotExecuted, in.Outcome())
				assert.Empty(t, in.Attempts())
				mu.Lock()
				seen[in.Key()] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Len(t, seen, goroutines*each)
}

func TestIntentAdopt(t *testing.T) {
	for _, key := range []string{"k", "order-4711", someKey, `"q"\`, strings.Repeat("~", 255), "!", strings.ToUpper(someKey)} {
		in, err := idem.Adopt(key, since())
		require.NoError(t, err)
		assert.Equal(t, key, in.Key(), "byte for byte")
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome(), "its past is not known")
	}
	in, err := idem.Adopt(someKey, time.Time{})
	assert.Error(t, err)
	assert.NotErrorIs(t, err, idem.ErrInvalidKey)
	assert.Nil(t, in)
	for _, key := range []string{"", " ", "a b", "ä", strings.Repeat("k", 256), uuid.Nil.String(), `"` + uuid.Nil.String() + `"`} {
		in, err = idem.Adopt(key, since())
		assert.ErrorIs(t, err, idem.ErrInvalidKey)
		assert.Nil(t, in)
		if key != "" && key != " " {
			assert.NotContains(t, err.Error(), key)
		}
	}
	// The whole error, also with two faults, is one line.
	_, err = idem.Adopt("a\nb", time.Time{})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "\n")
}

func TestIntentDerive(t *testing.T) {
	for _, d := range derivedKeys {
		in, err := idem.Derive(d.namespace, d.name, since())
		require.NoError(t, err)
		assert.Equal(t, d.key, in.Key())
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}
	_, err := idem.Derive("shop", "", since())
	assert.ErrorIs(t, err, idem.ErrInvalidKey)
	_, err = idem.Derive("shop", "order-1", time.Time{})
	assert.Error(t, err)
	at := time.Now().Add(-time.Hour)
	in, err := idem.Derive("shop", "order-1", at)
	require.NoError(t, err)
	assert.True(t, at.Equal(in.State().Since))
}

// Times are written down without their monotonic reading, so that States compare.
func TestIntentStatesCompare(t *testing.T) {
	now := time.Now()
	adopted, err := idem.Adopt("k", now)
	require.NoError(t, err)
	derived, err := idem.Derive("s", "n", now)
	require.NoError(t, err)
	resumed, err := idem.Resume(idem.State{Key: "k", Since: now, FirstSent: now}, nil)
	require.NoError(t, err)
	for _, in := range []*idem.Intent{adopted, derived, resumed, adopted.Child("a")} {
		s := in.State()
		assert.Equal(t, now.Round(0), s.Since)
		if !s.FirstSent.IsZero() {
			assert.Equal(t, now.Round(0), s.FirstSent)
		}
	}
}

func TestIntentChild(t *testing.T) {
	t.Run("golden", func(t *testing.T) {
		in := adopt(t, someKey)
		for name, key := range map[string]string{
			"capture": "fda8ec19-cbbb-55f9-b4a0-cbf404df6649",
			"Capture": "687aee03-405f-5644-be6d-b2af2bbdc77e",
			"step/1":  "20e431b5-4fad-5b5c-a2f1-ced9597bcb9a",
			" ":       "feb99dc6-8fe3-5e76-84e6-a92327c0d47d",
		} {
			assert.Equal(t, key, in.Child(name).Key(), name)
		}
		assert.Equal(t, "91b147ea-f25f-5f71-b555-656af69b2a36", in.Child("capture").Child("mail").Key())
		assert.Equal(t, "27b1ab20-16d1-578f-884b-4f49824ebc27", adopt(t, "order-4711").Child("capture").Key())
	})
	t.Run("same name, same Intent", func(t *testing.T) {
		in := idem.Open()
		got := make([]*idem.Intent, 50)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = in.Child("capture") })
		}
		wg.Wait()
		for _, child := range got {
			assert.Same(t, got[0], child)
		}
		assert.NotSame(t, got[0], in.Child("refund"))
		assert.NotEqual(t, in.Key(), got[0].Key())
	})
	t.Run("past", func(t *testing.T) {
		at := time.Now().Add(-time.Hour)
		assert.Equal(t, idem.NotExecuted, idem.Open().Child("a").Outcome())
		assert.Equal(t, idem.NotExecuted, idem.Open().Child("a").Child("b").Outcome())
		adopted, err := idem.Adopt("k", at)
		require.NoError(t, err)
		derived, err := idem.Derive("s", "n", at)
		require.NoError(t, err)
		resumed, err := idem.Resume(idem.State{Key: "k", Since: at}, nil)
		require.NoError(t, err)
		sent, err := idem.Resume(idem.State{Key: "k", FirstSent: at}, nil)
		require.NoError(t, err)
		answered, err := idem.Resume(idem.State{Key: "k", FirstSent: at, Outcome: idem.Answered}, nil)
		require.NoError(t, err)
		for name, in := range map[string]*idem.Intent{"adopted": adopted, "derived": derived, "resumed": resumed, "sent": sent, "answered": answered} {
			for _, child := range []*idem.Intent{in.Child("a"), in.Child("a").Child("b")} {
				assert.Equal(t, idem.OutcomeUnknown, child.Outcome(), name)
				assert.True(t, at.Equal(child.State().Since), name)
				assert.Zero(t, child.State().FirstSent, "it was not sent here: %s", name)
			}
		}
	})
	t.Run("empty name", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			for _, bad := range []*idem.Intent{in.Child(""), in.Child("").Child("a"), in.Child("a").Child("")} {
				refusedEverywhere(t, r, bad, idem.ErrInvalidKey)
			}
			assert.Zero(t, r.count())
			assert.Equal(t, idem.NotExecuted, in.Outcome())
		}, created)
	})
	t.Run("by itself", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			for _, step := range []*idem.Intent{in, in.Child("a"), in.Child("b")} {
				_, _, err := r.post(t.Context(), step, "x")
				require.NoError(t, err)
			}
			assert.Equal(t, 3, r.done())
			assert.Len(t, in.Attempts(), 1)
			assert.Len(t, in.Child("a").Attempts(), 1)
			assert.Equal(t, idem.NotExecuted, in.Child("c").Outcome())
		}, created)
	})
}

// refusedEverywhere checks that an Intent that cannot be used is refused before
// the network on every way in.
func refusedEverywhere(t *testing.T, r *rig, bad *idem.Intent, want error) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		assert.ErrorIs(t, err, want)
		if e, ok := errors.AsType[*idem.Error](err); ok {
			assert.Equal(t, idem.NotExecuted, e.Outcome)
			assert.Zero(t, e.Attempts)
		}
	}
	hits := r.count()
	client := r.caller(t)
	for _, method := range writes {
		_, err := client.Call(t.Context(), bad, method, "/x", 1, nil)
		check(err)
		body := newCountedBody("x")
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), bad), method, "http://api/x", body)
		require.NoError(t, err)
		_, _, err = r.send(req)
		check(err)
		assert.Equal(t, 1, body.closed(), "closes of the caller's body")
		_, err = client.Do(bad, newRequest(t, nil, method, "http://api/x", "x"))
		check(err)
		_, err = client.Do(bad, newRequest(t, nil, method, "http://api/x", "x", "Idempotency-Key", "k"))
		check(err)
	}
	check(bad.Bind(newRequest(t, nil, "POST", "http://api/x", "x")))
	if bad != nil {
		_, err := json.Marshal(bad)
		check(err)
	}
	assert.Equal(t, hits, r.count())
}

func TestIntentZeroAndNil(t *testing.T) {
	row(t, func(t *testing.T, r *rig) {
		refusedEverywhere(t, r, nil, idem.ErrNoIntent)
		refusedEverywhere(t, r, new(idem.Intent), idem.ErrNoIntent)
		refusedEverywhere(t, r, new(idem.Intent).Child("a"), idem.ErrNoIntent)
		refusedEverywhere(t, r, new(idem.Intent).Child("a").Child("b"), idem.ErrNoIntent)
		assert.Zero(t, r.count())
	}, created)
	zero := new(idem.Intent)
	assert.Empty(t, zero.Key())
	assert.Empty(t, zero.Attempts())
	assert.Equal(t, idem.OutcomeUnknown, zero.Outcome())
	_, err := idem.Resume(zero.State(), nil)
	assert.ErrorIs(t, err, idem.ErrInvalidKey)
	for _, in := range []*idem.Intent{nil, zero} {
		assert.Equal(t, "idem.Intent(none)", in.String())
		assert.Equal(t, "idem.Intent(none)", fmt.Sprintf("%+v", in))
		assert.Equal(t, "none", in.LogValue().String())
	}
}

func TestIntentContext(t *testing.T) {
	in, other := idem.Open(), idem.Open()
	got, ok := idem.IntentFromContext(t.Context())
	assert.Nil(t, got)
	assert.False(t, ok)
	ctx := idem.WithIntent(t.Context(), in)
	got, ok = idem.IntentFromContext(ctx)
	assert.Same(t, in, got)
	assert.True(t, ok)
	got, ok = idem.IntentFromContext(idem.WithIntent(ctx, other)) // the inner one counts
	assert.Same(t, other, got)
	assert.True(t, ok)
	got, ok = idem.IntentFromContext(idem.WithIntent(ctx, nil)) // nil is not "none"
	assert.Nil(t, got)
	assert.True(t, ok)
	got, ok = idem.IntentFromContext(context.WithoutCancel(ctx))
	assert.Same(t, in, got)
	assert.True(t, ok)
}

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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestIntentState(t *testing.T) {
	t0 := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble
	digest := "sha256:" + strings.Repeat("0a", 32)
	golden := map[string]struct {
		state idem.State
		json  string
	}{
		"least":     {idem.State{Key: "k", Since: t0}, `{"key":"k","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"sent":      {idem.State{Key: "k", FirstSent: t0}, `{"key":"k","first_sent":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"all":       {idem.State{Key: someKey, Since: t0, FirstSent: t0.Add(time.Hour), Fingerprint: digest, Outcome: idem.Answered}, `{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","first_sent":"2000-01-01T01:00:00Z","fingerprint":"` + digest + `","outcome":"answered"}`},
		"odd key":   {idem.State{Key: `<"\&>`, Since: t0}, `{"key":"\u003c\"\\\u0026\u003e","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"fractions": {idem.State{Key: "k", Since: t0.Add(123456789)}, `{"key":"k","since":"2000-01-01T00:00:00.123456789Z","outcome":"unknown"}`},
	}
	for name, test := range golden {
		t.Run(name, func(t *testing.T) {
			data := toJSON(t, test.state)
			assert.Equal(t, test.json, string(data))
			var back idem.State
			require.NoError(t, json.Unmarshal(data, &back))
			assert.Equal(t, test.state, back)
			in, err := idem.Resume(test.state, nil)
			require.NoError(t, err)
			again := in.State()
			assert.Equal(t, test.state.Key, again.Key)
			assert.Equal(t, test.state.FirstSent, again.FirstSent)
			assert.Equal(t, test.state.Fingerprint, again.Fingerprint)
			assert.Equal(t, test.state.Outcome, again.Outcome)
			assert.Equal(t, test.state.Outcome, in.Outcome())
			if !test.state.Since.IsZero() {
				assert.Equal(t, test.state.Since, again.Since)
			}
			assert.Equal(t, again, writtenDown(t, toJSON(t, in)).State(), "and once more")
		})
	}
	t.Run("over a life", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			in := idem.Open()
			require.Equal(t, t0, time.Now().UTC())
			assert.Equal(t, `{"key":"`+in.Key()+`","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`, strings.ReplaceAll(string(toJSON(t, utc(in.State()))), "+00:00", "Z"))
			time.Sleep(time.Hour)
			s := in.State()
			assert.True(t, t0.Add(time.Hour).Equal(s.Since), "not sent before now")
			assert.Equal(t, s.Since.Round(0), s.Since, "without a monotonic reading")

			_, _, err := r.post(t.Context(), in, "x") // lost
			require.Error(t, err)
			s = in.State()
			assert.Zero(t, s.Since)
			assert.True(t, t0.Add(time.Hour).Equal(s.FirstSent))
			assert.Regexp(t, `^sha256:[0-9a-f]{64}$`, s.Fingerprint)
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			first := s

			time.Sleep(time.Hour)
			_, _, err = r.post(t.Context(), in, "x") // 402: not settled
			require.NoError(t, err)
			assert.Equal(t, first, in.State(), "the first send stays the first")

			_, _, err = r.post(t.Context(), in, "x") // 201
			require.NoError(t, err)
			first.Outcome = idem.Answered
			assert.Equal(t, first, in.State())
		}, lost, status(402), created)
	})
	t.Run("an unsettled answer is written as unknown", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.NoError(t, err)
			require.Equal(t, idem.Answered, in.Outcome())
			assert.Equal(t, idem.OutcomeUnknown, in.State().Outcome)
		}, status(402))
	})
	t.Run("in the middle of a call", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			now := time.Now()
			go func() { _, _, _ = r.post(t.Context(), in, "x") }()
			time.Sleep(time.Second)
			s := in.State()
			assert.True(t, now.Equal(s.FirstSent))
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			time.Sleep(time.Minute)
			assert.Equal(t, idem.Answered, in.State().Outcome)
		}, hold(2*time.Second))
	})
	t.Run("never says NotExecuted", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.down("api")
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			require.Equal(t, idem.NotExecuted, in.Outcome())
			s := in.State()
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			assert.Zero(t, s.FirstSent, "nothing was sent")
			s.Outcome = idem.NotExecuted // by hand
			again, err := idem.Resume(s, nil)
			require.NoError(t, err)
			assert.Equal(t, idem.OutcomeUnknown, again.Outcome())
			assert.Equal(t, idem.OutcomeUnknown, again.State().Outcome)
		}, created)
	})
	t.Run("answered stays answered", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.NoError(t, err)
			again := writtenDown(t, toJSON(t, in))
			assert.Equal(t, idem.Answered, again.Outcome())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _, err = r.post(ctx, again, "x")
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, idem.Answered, theError(t, err).Outcome)
		}, created)
	})
}

func utc(s idem.State) idem.State {
	s.Since = s.Since.UTC()
	return s
}

func TestIntentBadStates(t *testing.T) {
	now := since()
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, s := range map[string]idem.State{
		"zero":                 {},
		"no key":               {Since: now},
		"bad key":              {Key: "se cret", Since: now},
		"long key":             {Key: strings.Repeat("secret", 50), Since: now},
		"nil UUID":             {Key: uuid.Nil.String(), Since: now},
		"no time":              {Key: "secret-key"},
		"no time but answered": {Key: "secret-key", Outcome: idem.Answered},
		"unknown outcome":      {Key: "secret-key", Since: now, Outcome: 7},
		"other fingerprint":    {Key: "secret-key", Since: now, Fingerprint: "md5:0a"},
		"cut fingerprint":      {Key: "secret-key", Since: now, Fingerprint: digest[:len(digest)-1]},
		"long fingerprint":     {Key: "secret-key", Since: now, Fingerprint: digest + "0"},
		"line end":             {Key: "secret-key", Since: now, Fingerprint: digest + "\n"},
		"capitals":             {Key: "secret-key", Since: now, Fingerprint: strings.ToUpper(digest)},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := idem.Resume(s, nil)
			require.Error(t, err)
			assert.Nil(t, in)
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "\n")
			data, err := json.Marshal(s)
			if err != nil {
				return
			}
			used := new(idem.Intent)
			err = json.Unmarshal(data, used)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "secret")
			assert.Empty(t, used.Key(), "left as it was")
		})
	}
	for _, data := range []string{
		``, `null`, `{}`, `[]`, `"` + someKey + `"`, `7`, `{"key":7}`, `{"key":"` + someKey + `"}`, `{"key":"` + someKey + `","since":"yesterday"}`,
		`{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","outcome":"done"}`, `{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","outcome":7}`,
		`{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z"`, `{"key":["` + someKey + `"],"since":"2000-01-01T00:00:00Z"}`,
	} {
		in := new(idem.Intent)
		err := in.UnmarshalJSON([]byte(data))
		if assert.Error(t, err, data) {
			assert.NotContains(t, err.Error(), someKey)
		}
		assert.Empty(t, in.Key())
	}
}

func TestIntentJSON(t *testing.T) {
	t.Run("into a used Intent", func(t *testing.T) {
		data := toJSON(t, idem.Open())
		in := idem.Open()
		key := in.Key()
		require.Error(t, json.Unmarshal(data, in))
		assert.Equal(t, key, in.Key())
		assert.Equal(t, idem.NotExecuted, in.Outcome())
		again := writtenDown(t, data)
		require.Error(t, json.Unmarshal(data, again), "even the same State")
		bad := idem.Open().Child("")
		err := json.Unmarshal(data, bad)
		if err == nil {
			assert.NoError(t, bad.Bind(newRequest(t, nil, "POST", "http://api/x", "x")), "taken, so it must work")
		}
	})
	t.Run("in a struct", func(t *testing.T) {
		type job struct {
			Name   string       `json:"name"`
			Intent *idem.Intent `json:"intent,omitempty"`
		}
		in := idem.Open()
		data := toJSON(t, job{"a", in})
		assert.Contains(t, string(data), in.Key())
		var back job
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, in.Key(), back.Intent.Key())
		assert.Equal(t, idem.OutcomeUnknown, back.Intent.Outcome())
		assert.Equal(t, `{"name":"b"}`, string(toJSON(t, job{Name: "b"})))
		require.NoError(t, json.Unmarshal([]byte(`{"intent":null}`), &back))
		assert.Nil(t, back.Intent)
	})
	t.Run("unknown members are ignored", func(t *testing.T) {
		in := new(idem.Intent)
		require.NoError(t, json.Unmarshal([]byte(`{"version":2,"key":"k","since":"2000-01-01T00:00:00+02:00"}`), in))
		assert.Equal(t, "k", in.Key())
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	})
}

func TestIntentBind(t *testing.T) {
	const text = "order=1"
	bodies := map[string]func(t *testing.T) io.Reader{
		"strings.Reader": func(*testing.T) io.Reader { return strings.NewReader(text) },
		"bytes.Reader":   func(*testing.T) io.Reader { return bytes.NewReader([]byte(text)) },
		"bytes.Buffer":   func(*testing.T) io.Reader { return bytes.NewBufferString(text) },
		"stream":         func(*testing.T) io.Reader { return newCountedBody(text) },
		"file": func(t *testing.T) io.Reader {
			name := filepath.Join(t.TempDir(), "body")
			require.NoError(t, os.WriteFile(name, []byte("skipped "+text), 0o600))
			f, err := os.Open(name)
			require.NoError(t, err)
			_, err = f.Seek(int64(len("skipped ")), io.SeekStart)
			require.NoError(t, err)
			return f
		},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				post := func(in *idem.Intent, b io.Reader) *http.Request {
					req, err := http.NewRequestWithContext(idem.WithIntent(context.Background(), in), "POST", "http://api/charges", b)
					require.NoError(t, err)
					return req
				}
				b := body(t)
				req := post(in, b)
				require.NoError(t, in.Bind(req))
				require.NoError(t, in.Bind(req), "once more")
				require.NoError(t, in.Bind(post(in, strings.NewReader(text))), "the same in another form")
				assert.Equal(t, idem.NotExecuted, in.Outcome())
				assert.Zero(t, r.count())
				s := in.State()
				assert.NotEmpty(t, s.Fingerprint)
				assert.Zero(t, s.FirstSent)
				assert.ErrorIs(t, in.Bind(post(in, strings.NewReader("order=2"))), idem.ErrIntentReused)
				assert.Equal(t, s.Fingerprint, in.State().Fingerprint, "a refused Bind changes nothing")

				_, _, err := r.send(req)
				require.NoError(t, err)
				assert.Equal(t, text, r.all()[0].body)
				if c, ok := b.(*countedBody); ok {
					assert.Equal(t, 1, c.closed(), "closes of the caller's body")
				}
				if f, ok := b.(*os.File); ok {
					assert.ErrorIs(t, f.Close(), os.ErrClosed)
				}
				assert.Equal(t, s.Fingerprint, in.State().Fingerprint)
				again, err := idem.Resume(s, nil)
				require.NoError(t, err)
				assert.ErrorIs(t, again.Bind(post(again, strings.NewReader("order=2"))), idem.ErrIntentReused)
				_, _, err = r.send(post(again, strings.NewReader("order=2")))
				assert.ErrorIs(t, err, idem.ErrIntentReused)
				_, _, err = r.send(post(again, strings.NewReader(text)))
				require.NoError(t, err)
				assert.Equal(t, 2, r.count())
				assert.Equal(t, 1, r.done())
			}, created)
		})
	}
	t.Run("after the first send", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, text)
			require.NoError(t, err)
			req := newRequest(t, in, "POST", "http://api/charges", "order=2")
			assert.ErrorIs(t, in.Bind(req), idem.ErrIntentReused)
			data, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			assert.Equal(t, "order=2", string(data), "still to be sent, by another Intent")
			require.NoError(t, in.Bind(newRequest(t, in, "POST", "http://api/charges", text)))
			assert.NotEmpty(t, in.State().Fingerprint)
		}, created)
	})
	t.Run("a body too long", func(t *testing.T) {
		long := strings.Repeat("x", 1<<20+5)
		req := newRequest(t, nil, "POST", "http://api/charges", "")
		req.Body = &countedBody{Reader: strings.NewReader(long)}
		req.ContentLength = -1
		in := idem.Open()
		err := in.Bind(req)
		assert.ErrorIs(t, err, idem.ErrNotRepeatable)
		assert.Empty(t, in.State().Fingerprint)
		// The request must not go out without its beginning: either the body is
		// whole, or it cannot be read any more.
		data, err := io.ReadAll(req.Body)
		if err == nil {
			assert.Len(t, data, len(long))
		}
		require.NoError(t, in.Bind(newRequest(t, nil, "POST", "http://api/charges", text)), "it is still free")
	})
	t.Run("a body that fails", func(t *testing.T) {
		req := newRequest(t, nil, "POST", "http://api/charges", "")
		gone := errors.New("gone")
		req.Body = &countedBody{Reader: io.MultiReader(strings.NewReader("x"), failingReader{gone})}
		req.ContentLength = -1
		in := idem.Open()
		assert.ErrorIs(t, in.Bind(req), gone)
		require.NoError(t, in.Bind(newRequest(t, nil, "POST", "http://api/charges", text)), "it is still free")
	})
	t.Run("nothing to bind", func(t *testing.T) {
		assert.Error(t, idem.Open().Bind(nil))
		assert.Error(t, idem.Open().Bind(&http.Request{}))
	})
	t.Run("no body", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			req := newRequest(t, in, "DELETE", "http://api/charges/1", "")
			require.NoError(t, in.Bind(req))
			assert.NotEmpty(t, in.State().Fingerprint)
			_, _, err := r.send(req)
			require.NoError(t, err)
			_, _, err = r.send(newRequest(t, in, "DELETE", "http://api/charges/2", ""))
			assert.ErrorIs(t, err, idem.ErrIntentReused)
		}, created)
	})
	t.Run("concurrently", func(t *testing.T) {
		in := idem.Open()
		var mu sync.Mutex
		bound := map[string]int{}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				body := fmt.Sprint("order=", i%2)
				if err := in.Bind(newRequest(t, nil, "POST", "http://api/charges", body)); err == nil {
					mu.Lock()
					bound[body]++
					mu.Unlock()
				} else {
					assert.ErrorIs(t, err, idem.ErrIntentReused)
				}
			})
		}
		wg.Wait()
		assert.Len(t, bound, 1)
	})
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A State that was saved before the send may be older than the send: after a
// crash nothing is known, even if the network is dead and nothing leaves now.
func TestIntentSavedBeforeTheSendAndKilled(t *testing.T) {
	for name, bind := range map[string]bool{"bound": true, "unbound": false} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				req := newRequest(t, in, "POST", "http://api/charges", "order=1")
				if bind {
					require.NoError(t, in.Bind(req))
				}
				saved := toJSON(t, in)
				ctx, kill := context.WithCancel(req.Context())
				go func() { _, _, _ = r.send(req.WithContext(ctx)) }()
				time.Sleep(time.Second) // the work is done, the answer is awaited
				kill()
				require.Equal(t, 1, r.done())
				r.down("api")
				r.restarted()

				again := writtenDown(t, saved)
				for _, step := range []*idem.Intent{again, again.Child("mail")} {
					assert.Equal(t, idem.OutcomeUnknown, step.Outcome())
					_, _, err := r.post(t.Context(), step, "order=1")
					e := theError(t, err)
					assert.Zero(t, e.Sends)
					assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
					assert.Equal(t, idem.OutcomeUnknown, step.Outcome())
					for _, a := range step.Attempts() {
						assert.Equal(t, idem.OutcomeUnknown, a.Outcome)
					}
				}
				assert.Equal(t, idem.OutcomeUnknown, writtenDown(t, toJSON(t, again)).Outcome())

				// Refused in every other way, it is not "not executed" either.
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, _, err := r.post(ctx, again, "order=1")
				assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
				r.serve("api", r.server)
				resp, _, err := r.post(t.Context(), again, "order=1") // 429
				require.NoError(t, err)
				assert.Equal(t, 429, resp.StatusCode)
				assert.Equal(t, idem.OutcomeUnknown, again.Outcome())
				assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			}, execThen(stall), status(429))
		})
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"key":"k","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`))
	f.Add([]byte(`{"key":"` + someKey + `","first_sent":"2000-01-01T00:00:00.5+01:30","fingerprint":"sha256:` + strings.Repeat("0a", 32) + `","outcome":"answered"}`))
	f.Add([]byte(`{"key":"\u003c\"\\","since":"9999-12-31T23:59:59.999999999-23:59","first_sent":"0000-01-01T00:00:00Z","outcome":"not executed"}`))
	f.Add([]byte(`{"KEY":"k","Since":"0001-01-01T00:00:00+00:01"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"key":"k","since":null,"outcome":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := new(idem.Intent)
		if err := in.UnmarshalJSON(data); err != nil {
			if in.Key() != "" {
				t.Fatalf("an error, and a key: %v", err)
			}
			return
		}
		if in.Outcome() == idem.NotExecuted {
			t.Fatal("a resumed Intent says NotExecuted")
		}
		s := in.State()
		if s.Key == "" || s.Outcome == idem.NotExecuted || s.Since.IsZero() && s.FirstSent.IsZero() {
			t.Fatalf("not a State to resume: %+v", s)
		}
		written, err := json.Marshal(in)
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		again := new(idem.Intent)
		if err := json.Unmarshal(written, again); err != nil {
			t.Fatalf("written, but cannot be read: %v\n%s", err, written)
		}
		b := again.State()
		if s.Key != b.Key || !s.Since.Equal(b.Since) || !s.FirstSent.Equal(b.FirstSent) || s.Fingerprint != b.Fingerprint || s.Outcome != b.Outcome {
			t.Fatalf("not the same again:\n%+v\n%+v", s, b)
		}
	})
}
