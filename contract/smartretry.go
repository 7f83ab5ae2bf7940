package contract

import "time"

// SmartRetry is the contract of SmartRetry's API. A repeat waits up to 10 s for
// the first request; then it is a 503 with the code RESOURCE_LOCKED, which is
// repeated like any 503.
func SmartRetry() Contract {
	return Contract{
		Name:    "smartretry",
		Source:  "https://www.smartretry.com/docs/api-reference/idempotency",
		Methods: onlyPost(),
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: Mismatch},
		},
		Stored: StoredBelow500,
	}.WithDefaults()
}
