// Package before charges by a loop that is written by hand. It has the faults that
// such loops often have: do not copy it.
package before

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// Order is what is charged for.
type Order struct {
	Amount int `json:"amount"`
}

// Charge charges for order, it hopes.
func Charge(ctx context.Context, client *http.Client, url string, order Order) error {
	for attempt := range 3 {
		body, err := json.Marshal(order)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", uuid.NewString())
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode < 300 {
				return nil
			}
			if resp.StatusCode < 500 {
				return fmt.Errorf("not charged: %s", resp.Status)
			}
		}
		time.Sleep(time.Second << attempt)
	}
	return errors.New("not charged")
}
