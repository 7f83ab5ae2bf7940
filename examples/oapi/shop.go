// Package oapi wires a client that oapi-codegen has generated from an OpenAPI
// document (orders.yaml) to idem.
package oapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/oapi/orders"
)

// New returns the generated client over transport (nil: &idem.Transport{}). The
// client retries nothing by itself.
func New(server string, transport *idem.Transport) (*orders.ClientWithResponses, error) {
	client, err := idem.NewClient(idem.Config{BaseURL: server, Transport: transport})
	if err != nil {
		return nil, err
	}
	return orders.NewClientWithResponses(server, orders.WithHTTPClient(client.HTTP()))
}

// Create orders once, however often it is called with one Intent. The Intent
// travels in the context; the parameter for the key stays empty, and the Transport
// fills the header in.
func Create(ctx context.Context, client *orders.ClientWithResponses, create *idem.Intent, order orders.NewOrder) (*orders.Order, error) {
	resp, err := client.CreateOrderWithResponse(idem.WithIntent(ctx, create), &orders.CreateOrderParams{}, order)
	switch {
	case err != nil: // no answer; an *idem.Error is in the chain
		return nil, err
	case resp.JSON201 == nil: // an answer of any other status is no error to generated code
		return nil, fmt.Errorf("the server answered %s; outcome: %v", resp.Status(), create.Outcome())
	}
	return resp.JSON201, nil
}

// Refund refunds once. The parameter for the key is a UUID here; left out it is
// the nil UUID, which counts as none under an Intent.
func Refund(ctx context.Context, client *orders.ClientWithResponses, refund *idem.Intent, order orders.NewOrder) (*orders.Order, error) {
	resp, err := client.CreateRefundWithResponse(idem.WithIntent(ctx, refund), &orders.CreateRefundParams{}, order)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode() != http.StatusCreated:
		return nil, fmt.Errorf("the server answered %s; outcome: %v", resp.Status(), refund.Outcome())
	}
	return resp.JSON201, nil
}
