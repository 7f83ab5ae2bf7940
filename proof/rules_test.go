package proof_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rules of the outcome, and the tests that fail when one of them is undone.
// Each was undone by hand; docs/guarantees.md has the same list.
func rules() map[string][]string {
	return map[string][]string{
		// The outcome is a fold over sends, not over the ends of attempts: a send
		// is open from before its first byte until there is proof.
		"R1": {"TestTrace_V2_RefusalAfterResend", "TestTrace_V3_GatewayStatusLeavesSendOpen", "TestTrace_V11_FinalServerErrorIsUnknown", "TestRule_R1_PanicInBase", "TestExhaustive"},
		// "Never sent" is a count of zero that was seen, never a type of error.
		"R2": {"TestTrace_V1_DialErrorAfterResend", "TestExhaustive"},
		// While another call on the Intent is open, none says NotExecuted or
		// gives an answer for final that is not settled.
		"R3": {"TestExhaustiveCompany", "TestLedger"},
		// An Intent whose past is not known starts as Unknown.
		"R4": {"TestTrace_V5_SavedBeforeTheSend", "TestTrace_V6_KeyWithUnknownPast", "TestExhaustiveRestart"},
		// A settled answer is replaced by nothing but another one.
		"R5": {"TestTrace_V7_SettledStays", "TestExhaustiveCompany", "TestExhaustiveRestart"},
		// An answer that is not settled stands only for the only send; a new
		// send reopens it.
		"R6": {"TestTrace_V8_V9_V10_AnswerToAnotherSend", "TestRule_R6_NewSendReopens", "TestExhaustive"},
		// A redirect is no answer, and a keyed write never goes to another origin.
		"R7": {"TestTrace_V12_NoWriteToAnotherOrigin", "TestTrace_V13_RedirectIsNoAnswer", "TestExhaustiveRedirects"},
		// The window runs from the first time the key can have been sent, and
		// binds re-sends too.
		"R8": {"TestTrace_V14_WindowAfterRestart", "TestTrace_V15_AttemptEndsWithTheWindow", "TestTrace_V16_NothingLeavesWithinTheMargin", "TestExhaustiveDisturbed"},
		// A State carries the fingerprint.
		"R9": {"TestTrace_V17_BindBeforeSaving", "TestExhaustiveRestart"},
		// Refusals are data, and 403 is none.
		"R10": {"TestTrace_V18_ForbiddenIsNoRefusal", "TestRule_R10_ForbiddenAfterForwarding"},
		// A write without a key is sent once.
		"R11": {"TestExhaustive", "TestDecide_EveryStatus", "TestDecide_WithoutAnAnswer"},
	}
}

func TestRulesHaveTests(t *testing.T) {
	names := testNames(t)
	assert.Len(t, rules(), 11)
	for rule, tests := range rules() {
		assert.NotEmpty(t, tests, rule)
		for _, test := range tests {
			assert.Contains(t, names, test, rule)
		}
	}
}

// roundTripper is a function as http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Base that panics takes its answer away: its send stays open for ever.
func TestRule_R1_PanicInBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds()[0])
		in := idem.Open()
		w.story(in, false)
		client := &http.Client{Transport: &idem.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := w.wire.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			panic("in Base")
		})}}
		assert.Panics(t, func() { post(t.Context(), t, client, w, in) })
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		assert.Len(t, w.srv.Effects(in.Key()), 1)
	})
}

// The answer to the only send stands until there is another send: a server that
// does not store it may now do the work.
func TestRule_R6_NewSendReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds()[2])
		require.Equal(t, "stores only 2xx", w.kind.name)
		in := idem.Open()
		s, _ := w.story(in, false)
		s.meets("", "402@claimed", "hang@received")
		resp, err := post(t.Context(), t, w.client, w, in)
		require.NoError(t, err)
		assert.Equal(t, http.StatusPaymentRequired, resp.StatusCode)
		assert.Equal(t, idem.Answered, in.Outcome())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.on = func(where string) {
			if strings.HasPrefix(where, "in flight") || strings.HasPrefix(where, "before") {
				assert.Equal(t, idem.OutcomeUnknown, in.Outcome(), where)
			}
		}
		_, err = post(ctx, t, w.client, w, in)
		var e *idem.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		w.srv.Release(in.Key())
		synctest.Wait()
		assert.Len(t, w.srv.Effects(in.Key()), 1)
	})
}

// A filter answers 403 to what it has let through.
func TestRule_R10_ForbiddenAfterForwarding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds()[0])
		in := idem.Open()
		s, _ := w.story(in, false)
		s.meets("", "403@received forward=late", "refuse@dial", "refuse@dial", "refuse@dial", "refuse@dial")
		resp, err := post(t.Context(), t, w.client, w, in)
		require.NoError(t, err)
		assert.NotEqual(t, idem.NotExecuted, idem.ResultOf(resp).Outcome)
		_, err = post(t.Context(), t, w.client, w, in)
		require.Error(t, err)
		assert.NotEqual(t, idem.NotExecuted, in.Outcome())
		w.srv.Release(in.Key())
		synctest.Wait()
		assert.Len(t, w.srv.Effects(in.Key()), 1)
	})
}

// post makes one call and reads the answer.
func post(ctx context.Context, t *testing.T, client *http.Client, w *world, in *idem.Intent) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(idem.WithIntent(ctx, in), http.MethodPost, w.srv.URL+"/charges", strings.NewReader(payload))
	require.NoError(t, err)
	resp, err := client.Do(req)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	return resp, err
}
