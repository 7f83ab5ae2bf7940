package contract

// Square is the contract of Square's Connect API, where the key is a member of
// the body. How long it may be depends on the operation: 45 bytes for payments
// and most others, up to 255 for some.
func Square() Contract {
	return Contract{
		Name:    "square",
		Source:  "https://developer.squareup.com/docs/working-with-apis/idempotency",
		Place:   InBody,
		Header:  "idempotency_key",
		Methods: onlyPost(),
		MaxKey:  45,
		Window:  windowUnknown, // Square says that it publishes none
		Answers: []Match{
			// The code is from Square's specification; its status is not there.
			{Path: "errors.code", Value: "IDEMPOTENCY_KEY_REUSED", Means: Mismatch},
		},
		Stored: StoredSuccess, // the first successful answer is the one that returns
	}.WithDefaults()
}
