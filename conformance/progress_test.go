package conformance_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// busy lets another process be at work under the key for d.
func (r *rig) busy(d time.Duration) {
	r.srv.On("POST /charges").Then(delay(d))
	body := r.charge(1)
	go r.other(http.MethodPost, r.wire(), body)
	synctest.Wait()
	r.adopt()
}

// The first request is in progress, as the contract spells it, and then done.
func TestInProgress(t *testing.T) {
	each(t, func(r *rig) {
		r.busy(500 * time.Millisecond)
		res, err := r.post(r.client(), r.charge(1))
		if r.kind.Wait {
			r.check(res, err, r.repeated(2, 1))
			assert.Equal(r.t, 500*time.Millisecond, r.in.Attempts()[0].Duration)
			return
		}
		w := r.repeated(3, 1)
		w.asked = time.Second
		r.check(res, err, w)
		status, _ := r.spelled(contract.InProgress, 409)
		first := r.in.Attempts()[0]
		assert.Equal(r.t, status, first.Status)
		assert.True(r.t, first.Retry)
		assert.Equal(r.t, idem.OutcomeUnknown, first.Outcome)
		assert.NotEqual(r.t, idem.Replayed, first.Replay)
	})
}

// It stays in progress for longer than the client asks.
func TestInProgressForLong(t *testing.T) {
	each(t, func(r *rig) {
		r.busy(50 * time.Second)
		r.breach = true // the server ends while the other process still waits
		res, err := r.post(r.client(attempts(2), func(t *idem.Transport) { t.AttemptTimeout = 10 * time.Second }), r.charge(1))
		if r.kind.Wait {
			r.check(res, err, want{hits: 3, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExhausted}})
			return
		}
		status, named := r.spelled(contract.InProgress, 409)
		w := want{hits: 3, status: status, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExhausted}, asked: time.Second, replay: r.unmarked()}
		if named {
			w.is = append(w.is, idem.ErrInProgress)
		}
		r.check(res, err, w)
	})
}

// unmarked is what is known of an answer without a mark.
func (r *rig) unmarked() idem.Replay {
	if r.PromisesMarker {
		return idem.NotReplayed
	}
	return idem.ReplayUnknown
}

// A worker has died. Its claim holds for the lease and no longer.
func TestLease(t *testing.T) {
	each(t, func(r *rig) {
		r.breach = true // a claim is left behind
		r.srv.On("POST /charges").Then("crash@claimed")
		require.Zero(r.t, r.other(http.MethodPost, r.wire(), r.charge(1)))
		time.Sleep(r.Lease - time.Second)
		r.adopt()
		c := r.client(attempts(1), func(t *idem.Transport) { t.AttemptTimeout = 500 * time.Millisecond })
		_, err := r.post(c, r.charge(1))
		assert.Error(r.t, err, "the claim holds")
		assert.Zero(r.t, r.runs.Load())
		time.Sleep(time.Second)
		res, err := r.post(c, r.charge(1))
		if r.kind.Wait { // the second request has waited, and done the work
			r.check(res, err, r.repeated(3, 1))
			return
		}
		r.check(res, err, want{hits: 3, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
}

// A key that was poisoned answers "in progress" for the whole day: the client
// gives up, says that nothing is known, and does no harm by asking again.
func TestPoisonedKey(t *testing.T) {
	dead := contract.Dwolla()
	dead.Lease = 24 * time.Hour
	in(t, server{Contract: dead}, func(r *rig) {
		r.breach = true // a claim is left behind
		r.srv.On("POST /charges").Then("crash@claimed")
		for hits := 4; hits <= 12; hits += 4 {
			res, err := r.post(r.client(), r.charge(1))
			assert.Equal(r.t, 409, res.Status)
			assert.Equal(r.t, idem.OutcomeUnknown, res.Outcome)
			assert.ErrorIs(r.t, err, idem.ErrExhausted)
			assert.ErrorIs(r.t, err, idem.ErrInProgress)
			assert.Len(r.t, r.srv.Requests(""), hits)
			time.Sleep(time.Hour)
		}
		assert.Zero(r.t, r.runs.Load())
		r.oneKey(r.srv.Requests(""))
	})
}
