package contract

// Sinch is the contract of Sinch's APIs, as far as their registry of errors
// tells it.
func Sinch() Contract {
	return Contract{
		Name:    "sinch",
		Source:  "https://developers.sinch.com/docs/errors/registry/idempotency-conflict",
		Methods: onlyPost(),
		Window:  windowUnknown,
		Answers: []Match{
			{Status: 409, Path: "type", Value: "idempotency-conflict", Means: InProgress},
		},
	}.WithDefaults()
}
