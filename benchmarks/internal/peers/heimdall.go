package peers

import (
	"net/http"

	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"
)

// newHeimdall: its backoff counts whole milliseconds.
func newHeimdall(cfg Config) Client {
	c := httpclient.NewClient(
		httpclient.WithHTTPClient(&http.Client{Transport: cfg.Transport}),
		httpclient.WithRetryCount(cfg.Attempts-1),
		httpclient.WithRetrier(heimdall.NewRetrier(heimdall.NewConstantBackoff(cfg.Wait, 0))),
	)
	return doer(c.Do)
}
