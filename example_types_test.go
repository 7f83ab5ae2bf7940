package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// A key that an older program has minted, and may have sent, goes on as it is.
func ExampleAdopt() {
	server, client := start()
	defer server.Close()
	charge, err := idem.Adopt("order-42-charge", time.Now().Add(-time.Hour)) // from its table
	if err != nil {
		panic(err)
	}
	fmt.Println("before:", charge.Outcome())
	_, err = client.Call(context.Background(), charge, "POST", "/charges", order{500}, nil)
	fmt.Println("after:", charge.Outcome(), err, "effects:", len(server.Effects("order-42-charge")))
	// Output:
	// before: unknown
	// after: answered <nil> effects: 1
}

// A RoundTripper as Base sees each attempt, and signs it anew.
func ExampleAttemptNumber() {
	server, _ := start("503@received")
	defer server.Close()
	network := server.Transport()
	signed := roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context()) // a RoundTripper must not change the request that it is given
		r.Header.Set("X-Signature", "made of the time, the key and the body")
		fmt.Println("signed: attempt", idem.AttemptNumber(r.Context()))
		return network.RoundTrip(r)
	})
	client, _ := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base:    signed,
		Backoff: idem.Exponential(time.Millisecond, 10*time.Millisecond),
	}})
	_, err := client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
	fmt.Println(err)
	// Output:
	// signed: attempt 1
	// signed: attempt 2
	// <nil>
}

// What each attempt met is kept on the Intent, and told to OnAttempt as it ends.
func ExampleAttempt() {
	server, client := start("reset@stored", "503@received")
	defer server.Close()
	charge := idem.Open()
	_, _ = client.Call(context.Background(), charge, "POST", "/charges", order{500}, nil)
	for _, a := range charge.Attempts() {
		fmt.Printf("attempt %d: status %d, %v, again: %v\n", a.Number, a.Status, a.Outcome, a.Retry)
	}
	// Output:
	// attempt 1: status 0, unknown, again: true
	// attempt 2: status 503, unknown, again: true
	// attempt 3: status 201, answered, again: false
}

// Any function of the attempt's number is a Backoff. It gives the longest wait; the
// Transport draws from the upper half of it.
func ExampleBackoff() {
	steady := func(int) time.Duration { return time.Second }
	transport := &idem.Transport{Backoff: steady}
	fmt.Println(transport.Backoff(1), transport.Backoff(7))
	// Output: 1s 1s
}

// A Budget that is shared by the Transports of one service keeps an outage from
// being multiplied by every caller's repeated attempts.
func ExampleBudget() {
	server, _ := start()
	defer server.Close()
	server.On("POST /charges").Always("503@received")
	client, _ := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base:    server.Transport(),
		Backoff: idem.Exponential(time.Millisecond, 10*time.Millisecond),
		Budget:  idem.NewBudget(0.1, 4), // one repeated attempt for ten calls, and four to begin with
	}})
	for range 3 {
		res, err := client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
		fmt.Println(res.Attempts, "attempts, over budget:", errors.Is(err, idem.ErrOverBudget))
	}
	// Output:
	// 4 attempts, over budget: false
	// 2 attempts, over budget: true
	// 1 attempts, over budget: true
}

// A read needs no Intent. A write without one is refused before the network.
func ExampleClient_Call() {
	server, client := start()
	defer server.Close()
	ctx := context.Background()

	_, err := client.Call(ctx, nil, "POST", "/charges", order{500}, nil)
	fmt.Println(errors.Is(err, idem.ErrNoIntent), "requests:", len(server.Requests("")))

	var charges struct{ Data []order }
	_, err = client.Call(ctx, nil, "GET", "/charges", nil, &charges)
	fmt.Println(err, "charges:", len(charges.Data))
	// Output:
	// true requests: 0
	// <nil> charges: 0
}

// Every fault of a Config is named at once.
func ExampleConfig() {
	_, err := idem.NewClient(idem.Config{
		BaseURL:   "api.example.com",
		Header:    http.Header{"Idempotency-Key": {"k"}},
		Transport: &idem.Transport{MaxAttempts: -1},
	})
	fmt.Println(err)
	// Output:
	// idem: Config.BaseURL needs http or https and a host
	// idem: MaxAttempts is -1; 1 means no repetition, 0 the default of 4
	// idem: Config.Header holds Idempotency-Key: one key for all requests is the wrong way round
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Layer sees a call once, however many attempts it takes below.
func ExampleLayer() {
	server, _ := start("reset@stored", "503@received")
	defer server.Close()
	timed := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			fmt.Println("one call,", idem.ResultOf(resp).Attempts, "attempts")
			return resp, err
		})
	}
	client, _ := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base:    server.Transport(),
		Backoff: idem.Exponential(time.Millisecond, 10*time.Millisecond),
		Around:  timed,
	}})
	_, _ = client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
	// Output: one call, 3 attempts
}

