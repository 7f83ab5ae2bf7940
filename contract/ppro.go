package contract

import "time"

// PPRO is the contract of PPRO's Global API.
func PPRO() Contract {
	return Contract{
		Name:    "ppro",
		Source:  "https://developerhub.ppro.com/global-api/reference/api-requests-idempotency",
		Header:  "Request-Idempotency-Key",
		Methods: onlyPost(), // another page names PATCH as well
		Window:  24 * time.Hour,
		Answers: []Match{
			// Another body under the key is a 409 as well, without a code to tell the
			// two apart: it is repeated a few times in vain.
			{Status: 409, Means: InProgress},
		},
		Replayed:       []Marker{{Header: "Request-Idempotency", Yes: []string{"true"}}},
		PromisesMarker: true,
		Stored:         StoredSuccess, // a 4xx is not stored; of 5xx only that they may be repeated is said
	}.WithDefaults()
}
