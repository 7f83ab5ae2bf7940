package contract

import "time"

// Azure is the contract of repeatable requests (OASIS, 1.0) as Azure
// Communication Services keep them.
func Azure() Contract {
	return Contract{
		Name:            "azure",
		Source:          "https://learn.microsoft.com/en-us/rest/api/communication/repeatable-requests",
		Header:          "Repeatability-Request-ID",
		FirstSentHeader: "Repeatability-First-Sent",
		Methods:         onlyPost(), // the specification allows PUT, PATCH and DELETE as well
		Format:          FormatUUID,
		Window:          5 * time.Minute,
		Answers: []Match{
			{Status: 409, Means: InProgress}, // of the Email Send API
			{Status: 412, Means: Final},      // the first send is longer ago than the window
			// Another request under the key is a 400 with Repeatability-Result:
			// rejected, as is a malformed id.
		},
		Replayed: []Marker{}, // Repeatability-Result: accepted is on first answers too
		Stored:   StoredBelow500,
	}.WithDefaults()
}
