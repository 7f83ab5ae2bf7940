package peers

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
)

// azcore is the pipeline below the Azure SDKs. It takes its bodies only as
// io.ReadSeekCloser.
type azcore struct{ pipeline runtime.Pipeline }

func newAzcore(cfg Config) Client {
	wait := max(cfg.Wait, time.Nanosecond) // zero would mean the default of 800 ms
	return azcore{runtime.NewPipeline("peers", "v0.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
		Transport: &http.Client{Transport: cfg.Transport},
		Retry:     policy.RetryOptions{MaxRetries: int32(cfg.Attempts - 1), RetryDelay: wait, MaxRetryDelay: wait}, //nolint:gosec // a few
	})}
}

func (p azcore) Do(ctx context.Context, c Call) (int, error) {
	if c.Body == nil {
		return 0, ErrNoSuchBody
	}
	req, err := runtime.NewRequest(ctx, http.MethodPost, c.URL)
	if err != nil {
		return 0, err
	}
	if err := req.SetBody(streaming.NopCloser(bytes.NewReader(c.Body)), "application/json"); err != nil {
		return 0, err
	}
	setHeaders(req.Raw().Header, c.Key)
	return finish(p.pipeline.Do(req))
}
