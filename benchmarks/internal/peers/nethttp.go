package peers

import (
	"context"
	"net/http"
	"time"
)

// doer adapts what has the Do method of http.Client.
type doer func(*http.Request) (*http.Response, error)

func (do doer) Do(ctx context.Context, c Call) (int, error) {
	req, err := c.request(ctx)
	if err != nil {
		return 0, err
	}
	return finish(do(req))
}

// newNetHTTP is the base line: one attempt. A limit of zero means no Timeout.
func newNetHTTP(limit time.Duration) func(Config) Client {
	return func(cfg Config) Client {
		return doer((&http.Client{Transport: cfg.Transport, Timeout: limit}).Do)
	}
}
