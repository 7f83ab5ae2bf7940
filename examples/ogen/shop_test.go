package ogen_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/generated"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/examples/ogen"
	"github.com/idem-go/idem/examples/ogen/orders"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run gives f a server and the generated client, in virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, client *orders.Client)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		client, err := ogen.New(server.URL, trouble.Transport(server))
		require.NoError(t, err)
		f(t, server, client)
	})
}

func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		trouble.Meets(server, "POST /orders")
		create := idem.Open()
		order, err := ogen.Create(t.Context(), client, create, &orders.NewOrder{Amount: 450})
		require.NoError(t, err)
		assert.Equal(t, "1", order.ID)
		trouble.Check(t, server, create)
	})
}

// A parameter of type UUID that is left out is the nil UUID, which counts as none
// under an Intent.
func TestRefund(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		trouble.Meets(server, "POST /refunds")
		refund := idem.Open()
		_, err := client.CreateRefund(idem.WithIntent(t.Context(), refund), &orders.NewOrder{Amount: 450}, orders.CreateRefundParams{})
		require.NoError(t, err)
		trouble.Check(t, server, refund)
	})
}

// Without an Intent the nil UUID is refused, because all who forget would share
// it, and an empty key is none: the order is sent once.
func TestForgotten(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		_, err := client.CreateRefund(t.Context(), &orders.NewOrder{Amount: 450}, orders.CreateRefundParams{})
		assert.ErrorIs(t, err, idem.ErrInvalidKey)
		assert.Empty(t, server.Requests(""))

		server.On("POST /orders").Then("503@received")
		_, err = client.CreateOrder(t.Context(), &orders.NewOrder{Amount: 450}, orders.CreateOrderParams{})
		assert.Error(t, err)
		keyed, unkeyed := trouble.Writes(server)
		assert.Equal(t, [2]int{0, 1}, [2]int{keyed, unkeyed})
	})
}

// Another key than the Intent's is refused; the Intent's may be given.
func TestParameter(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		refund := idem.Open()
		ctx, order := idem.WithIntent(t.Context(), refund), &orders.NewOrder{Amount: 450}
		_, err := client.CreateRefund(ctx, order, orders.CreateRefundParams{IdempotencyKey: uuid.New()})
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		assert.Empty(t, server.Requests(""))
		_, err = client.CreateRefund(ctx, order, orders.CreateRefundParams{IdempotencyKey: uuid.MustParse(refund.Key())})
		require.NoError(t, err)
		assert.Len(t, server.Requests(refund.Key()), 1)
	})
}

func TestErrors(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		create := idem.Open()
		_, err := ogen.Create(t.Context(), client, create, &orders.NewOrder{Amount: 1_000_000})
		var problem *orders.ProblemStatusCode
		require.ErrorAs(t, err, &problem)
		assert.Equal(t, http.StatusPaymentRequired, problem.StatusCode)
		assert.Equal(t, idem.Answered, create.Outcome())

		server.On("POST /orders").Always("drop@received")
		create = idem.Open()
		_, err = ogen.Create(t.Context(), client, create, &orders.NewOrder{Amount: 450})
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.Len(t, create.Attempts(), trouble.Attempts)
		assert.Equal(t, idem.OutcomeUnknown, create.Outcome())
	})
}

func TestRead(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *orders.Client) {
		server.On("GET /orders").Then("503@received", "reset@received")
		list, err := client.ListOrders(t.Context())
		require.NoError(t, err)
		assert.Empty(t, list.Data)
	})
}

func TestGenerated(t *testing.T) {
	generated.Current(t, "github.com/ogen-go/ogen/cmd/ogen@v1.24.0",
		"ogen/orders/generate.go", "ogen/ogen.yaml", "oapi/orders.yaml")
}
