package peers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// aws is the standard retryer of aws-sdk-go-v2 in a bare smithy stack, which is
// built for each call as generated clients do. It does not sign, has no endpoint
// rules, and no retry quota, so that it makes as many attempts as the others.
type aws struct {
	client  *http.Client
	retryer *retry.Standard
}

func newAWS(cfg Config) Client {
	return aws{
		client: &http.Client{Transport: cfg.Transport},
		retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = cfg.Attempts
			o.RateLimiter = ratelimit.None
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return cfg.Wait, nil })
		}),
	}
}

func (p aws) Do(ctx context.Context, c Call) (int, error) {
	if !c.plain() {
		return 0, ErrNoSuchBody
	}
	stack, err := p.stack(c)
	if err != nil {
		return 0, err
	}
	handler := middleware.DecorateHandler(smithyhttp.NewClientHandlerWithOptions(p.client), stack)
	out, _, err := handler.Handle(ctx, struct{}{})
	if refused, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return refused.HTTPStatusCode(), nil
	}
	if err != nil {
		return 0, err
	}
	return out.(int), nil // deserialize has made it
}

// stack returns the middleware of one call.
func (p aws) stack(c Call) (*middleware.Stack, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	serialize := func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (out middleware.SerializeOutput, md middleware.Metadata, err error) {
		req := in.Request.(*smithyhttp.Request) // NewStackRequest has made it
		req.Method, req.URL = http.MethodPost, u
		setHeaders(req.Header, c.Key)
		if in.Request, err = req.SetStream(c.reader()); err != nil {
			return out, md, err
		}
		return next.HandleSerialize(ctx, in)
	}
	stack := middleware.NewStack("order", smithyhttp.NewStackRequest)
	return stack, errors.Join(
		stack.Serialize.Add(middleware.SerializeMiddlewareFunc("serialize", serialize), middleware.After),
		stack.Finalize.Add(retry.NewAttemptMiddleware(p.retryer, smithyhttp.RequestCloner), middleware.After),
		stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("deserialize", deserialize), middleware.After),
	)
}

// deserialize makes a status of an answer, and an error of a bad one, which is
// what the retryer looks at.
func deserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, md, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, md, err
	}
	resp := out.RawResponse.(*smithyhttp.Response) // the client handler has made it
	status, err := finish(resp.Response, nil)
	switch {
	case err != nil:
		return out, md, &smithy.DeserializationError{Err: err}
	case status >= 300:
		return out, md, &smithyhttp.ResponseError{Response: resp, Err: errors.New(resp.Status)}
	}
	out.Result = status
	return out, md, nil
}