// The zero value is the cautious one. What may be said of a call depends on what
// its attempts have proven, and not on the kind of the error.
func ExampleOutcome() {
	var zero idem.Outcome
	fmt.Println("zero:", zero)
	for _, c := range []struct {
		what   string
		faults []mockserver.Fault
	}{
		{"refused four times", []mockserver.Fault{"429@received", "429@received", "429@received", "429@received"}},
		{"the answer is lost four times", []mockserver.Fault{"reset@stored", "reset@head", "reset@head", "reset@head"}},
		{"the answer is lost once", []mockserver.Fault{"reset@stored"}},
	} {
		server, client := start(c.faults...)
		res, _ := client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
		fmt.Printf("%s: %v\n", c.what, res.Outcome)
		_ = server.Close()
	}
	// Output:
	// zero: unknown
	// refused four times: not executed
	// the answer is lost four times: unknown
	// the answer is lost once: answered
}

// The time in the body makes it another request, which is refused: not executed is
// said of that one. What became of the first, the Intent says.
func ExampleIntent_Outcome() {
	server, client := start("reset@stored", "reset@head", "reset@head", "reset@head")
	defer server.Close()
	charge := idem.Open()
	for hour := range 2 {
		body := map[string]int{"amount": 500, "at": hour} // wrong: made of more than what was decided
		res, err := client.Call(context.Background(), charge, "POST", "/charges", body, nil)
		fmt.Printf("this call: %v, the Intent: %v, reused: %v\n", res.Outcome, charge.Outcome(), errors.Is(err, idem.ErrIntentReused))
	}
	// Output:
	// this call: unknown, the Intent: unknown, reused: false
	// this call: not executed, the Intent: unknown, reused: true
}

// An error document of RFC 9457 is decoded. Type is what to decide by.
func ExampleProblem() {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"type":"https://api.example.com/problems/out-of-credit","title":"You do not have enough credit","balance":30}`)
	})})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, _ := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}})
	_, err = client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
	if e, ok := errors.AsType[*idem.Error](err); ok && e.Problem != nil && strings.HasSuffix(e.Problem.Type, "/out-of-credit") {
		var balance int
		_ = json.Unmarshal(e.Problem.Extra["balance"], &balance)
		fmt.Println(e.Problem.Title, balance)
	}
	// Output: You do not have enough credit 30
}

// A stored answer that comes again is an answer like the first. After an attempt
// whose answer was lost it is what one hopes for.
func ExampleReplay() {
	server, client := start()
	defer server.Close()
	charge := idem.Open()
	for range 2 {
		res, err := client.Call(context.Background(), charge, "POST", "/charges", order{500}, nil)
		fmt.Println(res.Status, err, res.Replay)
	}
	// Output:
	// 201 <nil> unknown
	// 201 <nil> replayed
}

// A Result comes with an error too, so that the switch over Outcome needs no
// errors.As.
func ExampleResult() {
	server, client := start("503@received", "503@received", "503@received", "503@received")
	defer server.Close()
	res, err := client.Call(context.Background(), idem.Open(), "POST", "/charges", order{500}, nil)
	fmt.Println("error:", err != nil)
	fmt.Println("status:", res.Status, "attempts:", res.Attempts, "sends:", res.Sends, "outcome:", res.Outcome)
	// Output:
	// error: true
	// status: 503 attempts: 4 sends: 4 outcome: unknown
}

// A State is what an Intent is on paper. One that was bound before it was written
// down refuses another request after Resume as well.
func ExampleState() {
	server, client := start()
	defer server.Close()
	charge := idem.Open()
	req, _ := http.NewRequest(http.MethodPost, server.URL+"/charges", strings.NewReader(`{"amount":500}`))
	if err := charge.Bind(req); err != nil {
		panic(err)
	}
	state := charge.State() // into a file, a row, a message

	resumed, err := idem.Resume(state, nil)
	if err != nil {
		panic(err)
	}
	other, _ := http.NewRequest(http.MethodPost, server.URL+"/charges", strings.NewReader(`{"amount":9000}`))
	_, err = client.Do(resumed, other)
	fmt.Println("another amount is refused:", errors.Is(err, idem.ErrIntentReused))
	// Output: another amount is refused: true
}
