package contract

// Increase is the contract of Increase's API. Its lists can be filtered by
// idempotency_key, which finds what a lost answer has created.
func Increase() Contract {
	return Contract{
		Name:    "increase",
		Source:  "https://increase.com/documentation/idempotency-keys",
		Methods: onlyPost(),
		MaxKey:  200,
		// A key is promised to create one object at most; until when is not said.
		Window: windowUnknown,
		Answers: []Match{
			{Status: 409, Path: "type", Value: "idempotency_key_already_used_error", Means: Mismatch},
			// What a request in progress gives is not published.
		},
		Replayed:       []Marker{{Header: "Idempotent-Replayed", Yes: []string{"true"}}},
		PromisesMarker: true,
		Hints:          []Hint{{Header: "X-Should-Retry", Retry: "true", Stop: "false"}}, // read by Increase's own clients
	}.WithDefaults()
}
