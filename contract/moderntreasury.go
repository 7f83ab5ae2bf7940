package contract

import "time"

// ModernTreasury is the contract of Modern Treasury's API. A key is not bound to
// a route: sent to another, it gives the stored answer of the first.
func ModernTreasury() Contract {
	return Contract{
		Name:    "moderntreasury",
		Source:  "https://docs.moderntreasury.com/reference/idempotent-requests",
		Methods: onlyPost(), // on other methods the key is ignored
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			// There is no answer for another request under the key.
		},
		Hints:  []Hint{{Header: "X-Should-Retry", Retry: "true", Stop: "false"}}, // read by its own clients
		Stored: StoredSuccess,
	}.WithDefaults()
}
