package contract

// GoCardless is the contract of GoCardless's API, where a repeat is not answered
// with the first answer but with a 409 that holds the id of what was created, in
// error.errors.links.conflicting_resource_id.
//
// That 409 means done. idem's Client.Call returns no error for it and reads out
// from this document, which has nothing else of the resource: get it by its id.
// Where Call returns an error for another cause, Answered with 409 is done, too.
func GoCardless() Contract {
	return Contract{
		Name:    "gocardless",
		Source:  "https://gocardless.com/blog/idempotency-keys",
		Methods: onlyPost(),
		Window:  windowUnknown,
		Answers: []Match{
			// The only use of the code is this; GoCardless's clients GET the id next.
			{Status: 409, Path: "error.errors.reason", Value: "idempotent_creation_conflict", Means: Done},
		},
		Replayed: []Marker{},
		Stored:   StoredSuccess, // a failed request may be sent again with its key
	}.WithDefaults()
}
