package contract

import "time"

// SmartRetry is the contract of SmartRetry's API. A repeat waits up to 10 s for
// the first request; then it is a 503 with the code RESOURCE_LOCKED.
func SmartRetry() Contract {
	return Contract{
		Name:    "smartretry",
		Source:  "https://www.smartretry.com/docs/api-reference/idempotency",
		Methods: onlyPost(), // of /v1/payments; on other methods the key is ignored
		Format:  FormatWord,
		Window:  24 * time.Hour,
		Answers: []Match{
			{Status: 409, Means: Mismatch}, // IDEMPOTENCY_CONFLICT
			// The page names the code but not the member that holds it; these are the
			// usual ones. Not found, it is a 503 and repeated like any other.
			{Status: 503, Path: "code", Value: "RESOURCE_LOCKED", Means: InProgress},
			{Status: 503, Path: "error", Value: "RESOURCE_LOCKED", Means: InProgress},
			{Status: 503, Path: "error.code", Value: "RESOURCE_LOCKED", Means: InProgress},
		},
		// On every answer that is stored: false at first, then true.
		Replayed:       []Marker{{Header: "Idempotency-Replayed", Yes: []string{"true"}, No: []string{"false"}}},
		PromisesMarker: true,
		Stored:         StoredBelow500,
	}.WithDefaults()
}
