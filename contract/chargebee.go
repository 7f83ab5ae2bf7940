package contract

import "time"

// Chargebee is the contract of Chargebee's API. Its page was not read itself:
// the header names are those of Chargebee's own clients, the rest is as others
// cite the page.
func Chargebee() Contract {
	return Contract{
		Name:           "chargebee",
		Source:         "https://apidocs.chargebee.com/docs/api/idempotency",
		Header:         "Chargebee-Idempotency-Key",
		Methods:        onlyPost(),
		MaxKey:         100,
		Window:         30 * time.Minute,
		Answers:        []Match{}, // path, body and headers are compared; the answer is not cited
		Replayed:       []Marker{{Header: "Chargebee-Idempotency-Replayed", Yes: []string{"true"}}},
		PromisesMarker: true,
	}.WithDefaults()
}
