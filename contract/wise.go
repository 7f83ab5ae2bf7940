package contract

// Wise is the contract of Wise's transfers, where the key is the member
// customerTransactionId of the body. Balances keep theirs in a header: see
// [WiseBalance]. This one has the plain name because it fails safely: on a
// balance it refuses for want of the member, while a header sent with a transfer
// would be ignored.
func Wise() Contract {
	return Contract{
		Name:    "wise",
		Source:  "https://docs.wise.com/guides/product/send-money/standard-api-transfers",
		Place:   InBody,
		Header:  "customerTransactionId",
		Methods: onlyPost(),
		Format:  FormatUUID,
		Window:  windowUnknown,
		Answers: []Match{}, // only that a repeat makes no second transfer is published
	}.WithDefaults()
}

// WiseBalance is the contract of Wise's multi-currency balances, which demand
// the key.
func WiseBalance() Contract {
	return Contract{
		Name:    "wisebalance",
		Source:  "https://docs.wise.com/api-reference/balance/balancecreate",
		Header:  "X-Idempotence-Uuid",
		Methods: onlyPost(),
		Format:  FormatUUID,
		Window:  windowUnknown,
		Answers: []Match{}, // not published
	}.WithDefaults()
}
