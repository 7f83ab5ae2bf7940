// Package issue wires go-github to idem. GitHub keeps no keys, so that there are
// no Intents here: reads are repeated, and what creates something is sent once.
package issue

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-github/v89/github"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// Transport returns a Transport for an API without keys: no method carries one.
// An Intent in the context would tell the outcome of what was sent, but asking
// again with it would do the work again. PUT and DELETE, which are
// idempotent by themselves, are repeated like reads.
func Transport() *idem.Transport {
	return &idem.Transport{Contract: contract.Contract{Methods: []string{}}}
}

// New returns a client over transport. url is empty but in tests. go-github
// repeats nothing by itself, unless a context asks it to wait for the end of a
// rate limit (SleepUntilPrimaryRateLimitResetWhenRateLimited).
func New(token, url string, transport *idem.Transport) (*github.Client, error) {
	options := []github.ClientOptionsFunc{github.WithTransport(transport), github.WithAuthToken(token)}
	if url != "" {
		options = append(options, github.WithURLs(&url, nil))
	}
	return github.NewClient(options...)
}

// ErrUnknown means that nobody knows whether the issue was opened.
var ErrUnknown = errors.New("nobody knows whether the issue was opened: look for it before you try again")

// Create opens an issue. It is sent once; if the answer is lost, only a look at
// the list of issues can tell.
func Create(ctx context.Context, client *github.Client, owner, repo, title string) (*github.Issue, error) {
	made, resp, err := client.Issues.Create(ctx, owner, repo, &github.IssueRequest{Title: &title})
	if err == nil {
		return made, nil
	}
	var outcome idem.Outcome
	if e, ok := errors.AsType[*idem.Error](err); ok {
		outcome = e.Outcome
	} else if resp != nil {
		outcome = idem.ResultOf(resp.Response).Outcome
	}
	if outcome == idem.OutcomeUnknown {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return nil, err
}
