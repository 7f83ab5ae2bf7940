package contract_test

import (
	"fmt"
	"net/http"

	"github.com/idem-go/idem/contract"
)

// An answer can say itself whether asking again helps. No hint means that the
// status decides.
func ExampleAdvice() {
	stripe := contract.Stripe()
	for _, word := range []string{"true", "false", ""} {
		h := http.Header{}
		if word != "" {
			h.Set("Stripe-Should-Retry", word)
		}
		fmt.Println(stripe.Advice(http.StatusConflict, h, nil))
	}
	// Output:
	// AdviseRetry
	// AdviseStop
	// NoAdvice
}

// A key that does not have the API's format is refused before anything is sent.
func ExampleFormat() {
	words := contract.Contract{Format: contract.FormatWord}
	for _, key := range []string{"order-4711", "order/4711"} {
		_, err := words.Wire(key)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// contract: the key does not have the form that the contract asks for
}

// A hint may stand in a header or in the body.
func ExampleHint() {
	api := contract.Contract{Hints: []contract.Hint{{Path: "error.retryable", Retry: "true", Stop: "false"}}}
	fmt.Println(api.Advice(503, nil, []byte(`{"error":{"retryable":false}}`)))
	// Output: AdviseStop
}

// A marker tells a stored answer from a fresh one. Only an API that marks every
// replay makes its silence mean something.
func ExampleMarker() {
	api := contract.Contract{Replayed: []contract.Marker{{Header: "X-Cache-Status", Yes: []string{"HIT"}, No: []string{"MISS"}}}}
	for _, value := range []string{"HIT", "MISS", "OTHER"} {
		replayed, known := api.Marked(200, http.Header{"X-Cache-Status": {value}})
		fmt.Println(value, replayed, known)
	}
	// Output:
	// HIT true true
	// MISS false true
	// OTHER false false
}

// The first match wins, so the general case comes last.
func ExampleMatch() {
	api := contract.Contract{Answers: []contract.Match{
		{Status: 409, Path: "errors.code", Value: "IN_PROGRESS", Means: contract.InProgress},
		{Status: 409, Means: contract.Final},
	}}
	fmt.Println(api.Classify(409, nil, []byte(`{"errors":[{"code":"IN_PROGRESS"}]}`)))
	fmt.Println(api.Classify(409, nil, []byte(`{"errors":[{"code":"SOLD_OUT"}]}`)))
	// Output:
	// InProgress
	// Final
}

// The same status means different things at different APIs.
func ExampleMeaning() {
	for _, api := range []contract.Contract{contract.Default(), contract.GoCardless()} {
		fmt.Println(api.Name, api.Classify(409, nil, []byte(`{"error":{"errors":[{"reason":"idempotent_creation_conflict"}]}}`)))
	}
	// Output:
	// default InProgress
	// gocardless Done
}

// Where the key is a member of the body it is verified and never injected.
func ExamplePlace() {
	square := contract.Square()
	key, err := square.FromBody([]byte(`{"idempotency_key":"order-4711","amount_money":{"amount":500}}`))
	fmt.Println(square.Place, key, err)
	// Output: InBody order-4711 <nil>
}

// Whether a failure is kept decides what asking again can come to.
func ExampleStored() {
	for _, s := range []contract.Stored{contract.StoredBelow500, contract.StoredSuccess, contract.StoredAll} {
		fmt.Println(s, s.Keeps(201), s.Keeps(402), s.Keeps(500))
	}
	// Output:
	// StoredBelow500 true true false
	// StoredSuccess true false false
	// StoredAll true true true
}
