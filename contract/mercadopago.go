package contract

// MercadoPago is the contract of Mercado Pago's payments, refunds and orders,
// which demand the key.
func MercadoPago() Contract {
	return Contract{
		Name:    "mercadopago",
		Source:  "https://www.mercadopago.com.br/developers/en/docs/wallet-connect/payment-flow/idempotency/responses",
		Header:  "X-Idempotency-Key",
		Methods: onlyPost(), // its own clients send the key with every method but GET
		Window:  windowUnknown,
		Answers: []Match{
			// Given while the payment is processed, and also once it is paid.
			{Status: 409, Path: "cause.code", Value: "401001", Means: InProgress},
			// From the source of its own clients: the key is locked for a while.
			{Status: 423, Means: InProgress},
			// Those clients take other 409s for a conflict of key or state, without a
			// code to tell which.
		},
		Replayed: []Marker{}, // the payment as it is, without a mark
	}.WithDefaults()
}
