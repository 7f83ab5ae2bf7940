package contract

// AmazonPay is the contract of Amazon Pay's API v2.
func AmazonPay() Contract {
	return Contract{
		Name:    "amazonpay",
		Source:  "https://developer.amazon.com/docs/amazon-pay-api-v2/idempotency.html",
		Header:  "X-Amz-Pay-Idempotency-Key",
		Methods: onlyPost(), // on other methods the key has no effect
		// At most 32 letters, digits, hyphens and underscores: a UUID fits without
		// its hyphens.
		Format: FormatHex,
		MaxKey: 32,
		Window: -1, // stored indefinitely
		Answers: []Match{
			{Status: 400, Path: "reasonCode", Value: "DuplicateIdempotencyKey", Means: Mismatch},
			// What a request in progress gives is not published.
		},
	}.WithDefaults()
}
