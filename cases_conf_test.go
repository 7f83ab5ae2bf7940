package idem_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// working is a server whose first request does the work until d after it came;
// meanwhile others get busy, afterwards the stored answer.
func working(d time.Duration, first, busy step) step {
	var mu sync.Mutex
	var until time.Time
	return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		mu.Lock()
		begins := until.IsZero()
		if begins {
			until = time.Now().Add(d)
		}
		done := !begins && !time.Now().Before(until)
		mu.Unlock()
		switch {
		case begins:
			s.exec(h)
			first(s, w, r, h)
		case done:
			created(s, w, r, h)
		default:
			busy(s, w, r, h)
		}
	}
}

// growing checks that waits follow the bound: each gap between half of it and
// the whole, and none shorter than the one before while the bound doubles.
func growing(t *testing.T, gaps []time.Duration, bound idem.Backoff) {
	t.Helper()
	for i, gap := range gaps {
		d := bound(i + 1)
		assert.GreaterOrEqual(t, gap, d/2, "gap %d", i+1)
		assert.LessOrEqual(t, gap, d, "gap %d", i+1)
		if i > 0 && d/2 >= bound(i) {
			assert.GreaterOrEqual(t, gap, gaps[i-1], "gap %d", i+1)
		}
	}
}

// Source: beam-community/stripity-stripe#564.
func TestCase_CONF_1(t *testing.T) {
	busies := map[string]struct {
		busy     step
		contract contract.Contract
	}{
		"bare 409":       {status(409), contract.Contract{}},
		"409 with code":  {coded(409, "in_progress"), codes()},
		"425":            {status(425), contract.Contract{}},
		"423":            {status(423), contract.Contract{}},
		"429":            {status(429), contract.Contract{}},
		"422 by code":    {coded(422, "still_running"), contract.Contract{Answers: []contract.Match{{Status: 422, Path: "code", Value: "still_running", Means: contract.InProgress}, {Status: 422, Means: contract.Mismatch}}}},
		"other 4xx code": {coded(400, "concurrent"), contract.Contract{Answers: []contract.Match{{Status: 400, Path: "code", Value: "concurrent", Means: contract.InProgress}}}},
	}
	for name, test := range busies {
		t.Run(name+"/replay", func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.watching().may422 = name == "422 by code" // the contract says so, by a code
				r.transport.Contract = test.contract
				r.transport.MaxAttempts = 6
				r.transport.AttemptTimeout = 100 * time.Millisecond
				bound := idem.Exponential(20*time.Millisecond, 500*time.Millisecond)
				r.transport.Backoff = bound
				var receipt struct{ ID string }
				in := idem.Open()
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, &receipt)
				require.NoError(t, err)
				assert.Equal(t, "ch_1", receipt.ID)
				assert.Equal(t, idem.Replayed, res.Replay)
				assert.Equal(t, idem.Answered, res.Outcome)
				assert.Equal(t, 1, r.done())
				gaps := r.gaps()
				gaps[0] -= 100 * time.Millisecond // the first attempt's timeout
				growing(t, gaps, bound)
			}, working(400*time.Millisecond, stall, test.busy))
		})
		t.Run(name+"/budget ends first", func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.watching().may422 = name == "422 by code"
				r.transport.Contract = test.contract
				r.transport.AttemptTimeout = 100 * time.Millisecond
				in := idem.Open()
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, nil)
				assert.ErrorIs(t, err, idem.ErrExhausted)
				if name != "425" && name != "423" && name != "429" { // these say nothing of the first request
					assert.ErrorIs(t, err, idem.ErrInProgress)
				}
				assert.NotErrorIs(t, err, idem.ErrMismatch)
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
				assert.Equal(t, in.Key(), res.Key)
				assert.Equal(t, 3, r.count())
				// safe to repeat: the same Intent gets the answer
				time.Sleep(time.Second)
				res, err = r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, nil)
				require.NoError(t, err)
				assert.Equal(t, idem.Replayed, res.Replay)
				assert.Equal(t, 1, r.done())
			}, working(400*time.Millisecond, stall, test.busy))
		})
	}
}

