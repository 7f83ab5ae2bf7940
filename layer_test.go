package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// never is the State of a store that knows that nothing was sent yet.
func never() idem.State {
	return idem.State{Key: idem.Open().Key(), Since: time.Now(), Outcome: idem.NotExecuted}
}

func pass(next http.RoundTripper) http.RoundTripper { return next }

// A State that says NotExecuted is believed from a store, which has a Layer, and
// from nobody else.
func TestResume_NotExecuted(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		kept, err := idem.Resume(never(), pass)
		require.NoError(t, err)
		assert.Equal(t, idem.NotExecuted, kept.Outcome())
		resp, _, err := r.post(t.Context(), kept, "{}")
		require.NoError(t, err)
		assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome, "the 402 answers the only send there was")

		loose, err := idem.Resume(never(), nil)
		require.NoError(t, err)
		assert.Equal(t, idem.OutcomeUnknown, loose.Outcome())
		resp, _, err = r.post(t.Context(), loose, "{}")
		require.NoError(t, err)
		assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
	}, status(402))
}

// What a Layer's own error says of the outcome is what its store knows.
func TestLayer_OwnErrorTells(t *testing.T) {
	errLost := errors.New("the lease is lost")
	for outcome, want := range map[idem.Outcome]idem.Outcome{
		idem.OutcomeUnknown: idem.OutcomeUnknown, // others may have sent
		idem.Answered:       idem.Answered,
		idem.NotExecuted:    idem.NotExecuted, // it only says that this call did nothing
	} {
		bubble(t, func(t *testing.T, r *rig) {
			in, err := idem.Resume(never(), func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(*http.Request) (*http.Response, error) {
					return nil, &idem.Error{
						Result: idem.Result{Outcome: outcome, Status: 201}, Reason: errLost,
						Header: http.Header{"X-From": {"the store"}},
					}
				})
			})
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "{}")
			e := theError(t, err)
			assert.ErrorIs(t, e, errLost)
			assert.Equal(t, want, e.Outcome)
			assert.Equal(t, want, in.Outcome())
			assert.Equal(t, in.Key(), e.Key)
			assert.Equal(t, "the store", e.Header.Get("X-From"))
			if want == idem.Answered {
				assert.Equal(t, 201, e.Status, "the answer that stands")
			}
			assert.Zero(t, r.count())
		}, created)
	}
}

// The context that a Layer passes on ends the call with its cause, in an attempt
// and in a wait.
func TestLayer_ContextEndsTheCall(t *testing.T) {
	errLost := errors.New("the lease is lost")
	for name, step := range map[string]step{"in an attempt": stall, "in a wait": status(503, "Retry-After", "30")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in, err := idem.Resume(never(), func(next http.RoundTripper) http.RoundTripper {
					return baseFunc(func(req *http.Request) (*http.Response, error) {
						ctx, cancel := context.WithCancelCause(req.Context())
						defer cancel(nil)
						defer time.AfterFunc(time.Second, func() { cancel(errLost) }).Stop()
						return next.RoundTrip(req.WithContext(ctx))
					})
				})
				require.NoError(t, err)
				start := time.Now()
				_, _, err = r.post(t.Context(), in, "{}")
				e := theError(t, err)
				assert.ErrorIs(t, e, errLost)
				assert.Equal(t, time.Second, time.Since(start))
				assert.Equal(t, 1, r.count())
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
			}, step)
		})
	}
}

// A redirect that is followed comes through the Layer again, as the same request.
func TestLayer_AnswersAHopFromItsStore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		hops := 0
		in, err := idem.Resume(never(), func(next http.RoundTripper) http.RoundTripper {
			return baseFunc(func(req *http.Request) (*http.Response, error) {
				if hops++; req.Response == nil {
					return next.RoundTrip(req)
				}
				return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody}, nil
			})
		})
		require.NoError(t, err)
		resp, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		assert.Equal(t, 2, hops)
		assert.Equal(t, 1, r.count())
		res := idem.ResultOf(resp)
		assert.Equal(t, idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Replay: idem.Replayed, Attempts: 1, Sends: 1}, res)
	}, status(307, "Location", "/there"))
}

