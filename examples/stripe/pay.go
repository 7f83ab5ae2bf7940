// Package pay wires stripe-go to idem.
package pay

import (
	"context"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stripe/stripe-go/v85"
)

// Transport returns a Transport for Stripe's API v1. It may be shared by all
// clients.
func Transport() *idem.Transport { return &idem.Transport{Contract: contract.Stripe()} }

// New returns a client over transport. url is empty but in tests.
//
// stripe-go would repeat a request twice by itself: each repetition would be a
// whole call of the Transport's. That is turned off. Its own http.Client has a
// Timeout of 80 s, which would cut a call with several attempts; bound a call by
// its context instead.
func New(secret, url string, transport *idem.Transport) *stripe.Client {
	config := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Transport: transport},
		MaxNetworkRetries: stripe.Int64(0),
	}
	if url != "" {
		config.URL = &url
	}
	return stripe.NewClient(secret, stripe.WithBackends(stripe.NewBackendsWithConfig(config)))
}

// Pay takes a payment once, however often it is called with one Intent. The
// Intent is needed in two places: as the key, because stripe-go makes up one for
// each call otherwise, and in the context, because it is there that the Intent
// learns what became of it.
func Pay(ctx context.Context, client *stripe.Client, payment *idem.Intent, amount int64) (*stripe.PaymentIntent, error) {
	params := &stripe.PaymentIntentCreateParams{
		Amount:   &amount,
		Currency: stripe.String(stripe.CurrencyEUR),
	}
	params.SetIdempotencyKey(payment.Key())
	return client.V1PaymentIntents.Create(idem.WithIntent(ctx, payment), params)
}