// Source: stripe/stripe-go#642.
func TestCase_CONF_2(t *testing.T) {
	const page = "<html><body>Bad <b>Request</b></body></html>\n"
	html := statusBody(400, page, "Content-Type", "text/html")
	for name, k := range map[string]contract.Contract{"codes": codes(), "default": {}} {
		t.Run("Client/"+name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = k
				var out struct{ ID string }
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, &out)
				e := theError(t, err)
				assert.Equal(t, 400, e.Status)
				assert.Equal(t, 400, res.Status)
				assert.Equal(t, page, string(e.Body))
				assert.Equal(t, "text/html", e.Header.Get("Content-Type"))
				assert.NoError(t, e.Last, "no decode error in place of the page")
				assert.NotContains(t, e.Error(), "decode")
				assert.NotContains(t, e.Error(), "Bad")
				assert.NotErrorIs(t, err, idem.ErrInProgress, "that was the answer before")
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome, "the request of the 409 is still under way")
				assert.Equal(t, 2, r.count())
			}, coded(409, "in_progress"), html)
		})
		t.Run("Transport/"+name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = k
				resp, body, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, 400, resp.StatusCode)
				assert.Equal(t, page, body)
			}, coded(409, "in_progress"), html)
		})
	}
	// JSON that only claims to be it, and a gateway's page under 2xx.
	for name, answers := range map[string]step{
		"claims JSON": statusBody(400, page, asJSON...),
		"no type":     statusBody(400, page, "Content-Type", ""),
		"empty":       statusBody(400, ""),
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = codes()
				_, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, nil)
				e := theError(t, err)
				assert.Equal(t, 400, e.Status)
				assert.NoError(t, e.Last)
				if name != "empty" {
					assert.Equal(t, page, string(e.Body))
				}
			}, coded(409, "in_progress"), answers)
		})
	}
	t.Run("page under 200", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			var out struct{ ID string }
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, &out)
			require.Error(t, err)
			assert.Equal(t, 200, res.Status)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, 2, r.count())
		}, status(409), statusBody(200, page, "Content-Type", "text/html"))
	})
}

// Source: Increase/increase-python#495. The code is data of the contract.
func TestCase_CONF_3(t *testing.T) {
	k := contract.Contract{Answers: []contract.Match{
		{Status: 409, Path: "error.code", Value: "insufficient_funds", Means: contract.Final},
		{Status: 409, Means: contract.InProgress},
		{Status: 422, Means: contract.Mismatch},
	}}
	funds := `{"error":{"message":"in_progress","code":"insufficient_funds"}}`
	t.Run("listed", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/transfers", 1, nil)
			e := theError(t, err)
			assert.Equal(t, 409, res.Status)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, funds, string(e.Body))
			assert.NotErrorIs(t, err, idem.ErrInProgress)
			assert.Equal(t, 1, r.count())
		}, statusBody(409, funds, asJSON...))
	})
	t.Run("after a lost answer", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/transfers", 1, nil)
			require.Error(t, err)
			assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
			assert.Equal(t, 2, r.count())
		}, lost, statusBody(409, funds, asJSON...))
	})
	t.Run("other code", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			_, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/transfers", 1, nil)
			require.NoError(t, err)
			assert.Equal(t, 2, r.count())
		}, statusBody(409, `{"error":{"code":"locked"}}`, asJSON...), created)
	})
	t.Run("every byte is still there", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = k
			r.transport.MaxResponse = -1
			_, body, err := r.post(context.Background(), idem.Open(), "x")
			require.NoError(t, err)
			assert.Equal(t, funds, body)
			assert.Equal(t, 1, r.count())
		}, statusBody(409, funds, asJSON...))
	})
}

