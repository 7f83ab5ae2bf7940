package peers

import (
	"net/http"

	"github.com/PuerkitoBio/rehttp"
)

func newRehttp(cfg Config) Client {
	policy := rehttp.RetryAll(
		rehttp.RetryMaxRetries(cfg.Attempts-1),
		rehttp.RetryAny(
			rehttp.RetryIsErr(func(err error) bool { return err != nil }),
			func(a rehttp.Attempt) bool { return a.Response != nil && retried(a.Response.StatusCode) },
		),
	)
	return doer((&http.Client{Transport: rehttp.NewTransport(cfg.Transport, policy, rehttp.ConstDelay(cfg.Wait))}).Do)
}
