package idem

import (
	"testing"

	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
)

// Where the contract says nothing of a 409, one under a key is in progress, for
// all that is known, and one without a key is final.
func TestDecide_BareConflict(t *testing.T) {
	c := contract.Contract{Answers: []contract.Match{}}.WithDefaults()
	for _, kind := range requestKinds {
		h := freshHistory(kind)
		v := decide(&c, h, ended{how: answered, status: 409})
		assert.Equal(t, h.keyed, v.retry, kind)
		assert.Equal(t, noAnswer, v.answer, kind)
		assert.NoError(t, v.reason, kind)
	}
}
