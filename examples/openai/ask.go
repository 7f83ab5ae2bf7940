// Package ask wires openai-go to idem. What it says holds for every SDK that
// Stainless generates: they share the options.
package ask

import (
	"context"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// New returns the service of responses over transport. url is empty but in tests.
// openai.NewClient takes the same options, for all services.
//
// The SDK would repeat a request twice by itself, after 408, 409, 429, 5xx and
// every error of its http.Client: each repetition would be a whole call of the
// Transport's. WithMaxRetries(0) turns that off. WithRequestTimeout, if it is
// used, bounds all attempts of the Transport together.
func New(secret, url string, transport *idem.Transport) responses.ResponseService {
	options := []option.RequestOption{
		option.WithAPIKey(secret),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0),
	}
	if url != "" {
		options = append(options, option.WithBaseURL(url))
	}
	return responses.NewResponseService(options...)
}

// Ask has one answer generated, however often it is called with one Intent. The
// SDK makes up no key of its own, so the context is all that it takes. It helps
// where the server, or a gateway in front of it, keeps keys; where it does not,
// leave the Intent out, and a request that may have been worked on is not
// repeated.
func Ask(ctx context.Context, client responses.ResponseService, question *idem.Intent, model, text string) (string, error) {
	resp, err := client.New(idem.WithIntent(ctx, question), responses.ResponseNewParams{
		Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(text)},
	})
	if err != nil {
		return "", err
	}
	return resp.OutputText(), nil
}
