package contract_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem/contract"
)

// A contract is a value. Name what differs; the rest is Default's.
func Example() {
	acme := contract.Contract{
		Name:   "acme",
		Header: "X-Acme-Key",
		MaxKey: 64,
		Answers: []contract.Match{
			{Status: http.StatusConflict, Path: "error.code", Value: "key_reused", Means: contract.Mismatch},
			{Status: http.StatusConflict, Means: contract.InProgress},
		},
	}
	fmt.Println(acme.Validate())
	fmt.Println(acme.Classify(409, nil, []byte(`{"error":{"code":"key_reused"}}`)))
	fmt.Println(acme.Classify(409, nil, nil))
	fmt.Println(acme.Keys("PATCH"), acme.WithDefaults().Window)
	// Output:
	// <nil>
	// Mismatch
	// InProgress
	// true 24h0m0s
}

// Wire gives the header value, the same for the same key always.
func ExampleContract_Wire() {
	const key = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	hex := contract.Contract{Format: contract.FormatHex}
	for _, c := range []contract.Contract{contract.Default(), contract.IETF(), hex} {
		wire, err := c.Wire(key)
		fmt.Println(wire, err)
	}
	_, err := hex.Wire("order-4711")
	fmt.Println(err)
	// Output:
	// 3f2504e0-4f89-41d3-9a0c-0305e82c3301 <nil>
	// "3f2504e0-4f89-41d3-9a0c-0305e82c3301" <nil>
	// 3f2504e04f8941d39a0c0305e82c3301 <nil>
	// contract: the key does not have the form that the contract asks for
}

// Unwire is for the server: it gives the key that a header value stands for.
func ExampleContract_Unwire() {
	fmt.Println(contract.IETF().Unwire(`"order-4711"`))
	fmt.Println(contract.IETF().Unwire(`order-4711`))
	// Output:
	// order-4711 <nil>
	//  contract: the key is not a quoted string, as ietf asks
}

// Marked has three answers: a replay, a fresh answer, not known.
func ExampleContract_Marked() {
	c := contract.Default()
	for _, h := range []http.Header{
		{"Idempotent-Replayed": {"true"}},
		{"Original-Request": {"req_1"}, "Request-Id": {"req_1"}},
		{},
	} {
		replayed, known := c.Marked(http.StatusOK, h)
		fmt.Println(replayed, known)
	}
	// Output:
	// true true
	// false true
	// false false
}

// Advice is the server's own word, before the status is judged.
func ExampleContract_Advice() {
	h := http.Header{"X-Should-Retry": {"false"}}
	fmt.Println(contract.Default().Advice(503, h, nil))
	// Output: AdviseStop
}

// Validate names every fault at once.
func ExampleContract_Validate() {
	fmt.Println(contract.Contract{Header: "Idempotency Key", Methods: []string{"GET"}}.Validate())
	// Output:
	// contract: Header "Idempotency Key" is not a header name
	// contract: Methods: a GET never carries a key
}

// An API of the catalogue is a value like any other, and may be corrected.
func ExampleByName() {
	adyen, err := contract.ByName("adyen")
	fmt.Println(adyen.MaxKey, adyen.Window, err)
	adyen.Window = 31 * 24 * time.Hour
	fmt.Println(adyen.Classify(422, nil, []byte(`{"status":422,"errorCode":"704"}`)))
	fmt.Println(adyen.Classify(422, nil, []byte(`{"status":422,"errorCode":"101"}`)))
	// Output:
	// 64 168h0m0s <nil>
	// InProgress
	// Unclassified
}
