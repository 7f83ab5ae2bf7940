package contract

import "time"

// OpenBankingUK is the contract of the Open Banking Read/Write API Profile 4.0.
// It allows the key on marked POSTs only; it must not be sent elsewhere.
func OpenBankingUK() Contract {
	return Contract{
		Name:    "openbankinguk",
		Source:  "https://github.com/OpenBankingUK/read-write-api-docs-pub/blob/ab19be9a0b4991f960f3c87ad0929dea2b2a6702/docs/v4.0/profiles/read-write-data-api-profile.md",
		Header:  "X-Idempotency-Key",
		Methods: onlyPost(),
		MaxKey:  40,
		Window:  24 * time.Hour,
		Gap:     time.Second, // between two payments that are duplicates
		// Another body under the key is a breach, which a bank may treat as fraud;
		// the profile gives it no status.
		Answers:  []Match{},
		Replayed: []Marker{}, // 201 with the status as it is now, without a mark
	}.WithDefaults()
}
