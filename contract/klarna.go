package contract

import (
	"net/http"
	"time"
)

// Klarna is the contract of Klarna's API for partners.
func Klarna() Contract {
	return Contract{
		Name:    "klarna",
		Source:  "https://docs.klarna.com/acquirer/klarna-direct/setup-your-integration/integration-resilience/idempotency/",
		Header:  "Klarna-Idempotency-Key",
		Methods: []string{http.MethodPost, http.MethodPatch},
		Format:  FormatUUIDv5,
		Window:  24 * time.Hour,
		Answers: []Match{}, // neither a request in progress nor a mismatch is described
	}.WithDefaults()
}
