package mockserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// memory starts a server in memory.
func memory(config mockserver.Config) *mockserver.Server {
	config.Addr = "memory"
	srv, err := mockserver.Start(config)
	if err != nil {
		panic(err)
	}
	return srv
}

// post sends one request with a key and returns the status; 0: no answer.
func post(srv *mockserver.Server, path, key, body string) int {
	req, _ := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader(body))
	req.Header.Set("Idempotency-Key", key)
	resp, err := srv.Client().Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// The log says of each request who answered it: the handler, the key layer or a
// fault.
func ExampleAnswer() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	srv.On("POST /orders").Then("503@received", "reset@stored")
	for _, body := range []string{`{"amount":5}`, `{"amount":5}`, `{"amount":5}`, `{"amount":6}`} {
		post(srv, "/orders", "k-1", body)
	}
	for _, r := range srv.Requests("k-1") {
		fmt.Println(r.Status, r.Answer)
	}
	// Output:
	// 503 injected
	// 0 unanswered
	// 201 replayed
	// 422 mismatched
}

// What a client told its caller is held against the ledger.
func ExampleBelief() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	post(srv, "/orders", "k-1", "{}")
	for _, belief := range []mockserver.Belief{mockserver.Unsure, mockserver.Done, mockserver.NotDone} {
		srv.Believe("k-1", belief)
		fmt.Println(srv.Verify())
	}
	// Output:
	// <nil>
	// <nil>
	// mockserver: phantom: key "k-1" is believed not done, yet there are effects: 1
}

// A breach is an error that says what kind it is and which key it is about.
func ExampleBreach() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	srv.Believe("k-1", mockserver.Done)
	if breach, ok := errors.AsType[*mockserver.Breach](srv.Verify()); ok {
		fmt.Println(breach.Kind, breach.Key)
	}
	// Output: lost k-1
}

// A server that keeps the contract of a real API.
func ExampleConfig() {
	srv := memory(mockserver.Config{Contract: contract.Stripe()})
	defer srv.Close()
	fmt.Println(post(srv, "/charges", "k-1", `{"amount":5}`), post(srv, "/charges", "k-1", `{"amount":6}`))
	// Output: 201 400
}

// The ledger tells what was really done, and by which request.
func ExampleEffect() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	srv.On("POST /orders").Then("drop@received", "reset@stored")
	for range 3 {
		post(srv, "/orders", "k-1", `{"amount":5}`)
	}
	for _, e := range srv.Effects("k-1") {
		fmt.Printf("%s by request %d of %d\n", e.Name, e.Request, len(srv.Requests("k-1")))
	}
	// Output: order by request 2 of 3
}

// Some servers give another answer to a repeat than the first one's.
func ExampleKind() {
	srv := memory(mockserver.Config{Kind: mockserver.Kind{Again: "409 body=`{\"error\":\"duplicate\",\"of\":\"{id}\"}`"}})
	defer srv.Close()
	fmt.Println(post(srv, "/orders", "k-1", "{}"), post(srv, "/orders", "k-1", "{}"))
	// Output: 201 409
}

// A fault at Received loses a request, one at Stored loses an answer. That is the
// difference that no client can see.
func ExamplePoint() {
	for _, point := range []mockserver.Point{mockserver.Received, mockserver.Stored} {
		srv := memory(mockserver.Config{})
		srv.On("POST /orders").Then(mockserver.Fault("reset@" + point))
		fmt.Println(point, "status:", post(srv, "/orders", "k-1", "{}"), "effects:", len(srv.Effects("k-1")))
		_ = srv.Close()
	}
	// Output:
	// received status: 0 effects: 0
	// stored status: 0 effects: 1
}

// A request is in the log as it arrived.
func ExampleRequest() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	post(srv, "/orders", "k-1", `{"amount":5}`)
	r := srv.Requests("k-1")[0]
	fmt.Println(r.Seq, r.Method, r.URL, string(r.Body), r.Status)
	// Output: 1 POST /orders {"amount":5} 201
}

// table is a test that reports through something else than a testing.T.
type table struct{ cleanups []func() }

func (t *table) Helper()                           {}
func (t *table) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *table) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (t *table) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// New takes anything that has four methods of a testing.TB: any test framework
// can report through it. A fault that nobody met fails the test when it ends.
func ExampleTB() {
	t := &table{}
	srv := mockserver.New(t, mockserver.Config{})
	srv.On("POST /orders").Then("reset@stored")
	for _, end := range t.cleanups {
		end()
	}
	// Output: mockserver: the fault "reset@stored" of On("POST /orders"), step 1, was not met
}

// A test waits until an attempt has come to a point, without sleeping.
func ExampleServer_Await() {
	srv := memory(mockserver.Config{})
	defer srv.Close()
	srv.On("POST /orders").Then("hang@worked")
	done := make(chan int)
	go func() { done <- post(srv, "/orders", "k-1", "{}") }()
	fmt.Println(srv.Await(context.Background(), "k-1", 1, mockserver.Worked))
	fmt.Println("effects:", len(srv.Effects("k-1")))
	srv.Release("k-1")
	fmt.Println("status:", <-done)
	// Output:
	// <nil>
	// effects: 1
	// status: 201
}
