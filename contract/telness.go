package contract

import "time"

// Telness is the contract of Telness Tech's API, where a 409 has two meanings.
func Telness() Contract {
	return Contract{
		Name:    "telness",
		Source:  "https://docs.telnesstech.com/api-reference/idempotency",
		Header:  "X-Idempotency-Key",
		Methods: onlyPost(),
		Window:  24 * time.Hour,
		Answers: []Match{
			// The page names the codes but not the member that holds them; these are
			// the usual ones.
			{Status: 409, Path: "code", Value: "idempotency_key_mismatch", Means: Mismatch},
			{Status: 409, Path: "error", Value: "idempotency_key_mismatch", Means: Mismatch},
			{Status: 409, Path: "error.code", Value: "idempotency_key_mismatch", Means: Mismatch},
			{Status: 409, Path: "type", Value: "idempotency_key_mismatch", Means: Mismatch},
			// Taken wrongly for this, a mismatch is repeated a few times in vain.
			{Status: 409, Means: InProgress},
		},
	}.WithDefaults()
}
