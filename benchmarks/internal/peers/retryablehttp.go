package peers

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// retryableClient has the package's own policy, and no logger.
func retryableClient(cfg Config, limit time.Duration) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient = &http.Client{Transport: cfg.Transport, Timeout: limit}
	c.Logger = nil
	c.RetryMax = cfg.Attempts - 1
	c.Backoff = func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return cfg.Wait }
	return c
}

// retryable uses the package's own Request and Client.Do.
type retryable struct{ client *retryablehttp.Client }

func newRetryable(cfg Config) Client { return retryable{retryableClient(cfg, 0)} }

func (p retryable) Do(ctx context.Context, c Call) (int, error) {
	if c.Length > 0 && !c.Again {
		return 0, ErrNoSuchBody
	}
	var body any = c.reader()
	if c.Again {
		body = retryablehttp.ReaderFunc(func() (io.Reader, error) { return c.Stream(), nil })
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, c.URL, body)
	if err != nil {
		return 0, err
	}
	setHeaders(req.Header, c.Key)
	return finish(p.client.Do(req))
}

// newRetryableRoundTripper uses its RoundTripper below a plain http.Client. The
// limit is that of an attempt; zero: none.
func newRetryableRoundTripper(limit time.Duration) func(Config) Client {
	return func(cfg Config) Client { return doer(retryableClient(cfg, limit).StandardClient().Do) }
}
