package contract

import "time"

// Adyen is the contract of Adyen's APIs. Keys belong to the company account and
// are not shared between regions.
func Adyen() Contract {
	return Contract{
		Name:    "adyen",
		Source:  "https://docs.adyen.com/development-resources/api-idempotency",
		Methods: onlyPost(),
		MaxKey:  64,
		// One page says 31 days at least; newer ones are cited with 7 to 14 days.
		Window: 7 * 24 * time.Hour,
		Answers: []Match{
			// 704 is "in progress"; both statuses are reported, by third parties.
			{Status: 422, Path: "errorCode", Value: "704", Means: InProgress},
			{Status: 409, Path: "errorCode", Value: "704", Means: InProgress},
			// 703: the store of keys is down; reported by third parties.
			{Status: 503, Path: "errorCode", Value: "703", Means: Transient},
		},
		Replayed: []Marker{}, // the key is echoed on first answers too
		// Without the header, or with false, a repeat gives the same error.
		Hints: []Hint{{Header: "Transient-Error", Retry: "true", Stop: "false", SilenceStops: true}},
		// Errors that are not transient are stored, whatever their status; which
		// those are only the hint tells.
		Stored: StoredBelow500,
	}.WithDefaults()
}
