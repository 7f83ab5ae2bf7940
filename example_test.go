package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// start returns a client of a mock server whose faults are met in turn.
func start(faults ...mockserver.Fault) (*mockserver.Server, *idem.Client) {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	if err != nil {
		panic(err)
	}
	if len(faults) > 0 {
		server.On("POST /charges").Then(faults...)
	}
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base:    server.Transport(),
		Backoff: idem.Exponential(time.Millisecond, 10*time.Millisecond),
	}})
	if err != nil {
		panic(err)
	}
	return server, client
}

type order struct {
	Amount int `json:"amount"`
}

// The answer to the first attempt is lost after the work. The second attempt has
// the same key and gets the stored answer.
func Example() {
	server, client := start("reset@stored")
	defer server.Close()

	charge := idem.Open() // once, where the decision is made
	var receipt struct{ ID string }
	res, err := client.Call(context.Background(), charge, "POST", "/charges", order{500}, &receipt)

	fmt.Println(err, res.Status, res.Replay, res.Outcome)
	fmt.Println("attempts:", res.Attempts, "effects:", len(server.Effects(charge.Key())))
	// Output:
	// <nil> 201 replayed answered
	// attempts: 2 effects: 1
}

// An Intent that is opened inside the caller's own loop has a new key each time:
// every lost answer is one more charge. Open it before the loop.
func ExampleOpen_incorrect() {
	server, client := start("reset@stored", "reset@head", "reset@head", "reset@head")
	defer server.Close()

	effects := 0
	for range 2 {
		charge := idem.Open() // wrong: belongs above the loop
		_, err := client.Call(context.Background(), charge, "POST", "/charges", order{500}, nil)
		effects += len(server.Effects(charge.Key()))
		_ = err
	}
	fmt.Println("effects:", effects)
	// Output: effects: 2
}

// A refused card is an answer: the server has decided.
func ExampleError() {
	server, client := start()
	defer server.Close()

	_, err := client.Call(context.Background(), idem.Open(), "POST", "/charges", order{100_001}, nil)
	if e, ok := errors.AsType[*idem.Error](err); ok {
		fmt.Println(e.Status, e.Outcome, e.Problem.Title)
	}
	// Output: 402 answered The amount is above the limit
}

// An Intent is written down before the first send and goes on in another process.
func ExampleIntent_State() {
	server, client := start("reset@stored", "reset@head", "reset@head", "reset@head")
	defer server.Close()
	ctx := context.Background()

	charge := idem.Open()
	saved, _ := json.Marshal(charge) // into a file, a row, a message
	res, _ := client.Call(ctx, charge, "POST", "/charges", order{500}, nil)
	fmt.Println("before the crash:", res.Outcome)

	resumed := new(idem.Intent)
	if err := json.Unmarshal(saved, resumed); err != nil {
		panic(err)
	}
	res, err := client.Call(ctx, resumed, "POST", "/charges", order{500}, nil)
	fmt.Println("after it:", res.Outcome, err, "effects:", len(server.Effects(charge.Key())))
	// Output:
	// before the crash: unknown
	// after it: answered <nil> effects: 1
}

// Every process that knows the order asks with the same key.
func ExampleDerive() {
	created := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	charge, _ := idem.Derive("shop/charge", "order-42", created)
	again, _ := idem.Derive("shop/charge", "order-42", created)
	refund, _ := idem.Derive("shop/refund", "order-42", created)
	fmt.Println(charge.Key() == again.Key(), charge.Key() == refund.Key())
	// Output: true false
}

// The steps of one Intent have keys of their own, which follow from its key.
func ExampleIntent_Child() {
	checkout := idem.Open()
	reserve, charge := checkout.Child("reserve"), checkout.Child("charge")
	fmt.Println(reserve == checkout.Child("reserve"), reserve.Key() == charge.Key())
	// Output: true false
}

