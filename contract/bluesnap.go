package contract

// BlueSnap is the contract of BlueSnap's JSON API.
func BlueSnap() Contract {
	return Contract{
		Name:    "bluesnap",
		Source:  "https://developers.bluesnap.com/v8976-JSON/reference/idempotency-errors",
		Methods: onlyPost(),
		Format:  FormatHyphen,
		MaxKey:  64,
		Window:  windowUnknown, // "up to 24 hours": no least time
		Answers: []Match{
			{Status: 422, Path: "message.code", Value: "60101", Means: Mismatch},
			{Status: 409, Path: "message.code", Value: "60102", Means: InProgress},
			// The status of the next three is not published.
			{Path: "message.code", Value: "60103", Means: KeyRefused},
			{Path: "message.code", Value: "60104", Means: KeyRefused},
			{Path: "message.code", Value: "60106", Means: Transient}, // the store of keys is away
		},
	}.WithDefaults()
}
