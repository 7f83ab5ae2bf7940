package contract

import "time"

// Stripe is the contract of Stripe's API v1. API v2 has other rules under the
// same header: keys of 30 days, and failed work is taken up again.
func Stripe() Contract {
	return Contract{
		Name:    "stripe",
		Source:  "https://docs.stripe.com/api/idempotent_requests",
		Methods: onlyPost(), // GET and DELETE take no key; v1 has no other methods
		Window:  24 * time.Hour,
		Answers: []Match{
			// Stripe's own clients look for this type under these two statuses only;
			// every 409 they repeat.
			{Status: 400, Path: "error.type", Value: "idempotency_error", Means: Mismatch},
			{Status: 404, Path: "error.type", Value: "idempotency_error", Means: Mismatch},
			{Status: 409, Means: InProgress},
			// What came of an executed request is stored, failures too, and an
			// issuer's refusal is never given before execution. Other 402 and 4xx
			// may be validation, which is not stored.
			{Status: 402, Path: "error.code", Value: "card_declined", Means: Settled},
		},
		// Stripe's pages as read do not promise the mark. Whether Original-Request
		// differs from Request-Id on the 409 of a request in progress as well is
		// not known.
		Replayed: []Marker{
			{Header: "Idempotent-Replayed", Yes: []string{"true"}},
			{Header: "Original-Request", DiffersFrom: "Request-Id", Success: true},
		},
		Hints:  []Hint{{Header: "Stripe-Should-Retry", Retry: "true", Stop: "false"}},
		Stored: StoredAll, // 500 included
	}.WithDefaults()
}
