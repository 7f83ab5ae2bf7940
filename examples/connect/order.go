// Package order wires connect-go to idem. It has no generated code: a generated
// client takes the same http.Client.
package order

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Create is the procedure that creates an order.
const Create = "/orders.v1.OrderService/Create"

// Client creates orders. connect-go retries nothing by itself.
type Client = connect.Client[wrapperspb.StringValue, wrapperspb.StringValue]

// Transport returns a Transport that knows Connect's codes: 409 is aborted, which
// may be asked again, but also already_exists, which may not.
func Transport() *idem.Transport {
	terms := contract.Default()
	terms.Answers = append([]contract.Match{
		{Status: http.StatusConflict, Path: "code", Value: "already_exists", Means: contract.Final},
	}, terms.Answers...)
	return &idem.Transport{Contract: terms}
}

// New returns a client over transport, with the Connect protocol. It answers with
// HTTP statuses, so that the Transport sees unavailable as 503 and aborted as 409.
// With gRPC every answer is 200, and the Transport takes it for done: there it
// repeats only what was not answered at all.
func New(url string, transport *idem.Transport) *Client {
	httpClient := &http.Client{Transport: transport}
	return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient, url+Create)
}

// Order orders once, however often it is called with one Intent.
func Order(ctx context.Context, client *Client, create *idem.Intent, item string) (string, error) {
	resp, err := client.CallUnary(idem.WithIntent(ctx, create), connect.NewRequest(wrapperspb.String(item)))
	if err != nil {
		return "", err
	}
	return resp.Msg.GetValue(), nil
}