// Source: Cyoda/cyoda-go#127. Under the default contract a bare 409 is "in
// progress" and is repeated; a contract that knows better replaces that.
func TestCase_CONF_4(t *testing.T) {
	conflict := statusBody(409, `{"type":"about:blank","title":"Conflict","status":409}`, "Content-Type", "application/problem+json")
	for name, test := range map[string]struct {
		k    contract.Contract
		hits int
	}{
		"default":          {contract.Contract{}, 3},
		"final by status":  {contract.Contract{Answers: []contract.Match{{Status: 409, Means: contract.Final}}}, 1},
		"by codes":         {codes(), 1},
		"settled":          {contract.Contract{Answers: []contract.Match{{Status: 409, Means: contract.Settled}}}, 1},
		"mismatch":         {contract.Contract{Answers: []contract.Match{{Status: 409, Means: contract.Mismatch}}}, 1},
		"any 4xx is final": {contract.Contract{Answers: []contract.Match{{Means: contract.Final}}}, 1},
		"by title":         {contract.Contract{Answers: []contract.Match{{Status: 409, Path: "title", Value: "Conflict", Means: contract.Final}, {Status: 409, Means: contract.InProgress}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = test.k
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/things", 1, nil)
				e := theError(t, err)
				assert.Equal(t, 409, res.Status)
				require.NotNil(t, e.Problem)
				assert.Equal(t, "Conflict", e.Problem.Title)
				assert.Equal(t, test.hits, r.count())
				assert.NotEqual(t, idem.NotExecuted, res.Outcome)
			}, conflict)
		})
	}
	for name, header := range map[string][]string{
		"hint says no":        {"X-Should-Retry", "false"},
		"Stripe hint says no": {"Stripe-Should-Retry", "false"},
		"marked as a replay":  {"Idempotent-Replayed", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, 409, resp.StatusCode)
				assert.Equal(t, 1, r.count())
			}, status(409, header...))
		})
	}
	t.Run("without an Intent", func(t *testing.T) { // also an idempotent method: there is no key to be in progress
		for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
			mixedRow(t, func(t *testing.T, r *rig) {
				_, _, err := r.send(newRequest(t, nil, method, "http://api/things/1", ""))
				require.NoError(t, err)
				assert.Equal(t, 1, r.count(), method)
			}, conflict)
		}
	})
}

// Source: 23/resumable.js#431.
func TestCase_CONF_5(t *testing.T) {
	for _, after := range []string{"0", "", "-1", "00", "0.0", "soon", "Mon, 01 Jan 1990 00:00:00 GMT"} {
		t.Run("Retry-After "+after, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 5
				bound := r.transport.Backoff
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/uploads", 1, nil)
				assert.ErrorIs(t, err, idem.ErrExhausted)
				assert.ErrorIs(t, err, idem.ErrInProgress)
				assert.Equal(t, 409, res.Status)
				assert.Equal(t, 5, r.count())
				growing(t, r.gaps(), bound)
			}, status(409, "Retry-After", after))
		})
	}
}

// Source: airplanedev/js-sdk#254. The choice: 423 is repeated, as 408, 425 and 429.
func TestCase_CONF_6(t *testing.T) {
	for code := 400; code < 500; code++ {
		hits := 1
		switch code {
		case 408, 409, 423, 425, 429:
			hits = 3
		}
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, body, err := r.post(context.Background(), in, "x")
				require.NoError(t, err)
				assert.Equal(t, code, resp.StatusCode)
				assert.Equal(t, "the reason", body)
				assert.Equal(t, hits, r.count())
				want := idem.Answered
				switch {
				case code == 401 || code == 407 || code == 413 || code == 429:
					want = idem.NotExecuted
				case hits > 1:
					want = idem.OutcomeUnknown
				}
				assert.Equal(t, want, in.Outcome())
				assert.Equal(t, want, idem.ResultOf(resp).Outcome)
			}, statusBody(code, "the reason"))
		})
	}
}

