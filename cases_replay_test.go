package idem_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source: stripe/stripe-node#559. That a failure was stored does not say whether
// it came before the work or after it: the outcome stays unknown.
func TestCase_REPLAY_1(t *testing.T) {
	for _, code := range []int{500, 502, 503, 504, 520} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 5
				in := idem.Open()
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, nil)
				e := theError(t, err)
				assert.Equal(t, code, e.Status)
				assert.Equal(t, idem.Replayed, res.Replay)
				assert.Equal(t, idem.Replayed, in.Attempts()[1].Replay)
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
				assert.NotErrorIs(t, err, idem.ErrExhausted)
				assert.Equal(t, "stored", string(e.Body))
				assert.Equal(t, 2, r.count())
			}, execThen(status(code)), statusBody(code, "stored", "Idempotent-Replayed", "true"))
		})
	}
	t.Run("the contract lists it as stored", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 5
			r.transport.Contract = contract.Contract{Answers: []contract.Match{{Status: 500, Means: contract.Settled}}, Stored: contract.StoredAll}
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, nil)
			require.Error(t, err)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, 1, r.count())
		}, status(500))
	})
}

// Source: ietf-wg-httpapi/idempotency#46. The choice: what is marked is final,
// whatever else the answer says.
func TestCase_REPLAY_2(t *testing.T) {
	for name, header := range map[string][]string{
		"Retry-After": {"Retry-After", "1"}, "told to retry": {"X-Should-Retry", "true"}, "both": {"Retry-After", "1", "Stripe-Should-Retry", "true"},
	} {
		for _, code := range []int{503, 429, 409, 425, 408, 500, 404} {
			t.Run(name+"/"+http.StatusText(code), func(t *testing.T) {
				row(t, func(t *testing.T, r *rig) {
					in := idem.Open()
					resp, _, err := r.post(context.Background(), in, "x")
					require.NoError(t, err)
					assert.Equal(t, code, resp.StatusCode)
					assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
					assert.NotEqual(t, idem.NotExecuted, in.Outcome(), "an answer is stored: the key was used before")
					if code < 500 {
						assert.Equal(t, idem.Answered, in.Outcome())
					}
					assert.Equal(t, 1, r.count())
				}, status(code, append([]string{"Idempotent-Replayed", "true"}, header...)...))
			})
		}
	}
	t.Run("marked as fresh", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			_, _, err := r.post(context.Background(), idem.Open(), "x")
			require.NoError(t, err)
			assert.Equal(t, 2, r.count())
		}, status(503, "Idempotent-Replayed", "false"), created)
	})
}

// Source: KeeperHub/keeperhub#1884.
func TestCase_REPLAY_3(t *testing.T) {
	for _, code := range []int{422, 400, 402, 404} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				told := r.attempts()
				in := idem.Open()
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/runs", 1, nil)
				e := theError(t, err)
				assert.Equal(t, idem.Replayed, e.Replay)
				assert.Equal(t, idem.Replayed, res.Replay)
				assert.Equal(t, idem.Replayed, told.all()[0].Replay)
				assert.Equal(t, idem.Answered, res.Outcome, "it is the stored answer to this very request")
				assert.NotErrorIs(t, err, idem.ErrMismatch)
				assert.Equal(t, 1, r.count())
			}, status(code, "Idempotent-Replayed", "true"))
		})
	}
	t.Run("after a lost answer", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/runs", 1, nil)
			require.Error(t, err)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, 2, res.Attempts)
			assert.Equal(t, idem.Replayed, res.Replay)
		}, drop, status(422, "Idempotent-Replayed", "true"))
	})
}

// Source: awaithumans/awaithumans-human-in-the-loop-ai-agents#118.
func TestCase_REPLAY_4(t *testing.T) {
	row(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		var out struct{ ID string }
		res, err := r.caller(t).Call(t.Context(), in, "POST", "/tasks", 1, &out)
		require.NoError(t, err)
		assert.Equal(t, idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Replay: idem.Replayed, Attempts: 2, Sends: 2}, res)
		assert.Equal(t, "ch_1", out.ID)
		assert.Equal(t, 1, r.done())
	}, lost, created)
	t.Run("unmarked", func(t *testing.T) { // nothing is known, and nothing is said
		row(t, func(t *testing.T, r *rig) {
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/tasks", 1, nil)
			require.NoError(t, err)
			assert.Equal(t, idem.ReplayUnknown, res.Replay)
			assert.Equal(t, 2, res.Attempts)
		}, lost, status(201))
	})
	t.Run("marks are promised", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.Contract{PromisesMarker: true}
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/tasks", 1, nil)
			require.NoError(t, err)
			assert.Equal(t, idem.NotReplayed, res.Replay)
		}, drop, status(201))
	})
	t.Run("the same Intent once more", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			for _, want := range []idem.Replay{idem.ReplayUnknown, idem.Replayed} {
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/tasks", 1, nil)
				require.NoError(t, err)
				assert.Equal(t, want, res.Replay)
				assert.Equal(t, 1, res.Attempts, "of this call")
			}
		}, created)
	})
}