// The header of the first send is the same on every attempt, and tells the
// earliest time that is known.
func TestFirstSentHeader(t *testing.T) {
	const name = "Repeatability-First-Sent"
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{FirstSentHeader: name}
		start := time.Now()
		opened, saved := idem.Open(), idem.Open()
		saved.State()
		derived, err := idem.Derive("shop", "42", start.Add(-time.Hour))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		for _, tt := range []struct {
			in   *idem.Intent
			want time.Time
		}{{opened, start.Add(time.Minute)}, {saved, start}, {derived, start.Add(-time.Hour)}} {
			r.mu.Lock()
			r.hits, r.steps = nil, []step{status(503, "Retry-After", "5"), lost, created}
			r.mu.Unlock()
			_, _, err := r.post(t.Context(), tt.in, "{}")
			require.NoError(t, err)
			require.Len(t, r.all(), 3)
			for _, h := range r.all() {
				assert.Equal(t, []string{tt.want.UTC().Format(http.TimeFormat)}, h.header[name])
			}
		}
	}, created)
}

// Of very many attempts the first and the newest are kept.
func TestAttemptsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 1500
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "{}")
		require.NoError(t, err)
		attempts := in.Attempts()
		assert.LessOrEqual(t, len(attempts), 1001)
		assert.Equal(t, 1, attempts[0].Number)
		assert.Equal(t, 1500, attempts[len(attempts)-1].Number)
	}, status(503))
}

