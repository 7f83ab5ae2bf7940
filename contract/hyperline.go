package contract

import (
	"net/http"
	"time"
)

// Hyperline is the contract of Hyperline's API.
func Hyperline() Contract {
	return Contract{
		Name:    "hyperline",
		Source:  "https://docs.hyperline.co/developers/idempotent-requests",
		Methods: []string{http.MethodPost, http.MethodPut, http.MethodPatch},
		MinKey:  16, // a recommendation, for randomness
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			{Status: 417, Means: Mismatch}, // another method, URL or body
		},
		Stored: StoredSuccess,
	}.WithDefaults()
}
