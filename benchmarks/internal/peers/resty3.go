package peers

import (
	"context"
	"net/http"

	"resty.dev/v3"
)

// resty3 must be told to retry a POST. It retries errors that call themselves
// temporary, which a dropped connection does not.
type resty3 struct{ client *resty.Client }

func newResty3(cfg Config) Client {
	return resty3{resty.NewWithClient(&http.Client{Transport: cfg.Transport}).SetLogger(quiet{}).
		SetRetryAllowNonIdempotent(true).
		SetRetryCount(cfg.Attempts-1).SetRetryWaitTime(cfg.Wait).SetRetryMaxWaitTime(cfg.Wait).
		AddRetryConditions(resty.RetryConditionStatus5XX, resty.RetryConditionStatusTooManyRequests)}
}

func (p resty3) Do(ctx context.Context, c Call) (int, error) {
	if !c.plain() {
		return 0, ErrNoSuchBody
	}
	var body any = c.Body
	if c.Stream != nil {
		body = c.Stream()
	}
	req := p.client.R().SetContext(ctx).SetBody(body).SetResponseDoNotParse(true)
	setHeaders(req.Header, c.Key)
	resp, err := req.Execute(http.MethodPost, c.URL)
	if err != nil {
		return 0, err
	}
	return finish(resp.RawResponse, nil)
}