// Source: jcagarcia/grape-idempotency#13.
func TestCase_CONF_7(t *testing.T) {
	for name, header := range map[string][]string{
		"plain": nil, "Retry-After": {"Retry-After", "1"}, "told to retry": {"X-Should-Retry", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = codes()
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/payments", 1, nil)
				assert.ErrorIs(t, err, idem.ErrMismatch)
				assert.NotErrorIs(t, err, idem.ErrInProgress)
				assert.Equal(t, 409, res.Status)
				assert.NotEqual(t, idem.NotExecuted, res.Outcome, "the key is taken; by whom is not known")
				assert.Equal(t, 1, r.count())
			}, coded(409, "key_reused", header...))
		})
	}
	t.Run("through the Transport", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = codes()
			in := idem.Open()
			_, body, err := r.post(context.Background(), in, "x")
			require.NoError(t, err)
			assert.Equal(t, problem("key_reused"), body)
			assert.ErrorIs(t, in.Attempts()[0].Reason, idem.ErrMismatch)
		}, coded(409, "key_reused"))
	})
}

// Source: idempot-dev/idempot-js#186.
func TestCase_CONF_8(t *testing.T) {
	for name, busy := range map[string]step{"503": status(503), "409": status(409), "425": status(425), "500": status(500), "dropped": drop} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						resp, body, err := r.post(context.Background(), in, "x")
						if assert.NoError(t, err) {
							assert.Equal(t, 201, resp.StatusCode)
							assert.Equal(t, `{"id":"ch_1"}`, body)
							assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
						}
					})
				}
				wg.Wait()
				assert.Equal(t, 1, r.done())
				assert.Equal(t, idem.Answered, in.Outcome())
				calls := map[int]int{}
				for _, a := range in.Attempts() {
					calls[a.Call]++
				}
				assert.Len(t, calls, 2)
				assert.Equal(t, r.count(), calls[1]+calls[2])
			}, working(12*time.Millisecond, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
				time.Sleep(12 * time.Millisecond)
				answer(w, 201, `{"id":"ch_1"}`, asJSON...)
			}, busy))
		})
	}
	// While the winner's request is under way the loser cannot say "not executed".
	t.Run("loser gives up", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			var wg sync.WaitGroup
			wg.Go(func() { _, _, _ = r.post(context.Background(), in, "x") })
			time.Sleep(time.Millisecond)
			resp, _, err := r.post(context.Background(), in, "x")
			require.NoError(t, err)
			assert.Equal(t, 429, resp.StatusCode)
			assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			wg.Wait()
			assert.Equal(t, idem.Answered, in.Outcome())
		}, working(time.Minute, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			time.Sleep(time.Second)
			answer(w, 201, "")
		}, status(429)))
	})
}

