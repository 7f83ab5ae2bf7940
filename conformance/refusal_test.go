package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// The status 429 is a refusal at most APIs: nothing was begun. Where it says "in
// progress", by itself or by a code, something was. A gateway that has sent a
// copy of the request on makes the difference: the client has sent once, gets a
// 429, and the work is done behind it.
func TestInProgressIsNoRefusal(t *testing.T) {
	bare := contract.Match{Status: 429, Means: contract.InProgress}
	code := contract.Match{Status: 429, Path: "code", Value: "in_use", Means: contract.InProgress}
	mismatch := contract.Match{Status: 422, Means: contract.Mismatch}
	for name, c := range map[string]struct {
		answers []contract.Match
		limited bool // a limiter in front answers instead of the API
		want    idem.Outcome
	}{
		"the status says so":                 {[]contract.Match{bare, mismatch}, false, idem.OutcomeUnknown},
		"a code says so":                     {[]contract.Match{code, mismatch}, false, idem.OutcomeUnknown},
		"a code would say so":                {[]contract.Match{code, mismatch}, true, idem.NotExecuted},
		"the status says so, also of limits": {[]contract.Match{bare, mismatch}, true, idem.OutcomeUnknown},
		"nothing says so":                    {nil, true, idem.NotExecuted},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, server{Contract: contract.Contract{Name: "busy", Answers: c.answers}}, func(r *rig) {
				if c.limited {
					r.srv.On("POST /charges").Then(answered(429, "text/plain", "slow down"))
				} else {
					r.srv.On("POST /charges").Then(delay(time.Second))
				}
				doubling := func(t *idem.Transport) { t.MaxAttempts, t.Base = 1, gateway{t.Base, !c.limited} }
				res, err := r.post(r.client(doubling), r.charge(1))
				assert.ErrorIs(r.t, err, idem.ErrExhausted)
				assert.Equal(r.t, 429, res.Status)
				assert.Equal(r.t, 1, res.Sends)
				assert.Equal(r.t, c.want, res.Outcome)
				time.Sleep(2 * time.Second)
				if c.limited {
					assert.Empty(r.t, r.srv.Effects(""))
				} else {
					assert.Len(r.t, r.srv.Effects(""), 1)
				}
			})
		})
	}
}

// A gateway sends a copy of each request on before the request itself.
type gateway struct {
	http.RoundTripper

	copies bool
}

func (g gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.copies {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("the body cannot be had again: %w", err)
		}
		twin := req.Clone(context.Background())
		twin.Body = body
		go func() {
			if resp, err := g.RoundTripper.RoundTrip(twin); err == nil {
				_ = resp.Body.Close()
			}
		}()
		synctest.Wait()
	}
	return g.RoundTripper.RoundTrip(req)
}

// A request in progress that is told by the status 102 shows as a broken answer
// to net/http, and is asked again.
func TestInProgressAs102(t *testing.T) {
	in(t, server{Contract: contract.Interchecks()}, func(r *rig) {
		r.srv.On("POST /charges").Then("drop@stored", "raw@head text=\"HTTP/1.1 102 Processing\\r\\n\\r\\n\"", "409@head type=application/json body={}")
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 3, runs: 1, status: 409, outcome: idem.Answered, fails: true})
		assert.Zero(r.t, r.in.Attempts()[1].Status)
	})
}
