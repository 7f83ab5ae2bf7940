package peers

import (
	"context"
	"net/http"
	"time"

	"github.com/idem-go/idem"
)

// transportOf returns the Transport with everything on: guards, counting of
// sends, the attempt's timeout, the outcome, answers read inside the attempt.
func transportOf(cfg Config) *idem.Transport {
	longest := cfg.Wait * 4 / 3 // it draws from the upper half, so that Wait is the mean
	return &idem.Transport{
		Base:        cfg.Transport,
		MaxAttempts: cfg.Attempts,
		Backoff:     idem.Exponential(longest, longest),
		MaxBody:     cfg.MaxBody,
	}
}

// keeper keeps the Intent of an order in its context.
type keeper struct{}

func (keeper) Open(ctx context.Context) context.Context { return idem.WithIntent(ctx, idem.Open()) }

func (keeper) Outcome(ctx context.Context) idem.Outcome {
	in, _ := idem.IntentFromContext(ctx)
	return in.Outcome()
}

// idemPeer has the Transport below a plain http.Client. Without a key and an
// Intent it opens one for the call.
type idemPeer struct {
	keeper

	client doer
}

func newIdem(cfg Config) Client {
	return idemPeer{client: (&http.Client{Transport: transportOf(cfg)}).Do}
}

func (p idemPeer) Do(ctx context.Context, c Call) (int, error) {
	if _, has := idem.IntentFromContext(ctx); !has && c.Key == "" {
		ctx = p.Open(ctx)
	}
	return p.client.Do(ctx, c)
}

// newIdemUnkeyed is the same, with neither key nor Intent.
func newIdemUnkeyed(cfg Config) Client {
	return doer((&http.Client{Transport: transportOf(cfg)}).Do)
}

// idemClient uses Client.Do, which takes the Intent as a parameter. A key of the
// caller's is adopted.
type idemClient struct {
	keeper

	client *idem.Client
}

func newIdemClient(cfg Config) Client {
	c, err := idem.NewClient(idem.Config{BaseURL: cfg.BaseURL, Transport: transportOf(cfg)})
	if err != nil {
		panic(err) // by a BaseURL of ours
	}
	return idemClient{client: c}
}

func (p idemClient) Do(ctx context.Context, c Call) (int, error) {
	in, has := idem.IntentFromContext(ctx)
	if !has {
		var err error
		if in, err = intentFor(c.Key); err != nil {
			return 0, err
		}
		c.Key = ""
	}
	req, err := c.request(ctx)
	if err != nil {
		return 0, err
	}
	return finish(p.client.Do(in, req))
}

func intentFor(key string) (*idem.Intent, error) {
	if key == "" {
		return idem.Open(), nil
	}
	return idem.Adopt(key, time.Now())
}
