package oapi_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/generated"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/examples/oapi"
	"github.com/idem-go/idem/examples/oapi/orders"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run gives f a server and the generated client, in virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		client, err := oapi.New(server.URL, trouble.Transport(server))
		require.NoError(t, err)
		f(t, server, client)
	})
}

func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		trouble.Meets(server, "POST /orders")
		create := idem.Open()
		order, err := oapi.Create(t.Context(), client, create, orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, "1", order.Id)
		trouble.Check(t, server, create)

		again, err := client.GetOrderWithResponse(t.Context(), order.Id)
		require.NoError(t, err)
		assert.Equal(t, order, again.JSON200)
	})
}

func TestRefund(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		trouble.Meets(server, "POST /refunds")
		refund := idem.Open()
		order, err := oapi.Refund(t.Context(), client, refund, orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, "1", order.Id)
		trouble.Check(t, server, refund)
	})
}

// Whoever fills the parameter in takes it from the Intent; the two must agree.
func TestParameter(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		trouble.Meets(server, "POST /orders")
		create := idem.Open()
		ctx, params := idem.WithIntent(t.Context(), create), &orders.CreateOrderParams{IdempotencyKey: create.Key()}
		resp, err := client.CreateOrderWithResponse(ctx, params, orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, http.StatusCreated, resp.StatusCode())
		trouble.Check(t, server, create)

		asked := len(server.Requests(""))
		ctx, params = idem.WithIntent(t.Context(), idem.Open()), &orders.CreateOrderParams{IdempotencyKey: uuid.NewString()}
		_, err = client.CreateOrderWithResponse(ctx, params, orders.NewOrder{Amount: 450})
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		assert.Len(t, server.Requests(""), asked, "refused before the network")
	})
}

// A key in the parameter alone, without an Intent, is adopted for that one call.
func TestParameterAlone(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		server.On("POST /orders").Then("reset@stored")
		resp, err := client.CreateOrderWithResponse(t.Context(), &orders.CreateOrderParams{IdempotencyKey: "order-17"}, orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, http.StatusCreated, resp.StatusCode())
		assert.Len(t, server.Requests("order-17"), 2)
		assert.Len(t, server.Effects(""), 1)
	})
}

// With neither the request goes out without a key and is sent once; with the nil
// UUID, which everybody who forgets would share, it does not go out at all.
func TestForgotten(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		server.On("POST /orders").Then("503@received")
		resp, err := client.CreateOrderWithResponse(t.Context(), &orders.CreateOrderParams{}, orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode())
		keyed, unkeyed := trouble.Writes(server)
		assert.Equal(t, [2]int{0, 1}, [2]int{keyed, unkeyed})

		_, err = client.CreateRefundWithResponse(t.Context(), &orders.CreateRefundParams{}, orders.NewOrder{Amount: 450})
		assert.ErrorIs(t, err, idem.ErrInvalidKey)
		assert.Len(t, server.Requests(""), 1)
	})
}

// A refused order is an answer, and the generated code keeps the problem.
func TestDeclined(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		create := idem.Open()
		_, err := oapi.Create(t.Context(), client, create, orders.NewOrder{Amount: 1_000_000})
		assert.ErrorContains(t, err, "402 Payment Required; outcome: answered")
		assert.Len(t, create.Attempts(), 1)
	})
}

func TestRead(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.ClientWithResponses) {
		server.On("GET /orders").Then("503@received", "reset@received")
		resp, err := client.ListOrdersWithResponse(t.Context())
		require.NoError(t, err)
		require.NotNil(t, resp.JSON200)
		assert.Empty(t, resp.JSON200.Data)
	})
}

func TestGenerated(t *testing.T) {
	generated.Current(t, "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2",
		"oapi/orders/generate.go", "oapi/oapi-codegen.yaml", "oapi/orders.yaml")
}
