package contract

import "time"

// Telnyx is the contract that Telnyx describes as its general one; some of its
// endpoints keep another.
func Telnyx() Contract {
	return Contract{
		Name:    "telnyx",
		Source:  "https://developers.telnyx.com/docs/development/api-fundamentals/idempotency",
		Methods: onlyPost(), // the reference of each endpoint says whether it takes the key
		Format:  FormatColon,
		Window:  24 * time.Hour,
		Answers: []Match{
			// Another body or query under the key; a code to tell it from other 422s
			// was not found, and neither is repeated.
			{Status: 422, Means: Mismatch},
		},
		Stored: StoredSuccess,
	}.WithDefaults()
}
