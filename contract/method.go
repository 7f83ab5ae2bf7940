package contract

// Method is the contract of Method Financial's API. When its store of keys is
// away it answers 503 with the subtype IDEMPOTENCY_UNAVAILABLE, which is repeated
// like any 503.
func Method() Contract {
	return Contract{
		Name:    "method",
		Source:  "https://docs.methodfi.com/reference/idempotency",
		Methods: onlyPost(),
		Window:  windowUnknown,
		Answers: []Match{}, // neither a request in progress nor a mismatch is described
		Stored:  StoredAll, // 500 included
	}.WithDefaults()
}
