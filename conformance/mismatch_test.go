package conformance_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// The key came before with another request. The client hears it once, with the
// contract's own answer, or is given the first one's.
func TestMismatch(t *testing.T) {
	each(t, func(r *rig) {
		r.breach = true // somebody sends two requests with one key
		require.Equal(r.t, 201, r.other(http.MethodPost, r.wire(), r.charge(1)))
		r.quiet()
		r.adopt()
		res, err := r.post(r.client(), r.charge(2))
		if r.kind.Loose {
			r.check(res, err, r.repeated(2, 1))
			return
		}
		status, named := r.spelled(contract.Mismatch, 422)
		w := want{hits: 2, runs: 1, status: status, outcome: idem.OutcomeUnknown, replay: r.unmarked(), fails: true}
		if named {
			w.is = []error{idem.ErrMismatch}
		}
		r.check(res, err, w)
		assert.Equal(r.t, named, assert.ObjectsAreEqual(idem.ErrMismatch, theError(r.t, err).Reason))
	})
}

func theError(t *testing.T, err error) *idem.Error {
	t.Helper()
	var e *idem.Error
	require.ErrorAs(t, err, &e)
	return e
}

// A key belongs to its caller: the same key of two callers is two.
func TestScope(t *testing.T) {
	in(t, server{Contract: contract.Default()}, func(r *rig) {
		r.breach = true // one key is meant to work twice
		for i, caller := range []string{"Bearer anna", "Bearer otto", "Bearer anna"} {
			c, err := idem.NewClient(idem.Config{BaseURL: r.srv.URL, Header: http.Header{"Authorization": {caller}}, Transport: r.transport()})
			require.NoError(r.t, err)
			res, err := r.post(c, r.charge(1))
			r.check(res, err, want{
				hits: i + 1, runs: min(i+1, 2), status: 201, outcome: idem.Answered,
				replay: []idem.Replay{idem.ReplayUnknown, idem.ReplayUnknown, idem.Replayed}[i],
			})
		}
	})
}
