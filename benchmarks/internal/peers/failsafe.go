package peers

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
)

//nolint:bodyclose // there is no answer yet: a policy only names its type
func newFailsafe(cfg Config) Client {
	policy := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(cfg.Attempts)
	if cfg.Wait > 0 {
		policy = policy.WithDelay(cfg.Wait)
	}
	return doer((&http.Client{Transport: failsafehttp.NewRoundTripper(cfg.Transport, policy.Build())}).Do)
}
