package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/examples/gateway"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rig is a gateway between customers and two APIs, each behind a network that
// can break.
type rig struct {
	t                        *testing.T
	front, payments, stock   *mockserver.Server
	paymentsClient, stockAPI *idem.Client
	seen                     gateway.Memory
}

// run makes a rig, in virtual time.
func run(t *testing.T, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		// The payments API says that a declined card stays declined under its key.
		terms := contract.Default()
		terms.Answers = append(terms.Answers, contract.Match{Status: http.StatusPaymentRequired, Means: contract.Settled})
		r := &rig{t: t}
		r.payments = mockserver.New(t, mockserver.Config{Contract: terms})
		r.stock = mockserver.New(t, mockserver.Config{})
		payments, stock := trouble.Transport(r.payments), trouble.Transport(r.stock)
		payments.Contract = terms
		r.paymentsClient, r.stockAPI = client(t, r.payments.URL, payments), client(t, r.stock.URL, stock)
		// In front of the gateway nobody keeps keys: that is left to the two APIs.
		r.front = mockserver.New(t, mockserver.Config{Handler: r.process(), Contract: contract.Contract{Methods: []string{}}})
		f(t, r)
	})
}

// process is one process of the gateway. All share the table of what was seen.
func (r *rig) process() *gateway.Gateway {
	return &gateway.Gateway{
		Payments: r.paymentsClient, Stock: r.stockAPI, FirstSeen: r.seen.FirstSeen,
		Account: func(r *http.Request) (string, error) {
			account, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return "", errors.New("no account")
			}
			return account, nil
		},
	}
}

func client(t *testing.T, url string, transport *idem.Transport) *idem.Client {
	c, err := idem.NewClient(idem.Config{BaseURL: url, Header: http.Header{"Authorization": {"Bearer gateway"}}, Transport: transport})
	require.NoError(t, err)
	return c
}

// customer returns a client of the gateway.
func (r *rig) customer(account string) *idem.Client {
	c, err := idem.NewClient(idem.Config{
		BaseURL: r.front.URL, Header: http.Header{"Authorization": {"Bearer " + account}},
		Transport: &idem.Transport{Base: r.front.Transport(), AttemptTimeout: 5 * time.Minute},
	})
	require.NoError(r.t, err)
	return c
}

func (r *rig) checkout(account, key string, c gateway.Checkout) (done gateway.Done, res idem.Result, err error) {
	in, err := idem.Adopt(key, time.Now())
	require.NoError(r.t, err)
	res, err = r.customer(account).Call(r.t.Context(), in, http.MethodPost, "/checkouts", c, &done)
	return done, res, err
}

// sent returns the intent that a step of a checkout goes out with.
func sent(t *testing.T, account, key, step string) *idem.Intent {
	in, err := idem.Derive("gateway/"+account, key, time.Now())
	require.NoError(t, err)
	return in.Child(step)
}

var tea = gateway.Checkout{Item: "tea", Amount: 450}

func TestThroughTrouble(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		trouble.Meets(r.payments, "POST /charges")
		trouble.Meets(r.stock, "POST /orders")
		r.front.On("POST /checkouts").Then("drop@received", "503@received", "reset@head")
		done, res, err := r.checkout("alice", "1", tea)
		require.NoError(t, err)
		assert.Equal(t, gateway.Done{Charge: "1", Order: "1"}, done)
		assert.Equal(t, 4, res.Attempts)
		for server, step := range map[*mockserver.Server]string{r.payments: "charge", r.stock: "order"} {
			key := sent(t, "alice", "1", step).Key()
			requests := server.Requests("")
			require.NotEmpty(t, requests)
			for _, q := range requests {
				assert.Equal(t, key, q.Key)
			}
			// Six attempts for the first request of the customer's that got as far as
			// the gateway, and one for each that came after it, which is a replay.
			again := res.Sends - 3
			assert.Equal(t, trouble.Attempts+again, requests[len(requests)-1].Attempt)
			assert.Equal(t, mockserver.Replayed, requests[len(requests)-1].Answer)
			assert.Len(t, server.Effects(""), 1)
			server.Believe(key, mockserver.Done)
			assert.NoError(t, server.Verify())
		}
	})
}

