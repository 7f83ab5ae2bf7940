package contract

import "time"

// PayPal is the contract of PayPal's REST APIs. Not each of them takes the key,
// and each keeps it for a time of its own; set Window and MaxKey for the one
// that is called: Orders v2 6 h and 108 bytes, Payments v2 45 days, Payments v1
// 30 days and 78 bytes, Payouts 30 days, Subscriptions 72 h.
func PayPal() Contract {
	return Contract{
		Name:    "paypal",
		Source:  "https://developer.paypal.com/api/rest/reference/idempotency/",
		Header:  "PayPal-Request-Id",
		Methods: onlyPost(),
		MaxKey:  108,           // of Orders v2
		Window:  3 * time.Hour, // of Payment Method Tokens v3, the shortest
		Answers: []Match{
			{Status: 409, Path: "details.issue", Value: "PREVIOUS_REQUEST_IN_PROGRESS", Means: InProgress},
			// The status of the next three was not found.
			{Path: "details.issue", Value: "PAYPAL_REQUEST_ID_PREVIOUSLY_USED", Means: Mismatch},
			// These say that the id was used, and not whether by another request.
			{Path: "details.issue", Value: "DUPLICATE_REQUEST_ID", Means: Final},
			{Path: "name", Value: "DUPLICATE_REQUEST_ID", Means: Final},
		},
		// No header marks a replay: a repeat answers 200 where the first was 201,
		// and with the resource as it is now.
		Replayed: []Marker{},
	}.WithDefaults()
}
