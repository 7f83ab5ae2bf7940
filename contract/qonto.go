package contract

import "time"

// Qonto is the contract of Qonto's API. Another body under the key is given the
// first one's answer.
func Qonto() Contract {
	return Contract{
		Name:    "qonto",
		Source:  "https://docs.qonto.com/get-started/general/idempotent-requests",
		Header:  "X-Qonto-Idempotency-Key",
		Methods: onlyPost(), // "creating or updating": each endpoint says whether it takes the key
		Window:  30 * time.Minute,
		Answers: []Match{}, // neither a request in progress nor a mismatch is described
		Stored:  StoredSuccess,
	}.WithDefaults()
}
