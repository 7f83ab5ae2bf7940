// Package ogen wires a client that ogen has generated from an OpenAPI document
// (../oapi/orders.yaml) to idem.
package ogen

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/ogen/orders"
)

// New returns the generated client over transport (nil: &idem.Transport{}). The
// client retries nothing by itself.
func New(server string, transport *idem.Transport) (*orders.Client, error) {
	client, err := idem.NewClient(idem.Config{BaseURL: server, Transport: transport})
	if err != nil {
		return nil, err
	}
	return orders.NewClient(server, orders.WithClient(client.HTTP()))
}

// Create orders once, however often it is called with one Intent. The parameter
// for the key stays empty, and the Transport fills the header in.
//
// What the document declares as a problem comes back as *orders.ProblemStatusCode,
// no answer as an error with an *idem.Error in its chain. Of either the Intent
// says what it means.
func Create(ctx context.Context, client *orders.Client, create *idem.Intent, order *orders.NewOrder) (*orders.Order, error) {
	made, err := client.CreateOrder(idem.WithIntent(ctx, create), order, orders.CreateOrderParams{})
	if err != nil {
		return nil, fmt.Errorf("outcome: %v: %w", create.Outcome(), err)
	}
	return made, nil
}
