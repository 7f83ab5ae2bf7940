package idem_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The traces by which a model checker broke earlier forms of the outcome rules,
// shortest first. Each is one way in which a plausible rule lies.

// A keyed request works on a pooled connection, which dies; net/http dials again
// and is refused. The error is a dial error, and there is one effect.
func TestTrace_V1_DialErrorAfterResend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.warm(t, 1)
		r.transport.MaxAttempts = 1
		r.server.steps = []step{func(s *server, _ http.ResponseWriter, _ *http.Request, h hit) {
			s.exec(h)
			go r.down("api")
			synctest.Wait()
			panic(http.ErrAbortHandler)
		}}
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		e := theError(t, err)
		require.ErrorIs(t, err, errRefused)
		assert.Equal(t, 1, r.done())
		assert.Equal(t, 1, e.Sends)
		assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	})
}

// As V1, but the re-send is refused with a status that has no effect: the first
// send had one.
func TestTrace_V2_RefusalAfterResend(t *testing.T) {
	for _, code := range []int{401, 407, 413, 429} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.warm(t, 1)
				r.transport.MaxAttempts = 1
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				res := idem.ResultOf(resp)
				assert.Equal(t, code, res.Status)
				assert.Equal(t, 1, res.Attempts)
				assert.Equal(t, 2, res.Sends)
				assert.Equal(t, 1, r.done())
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
			}, lost, status(code))
		})
	}
}

// A gateway forwards and answers 408 itself (or 409, 423, 425): what it forwarded
// may work later, whatever follows.
func TestTrace_V3_GatewayStatusLeavesSendOpen(t *testing.T) {
	for _, code := range []int{408, 409, 423, 425} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				res := idem.ResultOf(resp)
				assert.Equal(t, 429, res.Status)
				assert.Equal(t, 3, res.Attempts)
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
			}, status(code), status(429))
		})
	}
}

// One call is in flight, another on the same Intent is refused or cancelled: it
// must not say that nothing was done.
func TestTrace_V4_OtherCallInFlight(t *testing.T) {
	release := make(chan struct{})
	bubble(t, func(t *testing.T, r *rig) {
		release = make(chan struct{})
		r.transport.MaxAttempts = 1
		in := idem.Open()
		var wg sync.WaitGroup
		wg.Go(func() {
			resp, _, err := r.post(t.Context(), in, "{}")
			assert.NoError(t, err)
			assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		})
		synctest.Wait()
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome(), "in flight")

		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		assert.Equal(t, 429, resp.StatusCode)
		assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = r.post(ctx, in, "{}")
		assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)

		close(release)
		wg.Wait()
		assert.Equal(t, idem.Answered, in.Outcome())
		assert.Equal(t, 1, r.done())
	}, func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		<-release
		created(s, w, r, h)
	}, status(429))
}

// The Intent is written down before its first send, sent, and the process dies.
// What is loaded is older than the send.
func TestTrace_V5_SavedBeforeTheSend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		saved, err := json.Marshal(in)
		require.NoError(t, err)
		r.transport.MaxAttempts = 1
		_, _, err = r.post(t.Context(), in, "{}")
		require.Error(t, err)
		require.Equal(t, 1, r.done())

		for name, then := range map[string]func(){"dead network": func() { r.down("api") }, "429": func() { r.server.steps = []step{status(429)} }} {
			resumed := new(idem.Intent)
			require.NoError(t, json.Unmarshal(saved, resumed))
			assert.Equal(t, idem.OutcomeUnknown, resumed.Outcome(), name)
			then()
			_, _, err = r.post(t.Context(), resumed, "{}")
			if err != nil {
				assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome, name)
			}
			assert.Equal(t, idem.OutcomeUnknown, resumed.Outcome(), name)
			if name == "dead network" {
				r.serve("api", r.server)
			}
		}
	}, lost)
}

// A derived or adopted key has a past that this process does not know.
func TestTrace_V6_KeyWithUnknownPast(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.down("api")
		derived, err := idem.Derive("orders", "42/charge", since())
		require.NoError(t, err)
		adopted, err := idem.Adopt("order-42", since())
		require.NoError(t, err)
		for _, in := range []*idem.Intent{derived, adopted, derived.Child("step")} {
			_, _, err = r.post(t.Context(), in, "{}")
			assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			assert.Zero(t, theError(t, err).Sends)
		}
		fresh := idem.Open()
		_, _, err = r.post(t.Context(), fresh, "{}")
		assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome, "an Intent opened here has no past")
	}, created)
}

