package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// failing runs f for every contract, without what a server does with the repeat
// of a success.
func failing(t *testing.T, f func(*rig)) {
	t.Helper()
	for _, s := range servers() {
		s.kind = mockserver.Kind{Wait: s.kind.Wait, Loose: s.kind.Loose}
		t.Run(s.Name, func(t *testing.T) { in(t, s, f) })
	}
}

// The first run fails with a 400, which ends the call. Asked again, a server
// that has stored it says the same, another one runs again.
func TestStored400(t *testing.T) {
	failing(t, func(r *rig) {
		c := r.client()
		res, err := r.post(c, r.charge(1, 400))
		r.check(res, err, want{hits: 1, runs: 1, status: 400, outcome: idem.Answered, replay: r.fresh400(), fails: true})
		r.quiet()
		res, err = r.post(c, r.charge(1, 400))
		if !r.Stored.Keeps(400) {
			r.check(res, err, want{hits: 2, runs: 2, status: 201, outcome: idem.Answered, replay: r.fresh()})
			return
		}
		w := want{hits: 2, runs: 1, status: 400, outcome: idem.OutcomeUnknown, replay: r.again400(), fails: true}
		if w.replay == idem.Replayed {
			w.outcome = idem.Answered // the stored answer is the answer, whatever was lost before
		}
		r.check(res, err, w)
	})
}

// fresh400 is fresh for an answer that is no success.
func (r *rig) fresh400() idem.Replay {
	if len(r.Replayed) > 0 && r.Replayed[0].Success {
		return r.unmarked()
	}
	return r.fresh()
}

// again400 is again for an answer that is no success.
func (r *rig) again400() idem.Replay {
	if len(r.Replayed) > 0 && r.Replayed[0].Success {
		return r.unmarked()
	}
	return r.again()
}

// The first run fails with a 500. It is asked again at once, unless the contract
// knows better: a stored one is given again, otherwise the work is done now.
func TestStored500(t *testing.T) {
	failing(t, func(r *rig) {
		res, err := r.post(r.client(), r.charge(1, 500))
		w := want{hits: 2, runs: 2, status: 201, outcome: idem.Answered, replay: r.fresh()}
		failed := want{hits: 2, runs: 1, status: 500, outcome: idem.OutcomeUnknown, replay: r.again400(), fails: true}
		switch {
		case r.Classify(500, ofJSON(), nil) == contract.Final, r.Advice(500, ofJSON(), nil) == contract.AdviseStop:
			w = failed
			w.hits, w.replay = 1, r.fresh400()
		case r.Stored.Keeps(500) && failed.replay == idem.Replayed:
			w = failed
		case r.Stored.Keeps(500):
			w = failed
			w.hits, w.is = 4, []error{idem.ErrExhausted}
		}
		r.check(res, err, w)
	})
}

// What the contract lists as given before the work is no outcome of it: it is
// not stored, and the client knows that nothing was done. Another status of the
// same kind is an outcome.
func TestRefused(t *testing.T) {
	failing(t, func(r *rig) {
		status := r.Refusals[0]
		c := r.client()
		res, err := r.post(c, r.charge(1, status))
		r.check(res, err, want{hits: 1, runs: 1, status: status, outcome: idem.NotExecuted, replay: r.fresh400(), fails: true})
		r.quiet()
		res, err = r.post(c, r.charge(1, status))
		r.check(res, err, want{hits: 2, runs: 2, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
	failing(t, func(r *rig) {
		status := 401
		if r.Refuses(401) {
			status = 403
		}
		c := r.client()
		res, err := r.post(c, r.charge(1, status))
		r.check(res, err, want{hits: 1, runs: 1, status: status, outcome: idem.Answered, replay: r.fresh400(), fails: true})
		r.quiet()
		_, _ = r.post(c, r.charge(1, status))
		runs := 2
		if r.Stored.Keeps(status) {
			runs = 1
		}
		assert.EqualValues(r.t, runs, r.runs.Load())
	})
}
