package pay_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/examples/internal/trouble"
	pay "github.com/idem-go/idem/examples/stripe"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"
)

// payments is a small part of Stripe: it declines what is above 100,000.
func payments() http.Handler {
	var n atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payment_intents", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if len(r.FormValue("amount")) > 5 {
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprint(w, `{"error":{"type":"card_error","code":"card_declined","message":"declined"}}`)
			return
		}
		id := fmt.Sprintf("pi_%d", n.Add(1))
		mockserver.Did(r.Context(), "payment", id)
		fmt.Fprintf(w, `{"id":%q,"object":"payment_intent"}`, id)
	})
	return mux
}

// run gives f a server that keeps Stripe's contract, and a Transport to it, in
// virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, transport *idem.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: payments(), Contract: contract.Stripe()})
		transport := pay.Transport()
		transport.Base, transport.MaxAttempts = server.Transport(), trouble.Attempts
		f(t, server, transport)
	})
}

func TestPay(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		trouble.Meets(server, "POST /v1/payment_intents")
		payment := idem.Open()
		pi, err := pay.Pay(t.Context(), pay.New("sk_test_1", server.URL, transport), payment, 450)
		require.NoError(t, err)
		assert.Equal(t, "pi_1", pi.ID)
		trouble.Check(t, server, payment)
	})
}

// A declined card is an answer that stands: stripe-go has the code, the Intent
// the outcome.
func TestDeclined(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		payment := idem.Open()
		_, err := pay.Pay(t.Context(), pay.New("sk_test_1", server.URL, transport), payment, 1_000_000)
		var declined *stripe.Error
		require.ErrorAs(t, err, &declined)
		assert.Equal(t, stripe.ErrorCodeCardDeclined, declined.Code)
		assert.Equal(t, idem.Answered, payment.Outcome())
		assert.Len(t, server.Requests(""), 1)
	})
}

// Without an answer stripe-go hands on the Transport's error as it is.
func TestNoAnswer(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/payment_intents").Always("reset@received")
		payment := idem.Open()
		_, err := pay.Pay(t.Context(), pay.New("sk_test_1", server.URL, transport), payment, 450)
		var e *idem.Error
		require.ErrorAs(t, err, &e)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.Equal(t, trouble.Attempts, e.Attempts)
		assert.Equal(t, idem.OutcomeUnknown, payment.Outcome())
	})
}

// create is a call whose author has forgotten SetIdempotencyKey.
func create(ctx context.Context, client *stripe.Client) (*stripe.PaymentIntent, error) {
	return client.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
		Amount: stripe.Int64(450), Currency: stripe.String(stripe.CurrencyEUR),
	})
}

// Who forgets SetIdempotencyKey has two keys, stripe-go's and the Intent's. That
// is refused before the network.
func TestForgottenKey(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		payment := idem.Open()
		_, err := create(idem.WithIntent(t.Context(), payment), pay.New("sk_test_1", server.URL, transport))
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		assert.Equal(t, idem.NotExecuted, payment.Outcome())
		assert.Empty(t, server.Requests(""))
	})
}

// With IntentWins the Intent's key takes the place of stripe-go's, and nobody has
// to remember SetIdempotencyKey.
func TestIntentWins(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		trouble.Meets(server, "POST /v1/payment_intents")
		transport.IntentWins = true
		payment := idem.Open()
		_, err := create(idem.WithIntent(t.Context(), payment), pay.New("sk_test_1", server.URL, transport))
		require.NoError(t, err)
		trouble.Check(t, server, payment)
		assert.Len(t, server.Requests(""), len(server.Requests(payment.Key())), "no other key")
	})
}

// Who forgets the context has the right key on the wire, and the attempts are
// made with it, but the Intent hears nothing of them: do not ask its Outcome.
func TestForgottenContext(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/payment_intents").Then("reset@stored")
		payment := idem.Open()
		params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(450), Currency: stripe.String(stripe.CurrencyEUR)}
		params.SetIdempotencyKey(payment.Key())
		_, err := pay.New("sk_test_1", server.URL, transport).V1PaymentIntents.Create(t.Context(), params)
		require.NoError(t, err)
		assert.Len(t, server.Requests(payment.Key()), 2)
		assert.Len(t, server.Effects(""), 1)
		assert.Empty(t, payment.Attempts())
	})
}

// Who forgets both is as well off as with stripe-go alone: one call is safe, and
// asking again is a second payment.
func TestForgottenBoth(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/payment_intents").Then("reset@stored")
		client := pay.New("sk_test_1", server.URL, transport)
		for range 2 {
			_, err := create(t.Context(), client)
			require.NoError(t, err)
		}
		assert.Len(t, server.Requests(""), 4)
		assert.Len(t, server.Effects(""), 2)
	})
}

// counted counts the calls of a Transport, and keeps their errors.
type counted struct {
	http.RoundTripper
	errs []error
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	c.errs = append(c.errs, err)
	return resp, err
}

// With stripe-go's own retries left on, a refusal is asked for three times. It is
// given at once and in the same words each time, and nothing is sent; the number
// of the next call shows that somebody asked.
func TestOwnRetriesOfARefusal(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		calls := &counted{RoundTripper: transport}
		client := stripe.NewClient("sk_test_1", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: &http.Client{Transport: calls}, URL: &server.URL,
		})))
		payment := idem.Open()
		_, err := create(idem.WithIntent(t.Context(), payment), client)
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		require.Len(t, calls.errs, 3)
		for _, again := range calls.errs {
			assert.EqualError(t, again, calls.errs[0].Error())
		}
		assert.Empty(t, server.Requests(""))

		_, err = pay.Pay(t.Context(), client, payment, 450)
		require.NoError(t, err)
		require.Len(t, payment.Attempts(), 1)
		assert.Equal(t, 4, payment.Attempts()[0].Call)
	})
}

// Left on, they also multiply: 6 attempts in each of 3 calls. It is still one key.
func TestOwnRetriesMultiply(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/payment_intents").Always("drop@received")
		client := stripe.NewClient("sk_test_1", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: &http.Client{Transport: transport}, URL: &server.URL,
		})))
		payment, began := idem.Open(), time.Now()
		_, err := pay.Pay(t.Context(), client, payment, 450)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		attempts := payment.Attempts()
		require.Len(t, attempts, 3*trouble.Attempts)
		assert.Equal(t, 3, attempts[len(attempts)-1].Call)
		assert.Len(t, server.Requests(payment.Key()), 3*trouble.Attempts)
		assert.Greater(t, time.Since(began), 10*time.Second)
	})
}
