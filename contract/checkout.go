package contract

import "time"

// Checkout is the contract of Checkout.com. It keeps keys on the endpoints that
// its page lists, such as /payments and their actions, and on no others.
func Checkout() Contract {
	return Contract{
		Name:    "checkout",
		Source:  "https://checkout.com/docs/payments/manage-payments/retry-a-payment",
		Header:  "Cko-Idempotency-Key",
		Methods: onlyPost(),
		Window:  24 * time.Hour,   // until changed by request; the sandbox once had 2 min
		Gap:     30 * time.Second, // the wait that the page recommends before a repeat
		Answers: []Match{
			{Status: 409, Means: InProgress}, // was 429, which is repeated as well
			// What another request with the same key gives is not published, and 422
			// is validation.
		},
		Stored: StoredSuccess, // after a 4xx or 5xx the payment is attempted again
	}.WithDefaults()
}