// Around is outside, the Intent's own Layer inside, the attempts within both.
func TestTransport_Layers(t *testing.T) {
	named := func(log *[]string, name string) idem.Layer {
		return func(next http.RoundTripper) http.RoundTripper {
			return baseFunc(func(r *http.Request) (*http.Response, error) {
				*log = append(*log, name+" in")
				if idem.AttemptNumber(r.Context()) != 0 {
					*log = append(*log, "inside an attempt")
				}
				resp, err := next.RoundTrip(r)
				*log = append(*log, name+" out")
				return resp, err
			})
		}
	}
	resumed := func(t *testing.T, layer idem.Layer) *idem.Intent {
		t.Helper()
		in, err := idem.Resume(idem.State{Key: "k-1", Since: since()}, layer)
		require.NoError(t, err)
		return in
	}
	t.Run("order", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var log []string
			r.transport.Around = named(&log, "around")
			r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) { log = append(log, fmt.Sprint("attempt ", a.Number)) }
			in := resumed(t, named(&log, "own"))
			resp, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 2, idem.ResultOf(resp).Attempts)
			require.Equal(t, []string{"around in", "own in", "attempt 1", "attempt 2", "own out", "around out"}, log)
			r.oneKey()
		}, status(503), created)
	})
	t.Run("what it sees", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					require.Equal(t, in.Key(), q.Header.Get("Idempotency-Key"))
					got, ok := idem.IntentFromContext(q.Context())
					require.True(t, ok)
					require.Same(t, in, got)
					require.NotEmpty(t, in.State().Fingerprint, "taken before the first send")
					q = q.Clone(q.Context())
					q.Header.Set("X-Trace", "t")
					resp, err := next.RoundTrip(q)
					require.NoError(t, err)
					require.Equal(t, idem.Answered, in.Outcome())
					return resp, nil
				})
			}
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			for _, h := range r.all() {
				require.Equal(t, "t", h.header.Get("X-Trace"), "on every attempt")
			}
			r.oneKey()
		}, status(503), created)
	})
	t.Run("changes headers in place", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					q.Header.Set("X-Trace", "t")
					q.Header.Set("Idempotency-Key", "another")
					q.Header["idempotency-key"] = []string{"a third"}
					return next.RoundTrip(q)
				})
			}
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 2, r.count())
			for _, h := range r.all() {
				require.Equal(t, []string{in.Key()}, h.keys, "the key is not the layer's to change")
				require.Equal(t, "t", h.header.Get("X-Trace"), "on every attempt")
			}
		}, status(503), created)
	})
	t.Run("an answer without next that settles nothing", func(t *testing.T) {
		for _, code := range []int{302, 401, 429, 500, 503} {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.Around = func(http.RoundTripper) http.RoundTripper {
					return baseFunc(func(q *http.Request) (*http.Response, error) { return reply(q, code, ""), nil })
				}
				in := idem.Open()
				resp, err := r.transport.RoundTrip(keyedPost(t, in, "http://api/charges", nil))
				require.NoError(t, err)
				resp.Body.Close()
				require.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome, code)
				require.Equal(t, idem.OutcomeUnknown, in.Outcome(), code)
				require.Equal(t, idem.OutcomeUnknown, in.State().Outcome, code)
			}, created)
		}
	})
	t.Run("answers without next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			body := newOpaque("{}")
			in := resumed(t, func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) { return reply(q, 201, "stored"), nil })
			})
			resp, text, err := r.send(keyedPost(t, in, "http://api/charges", body))
			require.NoError(t, err)
			require.Equal(t, "stored", text)
			require.Equal(t, idem.Result{Key: "k-1", Status: 201, Outcome: idem.Answered, Replay: idem.Replayed}, idem.ResultOf(resp))
			require.Equal(t, idem.Answered, in.Outcome())
			require.Empty(t, in.Attempts())
			require.Zero(t, r.count())
			closedOnce(t, body, "not sent")
		}, created)
	})
	t.Run("fails without next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			body := newOpaque("{}")
			in := idem.Open()
			r.transport.Around = func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(*http.Request) (*http.Response, error) { return nil, errDisk })
			}
			_, _, err := r.send(keyedPost(t, in, "http://api/charges", body))
			e := theError(t, err)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, idem.NotExecuted, e.Outcome)
			require.Equal(t, in.Key(), e.Key)
			require.Zero(t, e.Attempts)
			require.Zero(t, r.count())
			closedOnce(t, body, "not sent")
		}, created)
	})
	t.Run("fails after next", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			counted := &closes{RoundTripper: r.base}
			r.transport.Base = counted
			in := idem.Open()
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(q)
					require.NoError(t, err)
					return resp, errDisk // both: the error counts
				})
			}
			resp, err := r.transport.RoundTrip(keyedPost(t, in, "http://api/charges", strings.NewReader("{}"))) //nolint:bodyclose // there is none
			require.Nil(t, resp)
			e := theError(t, err)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, idem.Answered, e.Outcome)
			require.Equal(t, 201, e.Status)
			require.Equal(t, 1, e.Attempts)
			require.Equal(t, counted.out.Load(), counted.closed.Load())
		}, created)
	})
	t.Run("both nil", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(http.RoundTripper) http.RoundTripper {
				return baseFunc(func(*http.Request) (*http.Response, error) { return nil, nil })
			}
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		}, created)
	})
	t.Run("next's error is one of ours", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(q)
					require.Nil(t, resp)
					require.Equal(t, 3, theError(t, err).Attempts)
					return nil, fmt.Errorf("span: %w", err)
				})
			}
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			require.ErrorIs(t, err, idem.ErrExhausted)
		}, lost)
	})
	t.Run("unkeyed requests pass Around as well", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var log []string
			r.transport.Around = named(&log, "around")
			_, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Len(t, log, 2)
		}, created)
	})
	t.Run("a Layer cannot change the key", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					q = q.Clone(q.Context())
					q.Header.Set("Idempotency-Key", "other")
					q.Header["idempotency-key"] = []string{"third"}
					return next.RoundTrip(q)
				})
			}
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, []string{in.Key()}, r.all()[0].keys)
			r.oneKey()
		}, status(503), created)
	})
	t.Run("its deadline bounds the attempts", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					ctx, cancel := context.WithTimeout(q.Context(), time.Second)
					defer cancel()
					return next.RoundTrip(q.WithContext(ctx))
				})
			}
			start := time.Now()
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			e := theError(t, err)
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
			require.LessOrEqual(t, time.Since(start), 2*time.Second, "a layer's context that is done is not tried again")
		}, stall)
	})
}

// A Layer's answer without a body still comes with one, as http.RoundTripper asks.
func TestLayer_AnswersWithoutABody(t *testing.T) {
	transport := &idem.Transport{Around: func(http.RoundTripper) http.RoundTripper {
		return baseFunc(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 201}, nil })
	}}
	in := idem.Open()
	resp, err := transport.RoundTrip(keyedPost(t, in, "http://api/x", nil))
	require.NoError(t, err)
	require.Equal(t, http.NoBody, resp.Body)
	require.Equal(t, idem.Answered, in.Outcome())
}
