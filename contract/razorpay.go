package contract

// Razorpay is the contract of RazorpayX payouts, which demand the key. Direct
// transfers of Razorpay Route keep the same rules under another header; for them
// set Header to "X-Transfer-Idempotency".
func Razorpay() Contract {
	return Contract{
		Name:    "razorpay",
		Source:  "https://razorpay.com/docs/api/x/payout-idempotency/make-request",
		Header:  "X-Payout-Idempotency",
		Methods: onlyPost(),
		Format:  FormatWord, // spaces are allowed too, but not here: proxies trim them
		MinKey:  4,
		MaxKey:  36,
		Window:  windowUnknown,
		Answers: []Match{
			{Status: 409, Means: InProgress}, // published for transfers
			// Another body under the key gives BAD_REQUEST_ERROR, as any other fault
			// of the request does.
		},
	}.WithDefaults()
}
