package contract

import "time"

// EPay is the contract of ePay (Denmark). Key, endpoint and method together
// identify a request; its body is not compared.
func EPay() Contract {
	return Contract{
		Name:           "epay",
		Source:         "https://docs.epay.eu/guides/idempotency-keys",
		Methods:        onlyPost(),
		Window:         24 * time.Hour,
		Answers:        []Match{}, // neither a request in progress nor a mismatch is described
		Replayed:       []Marker{{Header: "Idempotent-Replayed", Yes: []string{"true"}}},
		PromisesMarker: true,
	}.WithDefaults()
}
