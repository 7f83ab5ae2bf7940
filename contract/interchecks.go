package contract

import "time"

// Interchecks is the contract of Interchecks's API v2, where the answer to a
// finished request returns under the status 409: it settles the Intent, and only
// its body tells a success from a failure.
func Interchecks() Contract {
	return Contract{
		Name:    "interchecks",
		Source:  "https://docs-v2.interchecks.com/docs/idempotent-requests",
		Methods: onlyPost(), // of payments and transactions
		Window:  24 * time.Hour,
		Answers: []Match{
			// A request in progress is a 102, which net/http takes for the beginning
			// of an answer: it shows as a broken one, and is repeated.
			//
			// The original body returns; whether it tells of a success only the body
			// says, so that this is no Done.
			{Status: 409, Means: Settled},
		},
		Replayed: []Marker{},
		Stored:   StoredSuccess, // keys are honoured for 2xx answers
	}.WithDefaults()
}
