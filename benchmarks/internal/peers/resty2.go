package peers

import (
	"context"
	"net/http"

	"github.com/go-resty/resty/v2"
)

// resty2 retries errors by default; for 5xx it needs a condition.
type resty2 struct{ client *resty.Client }

func newResty2(cfg Config) Client {
	return resty2{resty.New().SetTransport(cfg.Transport).SetLogger(quiet{}).
		SetRetryCount(cfg.Attempts - 1).SetRetryWaitTime(cfg.Wait).SetRetryMaxWaitTime(cfg.Wait).
		AddRetryCondition(func(r *resty.Response, err error) bool { return err != nil || retried(r.StatusCode()) })}
}

func (p resty2) Do(ctx context.Context, c Call) (int, error) {
	if !c.plain() {
		return 0, ErrNoSuchBody
	}
	var body any = c.Body
	if c.Stream != nil {
		body = c.Stream()
	}
	req := p.client.R().SetContext(ctx).SetBody(body)
	setHeaders(req.Header, c.Key)
	resp, err := req.Execute(http.MethodPost, c.URL)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode(), nil
}

// quiet is a logger of either version that logs nothing.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}
