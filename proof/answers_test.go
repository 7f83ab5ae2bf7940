package proof_test

import (
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answering are servers and gateways with every other kind of answer: in front of
// the key layer, and by the handler, where it is stored.
func answering(k kind) kind {
	k.thorough = false
	k.only = []string{
		"pass", "drop@stored", "reset@received forward=late", "hang@received", "402@claimed; drop@stored",
		"402@claimed; cut@body", "400@claimed", "404@received", "404@claimed", "403@received", "410@received",
		"407@received", "413@received", "422@received", "422@claimed", "422@claimed; drop@stored",
		"409@claimed", "409@claimed; drop@stored", // a conflict of the business, stored
		"423@received", "423@received forward=now", "425@received", "408@received", "504@received forward=late",
		"500@received forward=now", "501@received forward=now", "508@received forward=late", "511@received",
		"503@received header=\"X-Should-Retry: false\"", "400@received header=\"X-Should-Retry: true\"",
		"429@received retry-after=90", "raw@stored text=\"HTTP/1.1 2\"", "malformed@head", "lengths@head",
	}
	return k
}

// TestExhaustiveAnswers runs every other answer, alone and after open sends.
func TestExhaustiveAnswers(t *testing.T) {
	all := kinds()
	for _, k := range []kind{all[0], all[2], all[4]} {
		for _, conn := range []connections{fresh, reused} {
			t.Run(k.name+" on "+conn.String()+" connections", func(t *testing.T) {
				t.Parallel()
				t.Logf("%v", sweepWith(t, answering(k), schedule{conn: conn}, depth(1, 3)))
			})
		}
	}
}

// Two processes hold one Intent: one is refused everywhere, and says so of
// itself; the other works. NotExecuted speaks of the Intent value that says it.
func TestTwoHoldersWeakerPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds()[0])
		s, first := w.story(idem.Open(), false)
		in, err := idem.Resume(first.in.State(), nil)
		require.NoError(t, err)
		second := s.process("second", in, true)
		s.meets("one", "429@received", "401@received")
		s.meets("two", "pass")
		res, err := s.call(t.Context(), first, "one", payload)
		require.NoError(t, err)
		assert.Equal(t, idem.NotExecuted, res.Outcome)
		res, err = s.call(t.Context(), second, "two", payload)
		require.NoError(t, err)
		assert.Equal(t, idem.Answered, res.Outcome)
		assert.Equal(t, idem.NotExecuted, first.in.Outcome(), "of itself")
		assert.Empty(t, s.judge(true))
		assert.Len(t, w.srv.Effects(s.key), 1)
	})
}
