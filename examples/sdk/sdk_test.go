package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/examples/sdk"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shop is the server's side of the API.
type shop struct {
	mu     sync.Mutex
	orders []sdk.Order
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/orders", s.create)
	mux.HandleFunc("GET /v1/orders", s.list)
	mux.HandleFunc("GET /v1/orders/{id}", s.get)
	mux.HandleFunc("POST /v1/orders/{id}/cancel", s.cancel)
	return mux
}

func (s *shop) create(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked sdk.NewOrder
	_ = json.NewDecoder(r.Body).Decode(&asked)
	if asked.Amount > 1000 {
		problem(w, http.StatusPaymentRequired, "declined")
		return
	}
	order := sdk.Order{ID: fmt.Sprint(len(s.orders) + 1), Item: asked.Item, Amount: asked.Amount, Status: "open", Created: time.Now().UTC()}
	s.orders = append(s.orders, order)
	mockserver.Did(r.Context(), "order", order)
	reply(w, http.StatusCreated, order)
}

func (s *shop) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order := s.find(r); order != nil {
		reply(w, http.StatusOK, *order)
		return
	}
	problem(w, http.StatusNotFound, "not-found")
}

func (s *shop) cancel(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch order := s.find(r); {
	case order == nil:
		problem(w, http.StatusNotFound, "not-found")
	case order.Status == "shipped":
		problem(w, http.StatusBadRequest, "shipped")
	default:
		order.Status = "cancelled"
		mockserver.Did(r.Context(), "cancel", order.ID)
		reply(w, http.StatusOK, *order)
	}
}

func (s *shop) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	after, _ := strconv.Atoi(r.FormValue("after"))
	var page struct {
		Data []sdk.Order `json:"data"`
		Next string      `json:"next"`
	}
	for i, order := range s.orders[after:] {
		if status := r.FormValue("status"); status != "" && status != order.Status {
			continue
		}
		if page.Data = append(page.Data, order); len(page.Data) == limit && after+i+1 < len(s.orders) {
			page.Next = order.ID
			break
		}
	}
	reply(w, http.StatusOK, page)
}

func (s *shop) find(r *http.Request) *sdk.Order {
	n, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || n < 1 || n > len(s.orders) {
		return nil
	}
	return &s.orders[n-1]
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

func problem(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":%q,"status":%d}`, kind, status)
}

// run gives f a client and a server with some orders, in virtual time.
func run(t *testing.T, f func(t *testing.T, shop *shop, server *mockserver.Server, orders *sdk.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		server := mockserver.New(t, mockserver.Config{Handler: s.handler()})
		orders, err := sdk.New(sdk.Config{BaseURL: server.URL + "/v1", Token: "alice", Transport: trouble.Transport(server)})
		require.NoError(t, err)
		f(t, s, server, orders)
	})
}

func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, _ *shop, server *mockserver.Server, orders *sdk.Client) {
		trouble.Meets(server, "POST /v1/orders")
		create := idem.Open()
		order, err := orders.CreateOrder(t.Context(), create, sdk.NewOrder{Item: "tea", Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, "1", order.ID)
		trouble.Check(t, server, create)

		got, err := orders.GetOrder(t.Context(), order.ID)
		require.NoError(t, err)
		assert.Equal(t, order, got)
	})
}

func TestCancel(t *testing.T) {
	run(t, func(t *testing.T, _ *shop, server *mockserver.Server, orders *sdk.Client) {
		create, cancel := idem.Open(), idem.Open()
		order, err := orders.CreateOrder(t.Context(), create, sdk.NewOrder{Item: "tea", Amount: 450})
		require.NoError(t, err)
		trouble.Meets(server, "POST /v1/orders/{id}/cancel")
		order, err = orders.CancelOrder(t.Context(), cancel, order.ID, "no longer thirsty")
		require.NoError(t, err)
		assert.Equal(t, "cancelled", order.Status)
		trouble.Check(t, server, cancel)
	})
}

// A read needs no key to be repeated, and a page that fails on the way is asked
// for again by itself.
func TestList(t *testing.T) {
	run(t, func(t *testing.T, shop *shop, server *mockserver.Server, orders *sdk.Client) {
		for i := range 7 {
			shop.orders = append(shop.orders, sdk.Order{ID: fmt.Sprint(i + 1), Status: "open"})
		}
		shop.orders[3].Status = "shipped"
		server.On("GET /v1/orders").Then("pass", "503@received", "drop@received")
		ids := ""
		for order, err := range orders.ListOrders(t.Context(), "open", 3) {
			require.NoError(t, err)
			ids += order.ID
		}
		assert.Equal(t, "123567", ids)
	})
}

func TestListEnds(t *testing.T) {
	run(t, func(t *testing.T, shop *shop, server *mockserver.Server, orders *sdk.Client) {
		shop.orders = make([]sdk.Order, 7)
		for range orders.ListOrders(t.Context(), "", 2) {
			break // one page is enough
		}
		assert.Len(t, server.Requests(""), 1)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n := 0
		for _, err := range orders.ListOrders(ctx, "", 2) {
			n++
			assert.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, 1, n)
		assert.Len(t, server.Requests(""), 1)
	})
}

func TestErrors(t *testing.T) {
	run(t, func(t *testing.T, shop *shop, server *mockserver.Server, orders *sdk.Client) {
		shop.orders = []sdk.Order{{ID: "1", Status: "shipped"}}
		create, cancel := idem.Open(), idem.Open()

		_, err := orders.CreateOrder(t.Context(), create, sdk.NewOrder{Item: "castle", Amount: 1e6})
		assert.ErrorIs(t, err, sdk.ErrDeclined)
		assert.Equal(t, idem.Answered, create.Outcome())
		_, err = orders.CancelOrder(t.Context(), cancel, "1", "")
		assert.ErrorIs(t, err, sdk.ErrShipped)
		_, err = orders.GetOrder(t.Context(), "9/../1") // one segment, whatever it holds
		assert.ErrorIs(t, err, sdk.ErrNotFound)
		var e *idem.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, http.StatusNotFound, e.Status)
		asked := len(server.Requests(""))

		// Refused here, with nothing sent.
		_, err = orders.CreateOrder(t.Context(), nil, sdk.NewOrder{})
		assert.ErrorIs(t, err, idem.ErrNoIntent)
		_, err = orders.CancelOrder(t.Context(), create, "1", "")
		assert.ErrorIs(t, err, idem.ErrIntentReused)
		_, err = orders.GetOrder(t.Context(), "")
		assert.Error(t, err)
		_, err = orders.CancelOrder(t.Context(), idem.Open(), "", "")
		assert.Error(t, err)
		assert.Len(t, server.Requests(""), asked)
	})
}

func TestNew(t *testing.T) {
	_, err := sdk.New(sdk.Config{})
	assert.Error(t, err)
	_, err = sdk.New(sdk.Config{Token: "x", BaseURL: "ftp://x"})
	assert.Error(t, err)
	_, err = sdk.New(sdk.Config{Token: "x"})
	assert.NoError(t, err)
}
