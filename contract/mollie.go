package contract

import "time"

// Mollie is the contract of Mollie's API.
func Mollie() Contract {
	return Contract{
		Name:    "mollie",
		Source:  "https://docs.mollie.com/overview/api-idempotency",
		Methods: onlyPost(), // on other methods the key is ignored
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			// Another request with the same key gives a 400 without a code of its
			// own, so that it cannot be told from other 400s. 422 is validation.
		},
		Replayed:       []Marker{{Header: "Idempotent-Replayed", Yes: []string{"true"}}},
		PromisesMarker: true, // "the presence of" the header tells a replay
	}.WithDefaults()
}
