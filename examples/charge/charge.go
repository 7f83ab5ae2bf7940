// Package charge is the code that the README shows: a charge and its test.
package charge

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
)

// Order is what is charged for, Receipt the proof of it.
type (
	Order   struct{ Amount int }
	Receipt struct{ ID string }
)

// ErrUnknown means that nobody knows whether the charge was made.
var ErrUnknown = errors.New("the outcome of the charge is not known: ask again with the same Intent")

// Charge charges for order, once, however often it is called with one Intent:
//
//	charge := idem.Open() // at the click, not where the request is built
func Charge(ctx context.Context, client *idem.Client, charge *idem.Intent, order Order) (Receipt, error) {
	var receipt Receipt
	res, err := client.Call(ctx, charge, "POST", "/charges", order, &receipt)
	switch {
	case err == nil: // done; res.Replay tells whether it was a stored answer
		return receipt, nil
	case res.Outcome == idem.Answered && res.Status >= 400: // the server has said no
		return receipt, fmt.Errorf("not charged: %w", err)
	case res.Outcome == idem.NotExecuted: // certainly not done by this call
		return receipt, fmt.Errorf("not charged by this call, try again later: %w", err)
	default: // unknown, or the answer cannot be read: ask again with the Intent, or look the charge up
		return receipt, errors.Join(ErrUnknown, err)
	}
}
