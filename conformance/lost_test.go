package conformance_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// fresh is what is known of a first answer.
func (r *rig) fresh() idem.Replay {
	if r.PromisesMarker || len(r.Replayed) > 0 && r.Replayed[0].DiffersFrom != "" {
		return idem.NotReplayed
	}
	return idem.ReplayUnknown
}

// again is what is known of a repeated one.
func (r *rig) again() idem.Replay {
	switch {
	case r.kind.Done, len(r.Replayed) > 0:
		return idem.Replayed
	default:
		return idem.ReplayUnknown
	}
}

// repeated is the end of a call whose work was done before.
func (r *rig) repeated(hits, runs int) want {
	w := want{hits: hits, runs: runs, status: http.StatusCreated, outcome: idem.Answered, replay: r.again()}
	switch {
	case r.kind.Done:
		w.status, _ = r.spelled(contract.Done, 0)
	case r.kind.Repeat != 0:
		w.status = r.kind.Repeat
		w.fails = w.status >= 300 // what came of it only the body says
	}
	return w
}

func TestFirst(t *testing.T) {
	each(t, func(r *rig) {
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 1, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
}

// The answer is lost; the repeat is told what came of it.
func TestLostAnswer(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then("reset@stored")
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, r.repeated(2, 1))
	})
}

// The request is lost on its way: the repeat is a first one.
func TestLostRequest(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then("drop@received", "503@received type=text/plain")
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 3, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
}

// Every answer is lost: nothing is known, although the work is done once.
func TestLostForGood(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Always("drop@head")
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 4, runs: 1, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExhausted}})
	})
}

// The same Intent asks again, after the answer.
func TestAskedAgain(t *testing.T) {
	each(t, func(r *rig) {
		c := r.client()
		_, err := r.post(c, r.charge(1))
		if err != nil {
			r.t.Fatal(err)
		}
		r.quiet()
		res, err := r.post(c, r.charge(1))
		r.check(res, err, r.repeated(2, 1))
	})
}

// With the same Intent another request is refused before it is sent.
func TestOtherRequestOfTheSameIntent(t *testing.T) {
	each(t, func(r *rig) {
		c := r.client()
		_, err := r.post(c, r.charge(1))
		if err != nil {
			r.t.Fatal(err)
		}
		res, err := r.post(c, r.charge(2))
		r.check(res, err, want{hits: 1, runs: 1, outcome: idem.NotExecuted, is: []error{idem.ErrIntentReused}})
		r.breach = true // what this call believes is not about the request that the server knows
	})
}

// What marks a replay at another API marks none here.
func TestForeignMark(t *testing.T) {
	each(t, func(r *rig) {
		const name = "X-Idempotency-Cached"
		if replayed, _ := r.Marked(200, http.Header{name: {"true"}}); replayed {
			return
		}
		r.srv.On("POST /charges").Then(answered(200, "application/json", "{}", name+": true"))
		res, err := r.post(r.client(), r.charge(1))
		assert.NoError(r.t, err)
		assert.Equal(r.t, r.unmarked(), res.Replay)
	})
}

// A server that promises a mark, and has one for first answers, sets it there.
func TestMarkOfFirstAnswers(t *testing.T) {
	each(t, func(r *rig) {
		if len(r.Replayed) == 0 || len(r.Replayed[0].No) == 0 {
			return
		}
		c := &http.Client{Transport: r.transport()}
		req, err := http.NewRequestWithContext(idem.WithIntent(r.t.Context(), r.in), http.MethodPost, r.srv.URL+"/charges", reader(r.t, r.charge(1)))
		assert.NoError(r.t, err)
		resp, err := c.Do(req)
		assert.NoError(r.t, err)
		assert.NotEmpty(r.t, all(r.t, resp))
		mark := resp.Header.Values(r.Replayed[0].Header)
		if r.PromisesMarker {
			assert.Equal(r.t, r.Replayed[0].No[:1], mark)
		} else {
			assert.Empty(r.t, mark)
		}
	})
}
