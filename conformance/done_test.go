package conformance_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// doneBefore is what GoCardless answers to the repeat of a creation, as its own
// clients read it.
const doneBefore = `{"error":{"message":"A resource has already been created with this idempotency key","type":"invalid_state","code":409,"errors":[{"reason":"idempotent_creation_conflict","message":"A resource has already been created with this idempotency key","links":{"conflicting_resource_id":"PM00001"}}]}}`

// conflict is the part of it that a caller wants.
type conflict struct {
	Error struct {
		Errors []struct {
			Links struct {
				ID string `json:"conflicting_resource_id"`
			}
		}
	}
}

// The work was done before. Under a 409 this is an answer that carries what was
// created: Call returns no error and reads the body, Do hands the answer over.
func TestDoneBefore(t *testing.T) {
	begin := func(r *rig) {
		r.srv.On("POST /charges").Then("drop@stored", mockserver.Fault(again(409, doneBefore)))
	}
	gocardless := server{contract.GoCardless(), mockserver.Kind{Done: true}}
	in(t, gocardless, func(r *rig) {
		begin(r)
		var out conflict
		res, err := r.client().Call(r.t.Context(), r.in, http.MethodPost, "/charges", r.charge(1), &out)
		r.check(res, err, want{hits: 2, runs: 1, status: 409, outcome: idem.Answered, replay: idem.Replayed})
		require.Len(r.t, out.Error.Errors, 1)
		assert.Equal(r.t, "PM00001", out.Error.Errors[0].Links.ID)
		assert.Equal(r.t, idem.Answered, r.in.State().Outcome, "it stays so in other processes")
	})
	in(t, gocardless, func(r *rig) {
		begin(r)
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.srv.URL+"/charges", reader(r.t, r.charge(1)))
		require.NoError(r.t, err)
		resp, err := r.client().Do(r.in, req)
		require.NoError(r.t, err)
		got := all(r.t, resp)
		assert.JSONEq(r.t, doneBefore, got)
		assert.Len(r.t, got, len(doneBefore), "every byte")
		r.check(idem.ResultOf(resp), nil, want{hits: 2, runs: 1, status: 409, outcome: idem.Answered, replay: idem.Replayed})
	})
}

// Another 409 of the same API is none of this. Without a code it may be about a
// request in progress, so it is asked again, and its end is unknown.
func TestNotDoneBefore(t *testing.T) {
	in(t, server{contract.GoCardless(), mockserver.Kind{Done: true}}, func(r *rig) {
		r.srv.On("POST /charges").Always(answered(409, "application/json", `{"error":{"errors":[{"reason":"bank_account_exists"}]}}`))
		var out conflict
		res, err := r.client().Call(r.t.Context(), r.in, http.MethodPost, "/charges", r.charge(1), &out)
		r.check(res, err, want{hits: 4, status: 409, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExhausted}})
		assert.Empty(r.t, out.Error.Errors)
		assert.Contains(r.t, string(theError(r.t, err).Body), "bank_account_exists")
	})
}

// Where every repeat is a 409 that does not say what came of the first request,
// the caller is told that nothing is known.
func TestDoneOrNot(t *testing.T) {
	in(t, server{Contract: contract.Mangopay()}, func(r *rig) {
		const body = `{"Message":"A resource has already been created with this Idempotency Key","Type":"idempotent_creation_conflict","Id":"x","Date":1452723944,"errors":null}`
		r.srv.On("POST /charges").Then("drop@stored", mockserver.Fault(again(409, body)))
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 2, runs: 1, status: 409, outcome: idem.OutcomeUnknown, fails: true})
		assert.NoError(r.t, theError(r.t, err).Reason, "the answer is final")
	})
}
