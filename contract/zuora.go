package contract

import (
	"net/http"
	"time"
)

// Zuora is the contract of Zuora's API.
func Zuora() Contract {
	return Contract{
		Name:    "zuora",
		Source:  "https://developer.zuora.com/docs/guides/idempotent-requests",
		Methods: []string{http.MethodPost, http.MethodPatch},
		MaxKey:  254, // "less than 255"
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			{Status: 422, Means: Mismatch}, // "usually"
		},
		Stored: StoredAll, // "succeeded or failed"
	}.WithDefaults()
}