// A settled answer is not taken back by a later call, here or after a restart.
func TestTrace_V7_SettledStays(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Equal(t, idem.Answered, in.Outcome())

		check := func(in *idem.Intent) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _, err = r.post(ctx, in, "{}")
			e := theError(t, err)
			assert.Equal(t, idem.Answered, e.Outcome)
			assert.ErrorIs(t, e, context.Canceled)

			resp, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			assert.Equal(t, 409, resp.StatusCode)
			assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
			assert.Equal(t, idem.Answered, in.Outcome())
		}
		check(in)
		resumed, err := idem.Resume(in.State(), nil)
		require.NoError(t, err)
		check(resumed)
	}, created, status(409))
}

// After a send whose answer was lost, an unmarked 4xx of a server that does not
// store it says nothing about the first send.
func TestTrace_V8_V9_V10_AnswerToAnotherSend(t *testing.T) {
	for _, code := range []int{402, 404, 400, 403, 422} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "{}")
				require.NoError(t, err)
				assert.Equal(t, code, resp.StatusCode, "it is handed over")
				assert.Equal(t, 2, idem.ResultOf(resp).Attempts)
				assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			}, lost, status(code))
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome, "it answers the only send")
			}, status(code))
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "{}")
				require.NoError(t, err)
				assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome, "it is the stored answer")
			}, lost, status(code, "Idempotent-Replayed", "true"))
		})
	}
	t.Run("business 409 by code", func(t *testing.T) {
		known := contract.Contract{Answers: []contract.Match{{Status: 409, Path: "code", Value: "exists", Means: contract.Final}}}
		conflict := statusBody(409, `{"code":"exists"}`, "Content-Type", "application/json")
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = known
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			assert.Equal(t, 2, r.count())
		}, lost, conflict)
	})
}

// A gateway forwards and answers with a status that is final: the work follows.
func TestTrace_V11_FinalServerErrorIsUnknown(t *testing.T) {
	for _, code := range []int{501, 505, 506, 508, 510, 511} {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			assert.Equal(t, code, resp.StatusCode)
			assert.Equal(t, 1, r.count())
			assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
		}, status(code))
	}
}

// The first attempt is late, the second is redirected to another origin: if the
// write went there, it would be done twice.
func TestTrace_V12_NoWriteToAnotherOrigin(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		other := &server{t: t, steps: []step{created}, effects: map[string]int{}}
		r.serve("other", other)
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		e := theError(t, err)
		require.ErrorIs(t, e, idem.ErrCrossOrigin)
		assert.Contains(t, e.Error(), "http://api:80")
		assert.Contains(t, e.Error(), "http://other:80")
		assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
		assert.Zero(t, other.count())
		assert.Equal(t, 1, r.done())
	}, lost, status(307, "Location", "http://other/charges"))
}

// A redirect is no answer: what was known before it stays.
func TestTrace_V13_RedirectIsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 2
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		assert.Equal(t, 2, theError(t, err).Attempts, "the hop goes on counting")
		r.oneKey()
	}, status(307, "Location", "/elsewhere"), lost)
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, body, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		assert.Equal(t, "please log in", body)
		assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome, "the 200 of a login page is not the write's")
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}, status(302, "Location", "/login"), statusBody(200, "please log in"))
}

// The window runs from the first time the key can have been sent.
func TestTrace_V14_WindowAfterRestart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		saved := in.State()
		r.transport.MaxAttempts = 1
		_, _, err := r.post(t.Context(), in, "{}")
		require.Error(t, err)
		time.Sleep(24*time.Hour - 2*time.Minute)
		derived, err := idem.Derive("orders", "42", saved.Since)
		require.NoError(t, err)
		resumed, err := idem.Resume(saved, nil)
		require.NoError(t, err)
		for _, late := range []*idem.Intent{in, resumed, derived} {
			hits := r.count()
			_, _, err = r.post(t.Context(), late, "{}")
			require.ErrorIs(t, err, idem.ErrExpired)
			assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			assert.Equal(t, hits, r.count(), "nothing was sent")
		}
	}, lost)
}

// Nothing was sent yet, so the window has not begun.
func TestTrace_V14_WindowBeginsWithTheFirstSend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.down("api")
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		time.Sleep(48 * time.Hour)
		r.serve("api", r.server)
		_, _, err = r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		assert.Equal(t, 1, r.done())
	}, created)
}

// An attempt starts in time and stalls over the end of the window: it is ended
// there, so that nothing is sent again.
func TestTrace_V15_AttemptEndsWithTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.AttemptTimeout = -1
		r.transport.Contract = contract.Contract{Window: time.Hour}
		start := time.Now()
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.ErrorIs(t, err, idem.ErrExpired)
		assert.Equal(t, 58*time.Minute, time.Since(start))
		assert.Equal(t, 1, r.count())
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}, stall)
}

