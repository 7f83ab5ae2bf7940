package order_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"github.com/idem-go/idem"
	order "github.com/idem-go/idem/examples/connect"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// service is the server's side.
func service() http.Handler {
	return connect.NewUnaryHandler(order.Create, func(ctx context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		if r.Msg.GetValue() == "castle" {
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no castles"))
		}
		if r.Msg.GetValue() == "the same tea" {
			return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("you have it"))
		}
		mockserver.Did(ctx, "order", r.Msg.GetValue())
		return connect.NewResponse(wrapperspb.String("order of " + r.Msg.GetValue())), nil
	})
}

// run gives f a server and a client of it, in virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, client *order.Client)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: service()})
		transport := order.Transport()
		transport.Base, transport.MaxAttempts = server.Transport(), trouble.Attempts
		f(t, server, order.New(server.URL, transport))
	})
}

func TestOrder(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *order.Client) {
		trouble.Meets(server, "POST "+order.Create)
		create := idem.Open()
		made, err := order.Order(t.Context(), client, create, "tea")
		require.NoError(t, err)
		assert.Equal(t, "order of tea", made)
		trouble.Check(t, server, create)
	})
}

// An error of the service keeps its code; no answer keeps the Transport's error.
func TestErrors(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *order.Client) {
		create := idem.Open()
		_, err := order.Order(t.Context(), client, create, "castle")
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
		assert.Equal(t, idem.Answered, create.Outcome())
		assert.Len(t, server.Requests(""), 1)

		_, err = order.Order(t.Context(), client, idem.Open(), "the same tea")
		assert.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
		assert.Len(t, server.Requests(""), 2, "409, but not asked again")

		server.On("POST " + order.Create).Always("reset@received")
		create = idem.Open()
		_, err = order.Order(t.Context(), client, create, "tea")
		var e *idem.Error
		require.ErrorAs(t, err, &e)
		assert.ErrorIs(t, err, idem.ErrExhausted)
		assert.Equal(t, idem.OutcomeUnknown, create.Outcome())
		assert.Len(t, create.Attempts(), trouble.Attempts)
	})
}

// connect-go replaces every error that matches io.EOF by one of its own. The
// Intent has the facts.
func TestDropped(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *order.Client) {
		server.On("POST " + order.Create).Always("drop@received")
		create := idem.Open()
		_, err := order.Order(t.Context(), client, create, "tea")
		assert.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		assert.Equal(t, idem.OutcomeUnknown, create.Outcome())
		require.Len(t, create.Attempts(), trouble.Attempts)
		assert.Equal(t, idem.ErrExhausted, create.Attempts()[trouble.Attempts-1].Reason)
	})
}

// Without an Intent a procedure is a POST without a key: it is sent once.
func TestForgotten(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *order.Client) {
		server.On("POST " + order.Create).Then("503@received")
		_, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("tea")))
		assert.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		assert.Len(t, server.Requests(""), 1)
	})
}