// Source: schaurian/schautrack#360.
func TestCase_REPLAY_5(t *testing.T) {
	own := contract.Contract{Replayed: []contract.Marker{{Header: "X-Was-Here", Yes: []string{"ja"}, No: []string{"nein"}}}}
	none := contract.Contract{Replayed: []contract.Marker{}}
	for name, test := range map[string]struct {
		k      contract.Contract
		header []string
		want   idem.Replay
	}{
		"the row's":         {contract.Contract{}, []string{"Idempotency-Replayed", "true"}, idem.Replayed},
		"Stripe's":          {contract.Contract{}, []string{"Idempotent-Replayed", "true"}, idem.Replayed},
		"capitals":          {contract.Contract{}, []string{"IDEMPOTENCY-REPLAYED", "TRUE"}, idem.Replayed},
		"number":            {contract.Contract{}, []string{"X-Idempotent-Replayed", "1"}, idem.Replayed},
		"hit":               {contract.Contract{}, []string{"X-Idempotency-Cache-Hit", "true"}, idem.Replayed},
		"status":            {contract.Contract{}, []string{"Idempotency-Status", "Repeated"}, idem.Replayed},
		"false":             {contract.Contract{}, []string{"Idempotency-Replayed", "false"}, idem.NotReplayed},
		"empty":             {contract.Contract{}, []string{"Idempotency-Replayed", ""}, idem.ReplayUnknown},
		"nonsense":          {contract.Contract{}, []string{"Idempotency-Replayed", "perhaps"}, idem.ReplayUnknown},
		"none":              {contract.Contract{}, nil, idem.ReplayUnknown},
		"own":               {own, []string{"X-Was-Here", "ja"}, idem.Replayed},
		"own, fresh":        {own, []string{"X-Was-Here", "nein"}, idem.NotReplayed},
		"own, not default":  {own, []string{"Idempotent-Replayed", "true"}, idem.ReplayUnknown},
		"none are believed": {none, []string{"Idempotent-Replayed", "true"}, idem.ReplayUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = test.k
				resp, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, test.want, idem.ResultOf(resp).Replay)
				if test.want == idem.Replayed {
					assert.Equal(t, 1, r.count())
				} else {
					assert.Equal(t, 3, r.count())
				}
			}, status(503, test.header...))
		})
	}
	// Two ids that differ mark a replay only on 2xx: they differ on the answer to
	// a request in progress as well, and that is repeated.
	for name, test := range map[string]struct {
		code        int
		first, this string
		want        idem.Replay
		hits        int
	}{
		"ids differ": {201, "req_1", "req_2", idem.Replayed, 1}, "ids agree": {201, "req_1", "req_1", idem.NotReplayed, 1},
		"in progress": {409, "req_1", "req_2", idem.ReplayUnknown, 3}, "no second id": {201, "req_1", "", idem.ReplayUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, test.want, idem.ResultOf(resp).Replay)
				assert.Equal(t, test.hits, r.count())
			}, status(test.code, "Original-Request", test.first, "Request-Id", test.this))
		})
	}
}

// Source: checkout.com, "retry-a-payment". Where 5xx are not stored the same key
// may do the work again: nothing is claimed, and a contract can say "final".
func TestCase_REPLAY_6(t *testing.T) {
	again := func(code int) step { // keeps nothing: each request does the work
		return func(s *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			s.exec(hit{})
			answer(w, code, "")
		}
	}
	t.Run("default", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/payments", 1, nil)
			require.NoError(t, err)
			assert.Equal(t, 2, res.Attempts)
			assert.Equal(t, idem.ReplayUnknown, res.Replay)
			assert.Equal(t, 2, r.count())
		}, again(500), again(201))
	})
	t.Run("500 is final", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.Contract{Stored: contract.StoredSuccess, Answers: []contract.Match{
				{Status: 500, Means: contract.Final}, {Status: 409, Means: contract.InProgress}, {Status: 422, Means: contract.Mismatch},
			}}
			in := idem.Open()
			res, err := r.caller(t).Call(t.Context(), in, "POST", "/payments", 1, nil)
			require.Error(t, err)
			assert.NotErrorIs(t, err, idem.ErrExhausted)
			assert.Equal(t, 500, res.Status)
			assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			assert.Equal(t, 1, r.count())
			assert.Equal(t, 1, r.done())
		}, again(500), again(201))
	})
	// After a lost answer a 402 that is not stored does not settle: the first
	// request may yet work.
	t.Run("402 after a lost one", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/payments", 1, nil)
			require.Error(t, err)
			assert.Equal(t, 402, res.Status)
			assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		}, lost, status(402))
	})
}

// Source: square/connect-api-examples#47.
func TestCase_REPLAY_7(t *testing.T) {
	mixedRow(t, func(t *testing.T, r *rig) {
		client := r.caller(t)
		in := idem.Open()
		res, err := client.Call(t.Context(), in, "POST", "/payments", map[string]string{"card": "bad"}, nil)
		require.Error(t, err)
		require.Equal(t, 402, res.Status)
		require.Equal(t, idem.Answered, res.Outcome)
		amended := map[string]string{"card": "good"}
		_, err = client.Call(t.Context(), in, "POST", "/payments", amended, nil)
		require.ErrorIs(t, err, idem.ErrIntentReused)
		assert.Contains(t, err.Error(), "open a new one", err.Error())
		assert.Equal(t, 1, r.count())
		time.Sleep(time.Second)
		_, err = client.Call(t.Context(), idem.Open(), "POST", "/payments", amended, nil)
		require.NoError(t, err)
		keys := r.all()
		assert.NotEqual(t, keys[0].keys, keys[1].keys)
	}, status(402), created)
}
