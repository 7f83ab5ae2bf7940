package contract

import (
	"net/http"
	"time"
)

// Easypay is the contract of easypay's API 2.0.
func Easypay() Contract {
	return Contract{
		Name:    "easypay",
		Source:  "https://docs.easypay.pt/docs/idempotency",
		Methods: []string{http.MethodPost, http.MethodPatch},
		MaxKey:  50,
		Window:  24 * time.Hour,
		Answers: []Match{
			// Stored, and not to be repeated; but a gateway in front gives the same
			// status, so that it settles nothing. 503 and 429 run again.
			{Status: 500, Means: Final},
			// Another body is "an error", without status or code.
		},
		// The page says true, its source in public says 1.
		Replayed:       []Marker{{Header: "Idempotency-Replay", Yes: []string{"true", "1"}}},
		PromisesMarker: true,
		Stored:         StoredAll, // all but 400, 412, 429 and 503
	}.WithDefaults()
}
