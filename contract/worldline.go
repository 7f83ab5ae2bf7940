package contract

import "time"

// Worldline is the contract of Worldline Direct. Another request under the key
// is given the first one's answer.
func Worldline() Contract {
	return Contract{
		Name:    "worldline",
		Source:  "https://docs.direct.worldline-solutions.com/integration/api-developer-guide/idempotent-requests",
		Header:  "X-GCS-Idempotence-Key",
		Methods: onlyPost(),
		MaxKey:  40,
		Window:  24 * time.Hour, // at least
		Answers: []Match{
			{Status: 409, Means: InProgress},
		},
		// It is on every answer but the first, and so on the 409 of a request in
		// progress, where it marks no stored answer.
		Replayed: []Marker{{Header: "X-GCS-Idempotence-Request-Timestamp", Success: true}},
	}.WithDefaults()
}
