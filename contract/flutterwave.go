package contract

// Flutterwave is the contract of Flutterwave's API.
func Flutterwave() Contract {
	return Contract{
		Name:           "flutterwave",
		Source:         "https://developer.flutterwave.com/docs/idempotency",
		Header:         "X-Idempotency-Key",
		Methods:        onlyPost(),
		Window:         windowUnknown,
		Answers:        []Match{}, // neither a request in progress nor a mismatch could be read
		Replayed:       []Marker{{Header: "X-Idempotency-Cache-Hit", Yes: []string{"true"}}},
		PromisesMarker: true,
	}.WithDefaults()
}
