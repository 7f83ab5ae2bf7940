// Package before charges with go-retryablehttp, with a key of the caller's.
package before

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"
)

// New returns a client over base; nil: http.DefaultTransport.
func New(base http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base}
	client.RetryMax = 4
	client.RetryWaitMin, client.RetryWaitMax = time.Second, 30*time.Second
	client.Logger = nil
	return client
}

// Charge charges, with another key each time that it is called.
func Charge(ctx context.Context, client *retryablehttp.Client, url string, order []byte) (*http.Response, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url+"/charges", order)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", uuid.NewString())
	return client.Do(req)
}
