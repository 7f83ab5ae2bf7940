package contract

import "time"

// Mangopay is the contract of Mangopay's API, where every repeat is a 409,
// whatever came of the first request; a GET by the key gives the first answer.
func Mangopay() Contract {
	return Contract{
		Name:    "mangopay",
		Source:  "https://docs.mangopay.com/api-reference/overview/idempotency",
		Methods: onlyPost(),
		Format:  FormatHyphen,
		MinKey:  16,
		MaxKey:  36,
		Window:  24 * time.Hour,
		Answers: []Match{
			// Not Done: the answer does not hold what came of the first request, which
			// may have failed, or run still.
			{Status: 409, Path: "Type", Value: "idempotent_creation_conflict", Means: Final},
		},
		Replayed: []Marker{},
		Stored:   StoredAll,
	}.WithDefaults()
}
