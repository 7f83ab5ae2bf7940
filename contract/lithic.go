package contract

import "time"

// Lithic is the contract of Lithic's API. Its published rules have changed; where
// the newer page is silent the older one is followed.
func Lithic() Contract {
	return Contract{
		Name:    "lithic",
		Source:  "https://docs.lithic.com/docs/idempotent-requests",
		Methods: onlyPost(),
		Format:  FormatUUID, // the newer page: a valid UUID
		// The rest is the older page: keys are kept for a day at least; a request in
		// progress and a mismatch give an error each, without status or code.
		Window:  24 * time.Hour,
		Answers: []Match{},
		// Read by Lithic's own clients.
		Hints:  []Hint{{Header: "X-Should-Retry", Retry: "true", Stop: "false"}},
		Stored: StoredAll, // 500 included
	}.WithDefaults()
}