// Two customers choose the same key. Each is charged once, under its own key.
func TestSameKeyOfTwoCustomers(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		pairs := [][2]string{ // account, key
			{"alice", "1"}, {"bob", "1"},
			{"a/b", "c"}, {"a", "b/c"}, {"a", "/b/c"}, {"a/", "b/c"}, {"a/b/c", "1"},
			{"alice", "11"}, {"alice1", "1"},
		}
		for range 2 { // the second time everybody asks again
			for _, p := range pairs {
				_, _, err := r.checkout(p[0], p[1], gateway.Checkout{Item: "tea for " + p[0], Amount: 450})
				require.NoError(t, err)
			}
		}
		for _, server := range []*mockserver.Server{r.payments, r.stock} {
			keys := map[string]int{}
			for _, q := range server.Requests("") {
				keys[q.Key]++
			}
			assert.Len(t, keys, len(pairs))
			assert.Len(t, server.Effects(""), len(pairs))
			for key, n := range keys {
				assert.Equal(t, 2, n)
				assert.Len(t, server.Effects(key), 1)
			}
		}
	})
}

// The same checkout arrives at two processes of the gateway at once.
func TestTwoProcesses(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		second := mockserver.New(t, mockserver.Config{Handler: r.process(), Contract: contract.Contract{Methods: []string{}}})
		r.payments.On("POST /charges").Then("delay@worked for=1s")
		var wait sync.WaitGroup
		for _, front := range []*mockserver.Server{r.front, second} {
			wait.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/checkouts", strings.NewReader(`{"item":"tea","amount":450}`))
				assert.NoError(t, err)
				req.Header.Set("Authorization", "Bearer alice")
				req.Header.Set("Idempotency-Key", "1")
				resp, err := front.Client().Do(req)
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusCreated, resp.StatusCode)
					assert.NoError(t, resp.Body.Close())
				}
			})
		}
		wait.Wait()
		assert.Len(t, r.payments.Effects(""), 1)
		assert.Len(t, r.stock.Effects(""), 1)
	})
}

// The order is not known when the customer hears back; the next time the charge
// is a replay and only the order is made.
func TestAsksAgain(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		down := mockserver.Fault("503@received")
		r.stock.On("POST /orders").Then(down, down, down, down, down, down)
		r.front.On("POST /checkouts").Then("503@head") // the customer's client would ask again by itself
		req := func() int {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.front.URL+"/checkouts", strings.NewReader(`{"item":"tea","amount":450}`))
			require.NoError(t, err)
			q.Header.Set("Authorization", "Bearer alice")
			q.Header.Set("Idempotency-Key", "1")
			resp, err := r.front.Client().Do(q)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		}
		assert.Equal(t, http.StatusServiceUnavailable, req())
		assert.Len(t, r.payments.Effects(""), 1)
		assert.Empty(t, r.stock.Effects(""))
		assert.Equal(t, http.StatusCreated, req())
		assert.Len(t, r.payments.Effects(""), 1)
		assert.Len(t, r.stock.Effects(""), 1)
	})
}

func TestRefusals(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		_, res, err := r.checkout("alice", "1", gateway.Checkout{Item: "castle", Amount: 1_000_000})
		assert.Error(t, err)
		assert.Equal(t, http.StatusPaymentRequired, res.Status)
		assert.Empty(t, r.stock.Requests(""), "not paid, not ordered")

		_, _, err = r.checkout("alice", "2", tea)
		require.NoError(t, err)
		_, res, err = r.checkout("alice", "2", gateway.Checkout{Item: "tea", Amount: 900})
		assert.ErrorIs(t, err, idem.ErrMismatch)
		assert.Equal(t, http.StatusUnprocessableEntity, res.Status)

		time.Sleep(25 * time.Hour) // the APIs have forgotten the keys
		_, res, err = r.checkout("alice", "2", tea)
		assert.Error(t, err)
		assert.Equal(t, http.StatusConflict, res.Status)
		assert.Len(t, r.payments.Effects(""), 1)
		assert.Len(t, r.stock.Effects(""), 1)

		for _, change := range []func(*http.Request){
			func(q *http.Request) { q.Header.Del("Authorization") },
			func(q *http.Request) { q.Header.Del("Idempotency-Key") },
			func(q *http.Request) { q.Header.Set("Idempotency-Key", strings.Repeat("k", 256)) },
		} {
			q, err := http.NewRequestWithContext(context.Background(), http.MethodPost, r.front.URL+"/checkouts", strings.NewReader(`{}`))
			require.NoError(t, err)
			q.Header.Set("Authorization", "Bearer alice")
			q.Header.Set("Idempotency-Key", "3")
			change(q)
			resp, err := r.front.Client().Do(q)
			require.NoError(t, err)
			assert.Contains(t, []int{http.StatusUnauthorized, http.StatusBadRequest}, resp.StatusCode)
			assert.NoError(t, resp.Body.Close())
		}
		assert.Len(t, r.payments.Effects(""), 1)
	})
}
