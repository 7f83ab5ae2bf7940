package otelidem_test

import (
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/otelidem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every field of the Transport is taken over, also one that is added later, and
// the Transport that was given stays as it was.
func TestInstrumentTakesOver(t *testing.T) {
	given := &idem.Transport{
		Base:   base(nil),
		Around: func(next http.RoundTripper) http.RoundTripper { return next }, Contract: contract.Stripe(),
		MaxAttempts: 2, AttemptTimeout: time.Second, Backoff: idem.Exponential(1, 2), MaxRetryAfter: time.Hour,
		Budget: idem.NewBudget(1, 1), MaxBody: 3, MaxResponse: 4, IntentWins: true,
		OnAttempt: func(context.Context, idem.Attempt) {},
	}
	got, err := otelidem.Instrument(given, otelidem.Config{})
	require.NoError(t, err)
	for field := range reflect.TypeFor[idem.Transport]().Fields() {
		if !field.IsExported() {
			continue
		}
		was, is := reflect.ValueOf(given).Elem().FieldByIndex(field.Index), reflect.ValueOf(got).Elem().FieldByIndex(field.Index)
		assert.False(t, was.IsZero(), "%s is not part of this test", field.Name)
		switch {
		case field.Name == "Base" || field.Name == "Around" || field.Name == "OnAttempt":
			assert.False(t, is.IsZero(), field.Name)
		case field.Type.Kind() == reflect.Func:
			assert.Equal(t, was.Pointer(), is.Pointer(), field.Name)
		default:
			assert.Equal(t, was.Interface(), is.Interface(), field.Name)
		}
	}
	assert.IsType(t, base(nil), given.Base)
}

// The caller's own hooks stay in force, the Layer inside the call's span and Base
// inside the attempt's.
func TestInstrumentKeepsHooks(t *testing.T) {
	w := newWatch(t)
	var said []string
	say := func(what string, ctx context.Context) {
		spans := w.spans.Started()
		if len(spans) > 0 {
			what += " in " + spans[len(spans)-1].Name()
		}
		said = append(said, what)
	}
	client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(&idem.Transport{
		Around: func(next http.RoundTripper) http.RoundTripper {
			return base(func(r *http.Request) (*http.Response, error) {
				say("layer", r.Context())
				return next.RoundTrip(r)
			})
		},
		Base: base(func(r *http.Request) (*http.Response, error) {
			say("base", r.Context())
			return answer(r, http.StatusCreated, "{}"), nil
		}),
		OnAttempt: func(ctx context.Context, a idem.Attempt) { say("told", ctx) },
	})})
	require.NoError(t, err)
	require.NoError(t, charge(t.Context(), client))
	assert.Equal(t, []string{"layer in idem POST", "base in POST", "told in POST"}, said)
}

// Without anything the Transport works, with the global providers and
// http.DefaultTransport, whose idle connections it closes.
func TestInstrumentZero(t *testing.T) {
	was := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = was })
	stub := &closing{}
	http.DefaultTransport = stub
	for _, cfg := range []otelidem.Config{{}, {BaseTraces: true}} {
		transport, err := otelidem.Instrument(nil, cfg)
		require.NoError(t, err)
		client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: transport})
		require.NoError(t, err)
		require.NoError(t, charge(t.Context(), client))
		transport.CloseIdleConnections()
	}
	assert.Equal(t, closing{requests: 2, closed: 2}, *stub)
	(&http.Client{Transport: otelidem.CountResends(nil)}).CloseIdleConnections()
	assert.Equal(t, 3, stub.closed)
}

type closing struct{ requests, closed int }

func (c *closing) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests++
	return answer(r, http.StatusCreated, "{}"), nil
}

func (c *closing) CloseIdleConnections() { c.closed++ }
