package contract

import "time"

// TrueLayer is the contract of TrueLayer's Payments API v3.
func TrueLayer() Contract {
	return Contract{
		Name:    "truelayer",
		Source:  "https://docs.truelayer.com/docs/idempotency-for-payment-requests",
		Methods: onlyPost(),
		Window:  6 * time.Hour, // one page; another says 30 days
		Answers: []Match{
			// https://docs.truelayer.com/docs/error-types
			{Status: 409, Path: "type", Value: "idempotency-key-concurrency-conflict", Means: InProgress},
			{Status: 409, Path: "type", Value: "concurrency-conflict", Means: Transient}, // another request has the resource
			{Status: 422, Path: "type", Value: "idempotency-key-reuse", Means: Mismatch},
		},
		Hints: []Hint{{Header: "Tl-Should-Retry", Retry: "true", Stop: "false"}}, // as third parties cite it
	}.WithDefaults()
}
