// Package after charges as package before does, with idem.
package after

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/idem-go/idem"
)

// New returns a client over base; nil: http.DefaultTransport.
func New(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &idem.Transport{
		Base:        base,
		MaxAttempts: 5,
		Backoff:     idem.Exponential(time.Second, 30*time.Second),
	}}
}

// Charge charges once, however often it is called with one Intent.
func Charge(ctx context.Context, client *http.Client, url string, charge *idem.Intent, order []byte) (*http.Response, error) {
	ctx = idem.WithIntent(ctx, charge)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", bytes.NewReader(order))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return client.Do(req)
}
