package conformance_test

import (
	"fmt"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// says is an answer in front of the server that gives a hint.
func says(h contract.Hint, status int, value string) mockserver.Fault {
	if h.Path != "" {
		return answered(status, "application/json", fmt.Sprintf(`{%q:%s}`, h.Path, value))
	}
	return answered(status, "application/json", `{}`, h.Header+": "+value)
}

// eachHint runs f for every hint of every contract.
func eachHint(t *testing.T, f func(*rig, contract.Hint)) {
	t.Helper()
	for _, s := range servers() {
		for _, h := range s.WithDefaults().Hints {
			t.Run(s.Name+"/"+h.Header+h.Path, func(t *testing.T) { in(t, s, func(r *rig) { f(r, h) }) })
		}
	}
}

// The hint says yes: a 418 is asked again, which no contract speaks of.
func TestHintYes(t *testing.T) {
	eachHint(t, func(r *rig, h contract.Hint) {
		r.srv.On("POST /charges").Then(says(h, 418, h.Retry))
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 2, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
}

// Not so a 422, whatever the hint says.
func TestHintYesOn422(t *testing.T) {
	eachHint(t, func(r *rig, h contract.Hint) {
		r.srv.On("POST /charges").Then(says(h, 422, h.Retry))
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 1, status: 422, outcome: idem.Answered, replay: r.unmarked(), fails: true})
	})
}

// The hint says no: a 503 is not asked again, nor is a 409.
func TestHintNo(t *testing.T) {
	for _, status := range []int{503, 409} {
		eachHint(t, func(r *rig, h contract.Hint) {
			r.srv.On("POST /charges").Then(says(h, status, h.Stop))
			res, err := r.post(r.client(), r.charge(1))
			w := want{hits: 1, status: status, outcome: idem.OutcomeUnknown, replay: r.unmarked(), fails: true}
			switch r.Classify(status, ofJSON(), nil) {
			case contract.Mismatch:
				w.is = []error{idem.ErrMismatch}
				w.outcome = idem.Answered
			case contract.Settled, contract.Final:
				w.outcome = idem.Answered
			}
			r.check(res, err, w)
		})
	}
}

// Silence says nothing, except where it stops; and never of an answer that does
// not come from the API itself.
func TestHintSilent(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then(answered(503, "application/json", `{}`))
		res, err := r.post(r.client(), r.charge(1))
		w := want{hits: 2, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()}
		for _, h := range r.Hints {
			if h.SilenceStops {
				w = want{hits: 1, status: 503, outcome: idem.OutcomeUnknown, replay: r.unmarked(), fails: true}
			}
		}
		r.check(res, err, w)
	})
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then(answered(503, "text/html", `<h1>`))
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, want{hits: 2, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
	})
}
