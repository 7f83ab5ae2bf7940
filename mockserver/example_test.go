package mockserver_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// The answer to the first attempt is lost, the second is turned away, the third
// gets the stored answer: three requests, one order.
func Example() {
	srv, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("POST /orders").Then("reset@stored", "503@received")

	in := idem.Open()
	client := &http.Client{Transport: &idem.Transport{Base: srv.Transport()}}
	req, _ := http.NewRequestWithContext(idem.WithIntent(context.Background(), in), "POST", srv.URL+"/orders", strings.NewReader(`{"amount":500}`))
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()

	for _, r := range srv.Requests(in.Key()) {
		fmt.Printf("attempt %d met %q: %d %s\n", r.Attempt, r.Fault, r.Status, r.Answer)
	}
	fmt.Println("effects:", len(srv.Effects(in.Key())), "breaches:", srv.Verify())
	// Output:
	// attempt 1 met "reset@stored": 0 unanswered
	// attempt 2 met "503@received": 503 injected
	// attempt 3 met "": 201 replayed
	// effects: 1 breaches: <nil>
}

// A whole test in virtual time: half a minute passes in no time.
func ExampleNew() {
	TestCharge := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := mockserver.New(t, mockserver.Config{})
			srv.On("POST /charges").Then("reset@stored", "503@received retry-after=30")
			client, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{Base: srv.Transport()}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Call(t.Context(), idem.Open(), "POST", "/charges", map[string]int{"amount": 500}, nil); err != nil {
				t.Fatal(err)
			}
			if err := srv.Verify(); err != nil {
				t.Fatal(err)
			}
		})
	}
	passed, _ := runTest(TestCharge)
	fmt.Println("passed:", passed)
	// Output: passed: true
}

// runTest runs a test function outside of "go test", in silence.
func runTest(f func(t *testing.T)) (passed bool, err error) {
	stdout := os.Stdout
	if os.Stdout, err = os.Open(os.DevNull); err != nil {
		return false, err
	}
	defer func() { os.Stdout = stdout }()
	match := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(match, []testing.InternalTest{{Name: "Test", F: f}}), nil
}

// A handler of one's own records what it did; the key layer is the server's.
func ExampleDid() {
	srv, err := mockserver.Start(mockserver.Config{Addr: "memory", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mockserver.Did(r.Context(), "email", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusAccepted)
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	for range 2 {
		req, _ := http.NewRequest("POST", srv.URL+"/send?to=ann", nil)
		req.Header.Set("Idempotency-Key", "k-1")
		resp, err := srv.Client().Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Printf("%d %q\n", resp.StatusCode, resp.Header.Get("Idempotent-Replayed"))
	}
	for _, e := range srv.Effects("k-1") {
		fmt.Println(e.Seq, e.Name, e.Value)
	}
	// Output:
	// 202 ""
	// 202 "true"
	// 1 email ann
}

// The order in which two attempts reach the work is the test's to choose.
func ExampleServer_Release() {
	srv, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("POST /orders").Then("hang@received")
	post := func(done chan<- string) {
		req, _ := http.NewRequest("POST", srv.URL+"/orders", strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k-1")
		resp, err := srv.Client().Do(req)
		if err != nil {
			done <- err.Error()
			return
		}
		_ = resp.Body.Close()
		done <- fmt.Sprintf("%d, replayed %q", resp.StatusCode, resp.Header.Get("Idempotent-Replayed"))
	}
	first, second := make(chan string, 1), make(chan string, 1)
	go post(first)
	_ = srv.Await(context.Background(), "k-1", 1, mockserver.Received)
	post(second)
	fmt.Println("attempt 2:", <-second)
	fmt.Println("released:", srv.Release("k-1", 1))
	fmt.Println("attempt 1:", <-first)
	// Output:
	// attempt 2: 201, replayed ""
	// released: 1
	// attempt 1: 201, replayed "true"
}

// Every breach is one line.
func ExampleServer_Verify() {
	srv, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("POST /orders").Then("503@stored")
	req, _ := http.NewRequest("POST", srv.URL+"/orders", strings.NewReader("{}"))
	req.Header.Set("Idempotency-Key", "k-1")
	resp, err := srv.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	srv.Believe("k-1", mockserver.NotDone) // as a client does that takes a 503 for a no
	fmt.Println(srv.Verify())
	// Output: mockserver: phantom: key "k-1" is believed not done, yet there are effects: 1
}

func ExampleFault_Validate() {
	fmt.Println(mockserver.Fault("reset@stored").Validate())
	fmt.Println(mockserver.Fault("rest@stored").Validate())
	fmt.Println(mockserver.Fault("delay@received").Validate())
	// Output:
	// <nil>
	// mockserver: fault "rest@stored": there is no action "rest"; did you mean "reset"?
	// mockserver: fault "delay@received": delay needs for=
}

// Half of all attempts meet a fault, always the same ones for this seed.
func ExampleScript_Sometimes() {
	srv, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.On("GET /").Sometimes(0.5, 7, "503@received", "418@received")
	for range 6 {
		resp, err := srv.Client().Get(srv.URL + "/orders")
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Print(resp.StatusCode, " ")
	}
	// Output: 200 200 503 200 200 418
}