// No client rule can stop a request that lies in a queue until the key is
// forgotten. The margin is what is left: nothing leaves within it.
func TestTrace_V16_NothingLeavesWithinTheMargin(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{Window: 10 * time.Minute}
		r.transport.MaxAttempts = 1000
		r.transport.Backoff = idem.Exponential(time.Second, time.Second)
		start := time.Now()
		_, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.ErrorIs(t, err, idem.ErrExpired)
		hits := r.all()
		last := hits[len(hits)-1].at.Sub(start)
		assert.Less(t, last, 8*time.Minute)
		assert.Greater(t, last, 7*time.Minute)
	}, lost)
}

// Saved before it was bound, an Intent cannot tell another body after a restart;
// bound before, it can.
func TestTrace_V17_BindBeforeSaving(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		req, err := http.NewRequest(http.MethodPost, "http://api/charges", strings.NewReader("400"))
		require.NoError(t, err)
		require.NoError(t, in.Bind(req))
		saved := in.State()
		require.NotEmpty(t, saved.Fingerprint)
		resumed, err := idem.Resume(saved, nil)
		require.NoError(t, err)
		_, _, err = r.post(t.Context(), resumed, "900")
		require.ErrorIs(t, err, idem.ErrIntentReused)
		assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome, "the request at hand")
		assert.Equal(t, idem.OutcomeUnknown, resumed.Outcome(), "the one it is bound to")
		assert.Zero(t, r.count())
		_, _, err = r.post(t.Context(), resumed, "400")
		require.NoError(t, err)
	}, created)
}

// A 403 is not taken for a refusal: filters give it after the work.
func TestTrace_V18_ForbiddenIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		r.down("api")
		_, _, err = r.post(t.Context(), in, "{}")
		assert.NotEqual(t, idem.NotExecuted, theError(t, err).Outcome)
	}, status(403))
}

// A replay-marked 5xx is final, and says nothing about the effect.
func TestTrace_StoredServerErrorIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		res := idem.ResultOf(resp)
		assert.Equal(t, 2, res.Attempts)
		assert.Equal(t, idem.Replayed, res.Replay)
		assert.Equal(t, 1, r.done(), "the work was done before it failed")
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
	}, func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		w.WriteHeader(500)
	}, status(500, "Idempotent-Replayed", "true"))
}

// A contract that has no key for a method leaves its requests without one. The
// Intent must know of their sends all the same.
func TestTrace_SendWithoutAKeyCounts(t *testing.T) {
	postOnly := contract.Contract{Methods: []string{http.MethodPost}}
	patch := func(t *testing.T, r *rig, in *idem.Intent) (*http.Response, error) {
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPatch, "http://api/charges/1", strings.NewReader("{}"))
		require.NoError(t, err)
		resp, _, err := r.send(req)
		return resp, err
	}
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = postOnly
		in := idem.Open()
		resp, err := patch(t, r, in)
		require.NoError(t, err)
		assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		assert.Equal(t, idem.Answered, in.Outcome())
		assert.Len(t, in.Attempts(), 1)
		assert.Empty(t, r.all()[0].keys)
	}, created)
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = postOnly
		in := idem.Open()
		_, err := patch(t, r, in)
		require.ErrorIs(t, err, idem.ErrNotRepeatable)
		assert.Equal(t, 1, r.count())
		assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}, lost)
}

// A panic in Base takes an attempt away that may have sent.
func TestTrace_PanicInBaseIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Base = panics{r.base}
		in := idem.Open()
		assert.Panics(t, func() { _, _, _ = r.post(t.Context(), in, "{}") })
		assert.Equal(t, 1, r.done())
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	}, created)
}

type panics struct{ base http.RoundTripper }

func (p panics) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.base.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	panic("in a layer below")
}

// The contract's shortest time between two requests with one key holds between
// two calls as well.
func TestTrace_GapBetweenCalls(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{Gap: 30 * time.Second}
		r.transport.MaxAttempts = 1
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.Error(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = r.post(ctx, in, "{}")
		require.ErrorIs(t, err, idem.ErrWaitTooLong)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, theError(t, err).Attempts)
		_, _, err = r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		require.Len(t, r.gaps(), 1)
		assert.GreaterOrEqual(t, r.gaps()[0], 30*time.Second)
		assert.Less(t, r.gaps()[0], 32*time.Second)
	}, lost, created)
}