// Source: seaweedfs/seaweedfs#11178.
func TestCase_CONF_9(t *testing.T) {
	for name, test := range map[string]struct {
		step step
		k    contract.Contract
	}{
		"400 by code":          {coded(400, "IdempotentParameterMismatch"), codes()},
		"422":                  {status(422), contract.Contract{}},
		"422 under codes":      {status(422), codes()},
		"last segment of type": {statusBody(400, `{"type":"https://api/errors#mismatch"}`, "Content-Type", "application/problem+json"), contract.Contract{Answers: []contract.Match{{Status: 400, Path: "type", Value: "mismatch", Means: contract.Mismatch}}}},
		"in an array":          {statusBody(400, `{"errors":[{"code":"x"},{"code":"mismatch"}]}`, asJSON...), contract.Contract{Answers: []contract.Match{{Status: 400, Path: "errors.code", Value: "mismatch", Means: contract.Mismatch}}}},
	} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = test.k
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/objects", 1, nil)
				assert.ErrorIs(t, err, idem.ErrMismatch)
				assert.NotEqual(t, idem.NotExecuted, res.Outcome)
				assert.Equal(t, 1, r.count())
			}, test.step)
		})
	}
	t.Run("other code", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = codes()
			_, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/objects", 1, nil)
			require.Error(t, err)
			assert.NotErrorIs(t, err, idem.ErrMismatch)
			assert.Equal(t, 1, r.count())
		}, coded(400, "IdempotentParameter"))
	})
	// Where there is no key, nothing is said of one.
	for method, code := range map[string]int{"GET": 422, "HEAD": 422, "OPTIONS": 409} {
		t.Run(method+" without a key", func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				_, err := r.caller(t).Call(t.Context(), nil, method, "/objects", nil, nil)
				require.Error(t, err)
				assert.NotErrorIs(t, err, idem.ErrMismatch)
				assert.NotErrorIs(t, err, idem.ErrInProgress)
				assert.Equal(t, 1, r.count())
			}, status(code))
		})
	}
	t.Run("never again, whatever a header says", func(t *testing.T) {
		for _, header := range [][]string{
			{"Retry-After", "1"}, {"X-Should-Retry", "true"}, {"Stripe-Should-Retry", "true"}, {"Retry-After-Ms", "5"},
			{"Idempotent-Replayed", "false", "X-Should-Retry", "true"},
		} {
			for _, k := range []contract.Contract{{}, codes(), {Answers: []contract.Match{}}, {Answers: []contract.Match{{Path: "code", Value: "busy", Means: contract.InProgress}}}} {
				row(t, func(t *testing.T, r *rig) {
					r.transport.Contract = k
					resp, _, err := r.post(context.Background(), idem.Open(), "x")
					require.NoError(t, err)
					assert.Equal(t, 422, resp.StatusCode)
					assert.Equal(t, 1, r.count())
				}, coded(422, "invalid", header...))
			}
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			mixedRow(t, func(t *testing.T, r *rig) {
				_, _, err := r.send(newRequest(t, nil, method, "http://api/x", ""))
				require.NoError(t, err)
				assert.Equal(t, 1, r.count())
			}, status(422, "X-Should-Retry", "true", "Retry-After", "1"))
		}
	})
}

// Source: ietf-wg-httpapi/idempotency#11. The choice: a bare 409 under a key is
// "in progress" in both cases, since asking again with the key is harmless.
func TestCase_CONF_10(t *testing.T) {
	t.Run("after our own lost attempt", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 6
			r.transport.Backoff = idem.Exponential(40*time.Millisecond, time.Second)
			in := idem.Open()
			resp, _, err := r.post(context.Background(), in, "x")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
			assert.Equal(t, 1, r.done())
			assert.Equal(t, 409, in.Attempts()[1].Status)
			assert.Equal(t, idem.OutcomeUnknown, in.Attempts()[1].Outcome)
		}, working(500*time.Millisecond, drop, status(409)))
	})
	t.Run("without one", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(context.Background(), idem.Open(), "x")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, 2, r.count())
		}, status(409), created)
	})
	t.Run("for ever", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			resp, _, err := r.post(context.Background(), in, "x")
			require.NoError(t, err, "a response is handed over whatever its status")
			assert.Equal(t, 409, resp.StatusCode)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			assert.ErrorIs(t, in.Attempts()[2].Reason, idem.ErrExhausted)
		}, status(409))
	})
}

// Source: lightbend/cloudflow#424.
func TestCase_CONF_11(t *testing.T) {
	bound := idem.Exponential(100*time.Millisecond, 10*time.Second)
	for _, code := range []int{409, 503} {
		seen := map[time.Duration]bool{}
		for range 20 {
			row(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 5
				r.transport.Backoff = bound
				resp, _, err := r.post(context.Background(), idem.Open(), "x")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				gaps := r.gaps()
				require.Len(t, gaps, 4)
				growing(t, gaps, bound)
				seen[gaps[0]] = true
			}, status(code), status(code), status(code), status(code), created)
		}
		assert.Greater(t, len(seen), 10, "the first wait is jittered")
	}
}
