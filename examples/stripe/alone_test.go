package pay_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	pay "github.com/idem-go/idem/examples/stripe"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"
)

// What stripe-go does by itself, as docs/coming-from-stripe-go.md says.

// alone gives f a server that keeps Stripe's contract, and stripe-go as it comes,
// without idem.
func alone(t *testing.T, f func(t *testing.T, server *mockserver.Server, client *stripe.Client)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: payments(), Contract: contract.Stripe()})
		f(t, server, stripe.NewClient("sk_test_1", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: server.Client(), URL: &server.URL,
		}))))
	})
}

// keys are the different keys that the server saw.
func keys(server *mockserver.Server) map[string]int {
	all := map[string]int{}
	for _, r := range server.Requests("") {
		all[r.Key]++
	}
	return all
}

// Within a call the key is kept, also where the answer's body is cut.
func TestAlone_OneCall(t *testing.T) {
	alone(t, func(t *testing.T, server *mockserver.Server, client *stripe.Client) {
		server.On("POST /v1/payment_intents").Then("reset@stored", "cut@body after=9")
		_, err := create(t.Context(), client)
		require.NoError(t, err)
		assert.Len(t, keys(server), 1)
		assert.Len(t, server.Requests(""), 3)
		assert.Len(t, server.Effects(""), 1)
	})
}

// After an error nobody knows the key, and the next call has another: the charge of
// the first one, if it was made, is made again.
func TestAlone_NextCall(t *testing.T) {
	alone(t, func(t *testing.T, server *mockserver.Server, client *stripe.Client) {
		server.On("POST /v1/payment_intents").Then("reset@stored", "reset@head", "reset@head")
		params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(450), Currency: stripe.String(stripe.CurrencyEUR)}
		_, err := client.V1PaymentIntents.Create(t.Context(), params)
		require.Error(t, err)
		assert.Nil(t, params.IdempotencyKey, "it is not told")
		_, err = client.V1PaymentIntents.Create(t.Context(), params)
		require.Error(t, err)
		assert.Len(t, keys(server), 2)
		assert.Len(t, server.Effects(""), 2)
	})
}

// An error document of Stripe's ends the call, whatever its status and whatever
// Stripe-Should-Retry says, while an HTML page is repeated under any status.
func TestAlone_Statuses(t *testing.T) {
	const document = "type=application/json body=`{\"error\":{\"type\":\"api_error\",\"message\":\"m\"}}`"
	for fault, requests := range map[mockserver.Fault]int{
		"409@received " + document:                                      1,
		"500@received " + document:                                      1,
		"502@received " + document:                                      1,
		"503@received " + document:                                      1,
		"409@received header=\"Stripe-Should-Retry: true\" " + document: 1,
		"422@received type=text/html body=<html>":                       3,
	} {
		alone(t, func(t *testing.T, server *mockserver.Server, client *stripe.Client) {
			server.On("POST /v1/payment_intents").Always(fault)
			_, err := create(t.Context(), client)
			assert.Error(t, err)
			assert.Len(t, server.Requests(""), requests, fault)
		})
	}
}

// With idem below, the header is obeyed first and then the status, whatever the body
// looks like.
func TestBelow_Statuses(t *testing.T) {
	const document = "type=application/json body=`{\"error\":{\"type\":\"api_error\",\"message\":\"m\"}}`"
	for fault, requests := range map[mockserver.Fault]int{
		"409@received " + document:                                       2,
		"500@received " + document:                                       2,
		"502@received " + document:                                       2,
		"503@received " + document:                                       2,
		"503@received header=\"Stripe-Should-Retry: false\" " + document: 1,
		"422@received type=text/html body=<html>":                        1,
	} {
		run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
			server.On("POST /v1/payment_intents").Then(fault)
			_, err := pay.Pay(t.Context(), pay.New("sk_test_1", server.URL, transport), idem.Open(), 450)
			assert.Equal(t, requests == 1, err != nil, fault)
			assert.Len(t, server.Requests(""), requests, fault)
		})
	}
}

// The pauses do not hear that the caller has left, nor what the server asks.
func TestAlone_Pauses(t *testing.T) {
	alone(t, func(t *testing.T, server *mockserver.Server, client *stripe.Client) {
		server.On("POST /v1/payment_intents").Always("503@received retry-after=20 type=text/html body=busy")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := create(ctx, client)
		assert.Error(t, err)
		assert.Equal(t, 500*time.Millisecond, time.Since(began))
	})
}

// The defaults that the page names.
func TestAlone_Defaults(t *testing.T) {
	assert.EqualValues(t, 2, stripe.DefaultMaxNetworkRetries)
	backend, ok := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{}).(*stripe.BackendImplementation)
	require.True(t, ok)
	assert.Equal(t, 80*time.Second, backend.HTTPClient.Timeout)
	assert.NotEqual(t, http.DefaultClient, backend.HTTPClient)
}
