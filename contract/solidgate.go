package contract

// Solidgate is the contract of Solidgate's API v2. An endpoint that does not
// honour keys answers with Idempotency-Status: ignored.
func Solidgate() Contract {
	return Contract{
		Name:    "solidgate",
		Source:  "https://api-docs.solidgate.com/api/v2/idempotent-requests",
		Methods: onlyPost(),
		Window:  windowUnknown,
		Answers: []Match{
			{Status: 422, Means: Mismatch},
			// What a request in progress gives could not be read.
		},
		// Idempotency-Status has other values than "ignored"; which they are could
		// not be read.
		Replayed: []Marker{},
	}.WithDefaults()
}
