package peers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
)

// stripePeer makes raw calls through a backend of stripe-go. Its wait is fixed at
// 500 ms and more; below 10 ms Config.Wait turns it off.
type stripePeer struct {
	backend stripe.Backend
	base    string
}

func newStripe(cfg Config) Client {
	b := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               &cfg.BaseURL,
		HTTPClient:        &http.Client{Transport: cfg.Transport},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: new(int64(cfg.Attempts - 1)),
		EnableTelemetry:   new(false),
	})
	b.(*stripe.BackendImplementation).SetNetworkRetriesSleep(cfg.Wait >= 10*time.Millisecond) // its only type
	return stripePeer{b, cfg.BaseURL}
}

func (p stripePeer) Do(ctx context.Context, c Call) (int, error) {
	if c.Body == nil {
		return 0, ErrNoSuchBody
	}
	params := &stripe.Params{Context: ctx}
	if c.Key != "" {
		params.IdempotencyKey = &c.Key
	}
	var out struct {
		stripe.APIResource

		ID string `json:"id"`
	}
	err := p.backend.CallRaw(http.MethodPost, strings.TrimPrefix(c.URL, p.base), "sk_test_peers", c.Body, params, &out)
	if refused, ok := errors.AsType[*stripe.Error](err); ok {
		return refused.HTTPStatusCode, nil
	}
	if err != nil {
		return 0, err
	}
	return out.LastResponse.StatusCode, nil
}
