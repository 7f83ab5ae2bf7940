package contract

import "time"

// PPRO is the contract of PPRO's Global API.
func PPRO() Contract {
	return Contract{
		Name:    "ppro",
		Source:  "https://developerhub.ppro.com/global-api/reference/api-requests-idempotency",
		Header:  "Request-Idempotency-Key",
		Methods: onlyPost(),
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			// The answer to another body under the key could not be read.
		},
		Replayed:       []Marker{{Header: "Request-Idempotency", Yes: []string{"true"}}},
		PromisesMarker: true,
		Stored:         StoredSuccess, // a 4xx is not stored; of 5xx only that they may be repeated is said
	}.WithDefaults()
}
