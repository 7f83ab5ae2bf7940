package contract

import "time"

// Dwolla is the contract of Dwolla's API. Its status page tells of keys that
// answered 409 for the rest of the day after a 500; then it advised to look
// whether the resource is there, and if not, to use a new key.
func Dwolla() Contract {
	return Contract{
		Name:    "dwolla",
		Source:  "https://developers.dwolla.com/docs/api-reference/api-fundamentals/idempotency-key",
		Methods: onlyPost(),
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: InProgress},
			// A mismatch is not described: key and body are matched together.
		},
	}.WithDefaults()
}