// Under any other client the Intent travels in the context.
func ExampleWithIntent() {
	server, _ := start("503@received")
	defer server.Close()
	httpClient := &http.Client{Transport: &idem.Transport{Base: server.Transport()}}

	ctx := idem.WithIntent(context.Background(), idem.Open())
	req, _ := http.NewRequestWithContext(ctx, "POST", server.URL+"/charges", strings.NewReader(`{"amount":500}`))
	resp, err := httpClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, idem.ResultOf(resp).Attempts)
	// Output: 201 2
}

// One line for each attempt: Debug while all goes its way, Info for what took more
// than one, Warn for what nobody knows. The line holds no key, body or query.
func ExampleTransport_onAttempt() {
	server, _ := start()
	defer server.Close()
	slow, stuck := idem.Open(), idem.Open()
	server.On("POST /charges").Key(slow.Key()).Then("503@received")
	server.On("POST /charges").Key(stuck.Key()).Always("504@received")
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "duration" || a.Key == "wait" || a.Key == "host" {
			return slog.Attr{} // differs from run to run
		}
		return a
	}}))
	client, _ := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base:        server.Transport(),
		MaxAttempts: 2,
		OnAttempt: func(ctx context.Context, a idem.Attempt) {
			level := slog.LevelDebug
			switch {
			case a.Retry:
			case a.Outcome == idem.OutcomeUnknown:
				level = slog.LevelWarn
			case a.Number > 1:
				level = slog.LevelInfo
			}
			logger.Log(ctx, level, "attempt", "idem", a)
		},
	}})
	for _, charge := range []*idem.Intent{slow, stuck} {
		_, _ = client.Call(context.Background(), charge, "POST", "/charges", order{500}, nil)
	}
	// Output:
	// level=DEBUG msg=attempt idem.number=1 idem.call=1 idem.method=POST idem.sends=1 idem.status=503 idem.outcome=unknown
	// level=INFO msg=attempt idem.number=2 idem.call=1 idem.method=POST idem.sends=1 idem.status=201 idem.outcome=answered
	// level=DEBUG msg=attempt idem.number=1 idem.call=1 idem.method=POST idem.sends=1 idem.status=504 idem.outcome=unknown
	// level=WARN msg=attempt idem.number=2 idem.call=1 idem.method=POST idem.sends=1 idem.status=504 idem.outcome=unknown idem.reason="every attempt is used up"
}

// What an API means by a status is data.
func ExampleTransport_contract() {
	transport := &idem.Transport{Contract: contract.Contract{
		Header: "X-Request-Key",
		Window: time.Hour,
		Answers: []contract.Match{
			{Status: 409, Path: "code", Value: "request_in_progress", Means: contract.InProgress},
			{Status: 409, Means: contract.Final}, // every other conflict
			{Status: 422, Path: "code", Value: "key_reused", Means: contract.Mismatch},
		},
	}}
	fmt.Println(transport.Contract.Classify(409, nil, []byte(`{"code":"request_in_progress"}`)))
	fmt.Println(transport.Contract.Classify(409, nil, []byte(`{"code":"sold_out"}`)))
	// Output:
	// InProgress
	// Final
}

// The waits of the default Backoff, before jitter.
func ExampleExponential() {
	backoff := idem.Exponential(200*time.Millisecond, 10*time.Second)
	for attempt := 1; attempt <= 8; attempt++ {
		fmt.Print(backoff(attempt), " ")
	}
	// Output: 200ms 400ms 800ms 1.6s 3.2s 6.4s 10s 10s
}

// The README's short snippets.
func TestReadmeUnderAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		save := func(s idem.State) { t.Log(s.Outcome) }
		charge := idem.Open()
		save(charge.State()) // before the first send
		ctx := t.Context()
		httpClient := &http.Client{Transport: &idem.Transport{}}
		ctx = idem.WithIntent(ctx, charge)
		if in, ok := idem.IntentFromContext(ctx); !ok || in != charge || httpClient.Transport == nil {
			t.Fatal("the Intent does not travel in the context")
		}
	})
}
