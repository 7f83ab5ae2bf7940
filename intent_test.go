package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
