package contract

import "time"

// Whop is the contract of Whop's API.
func Whop() Contract {
	return Contract{
		Name:    "whop",
		Source:  "https://docs.whop.com/developer/api/idempotency",
		Methods: onlyPost(), // on other methods, and without authentication, the key is ignored
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 400, Path: "error.code", Value: "idempotency_key_mismatch", Means: Mismatch},
			// What a request in progress gives could not be read.
		},
		Replayed:       []Marker{{Header: "Idempotent-Replayed", Yes: []string{"true"}}},
		PromisesMarker: true,
		Stored:         StoredBelow500, // a 4xx is the outcome, and returns
	}.WithDefaults()
}
