package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Source: ProgixDev/incacook-app#36.
func TestCase_LIFE_1(t *testing.T) {
	for _, when := range []string{"before the first send", "bound before the first send", "in the backoff"} {
		t.Run(when, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				require.NotEmpty(t, in.Key(), "readable before the first send")
				req := newRequest(t, in, "POST", "http://api/charges", "order=1")
				ctx, kill := context.WithCancel(req.Context())
				defer kill()
				if strings.HasPrefix(when, "bound") {
					require.NoError(t, in.Bind(req))
				}
				saved := toJSON(t, in)
				r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) {
					require.True(t, a.Retry)
					if when == "in the backoff" {
						saved = toJSON(t, in)
					}
					kill() // the process ends in the wait
				}
				_, _, err := r.send(req.WithContext(ctx))
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 1, r.count())

				r.restarted()
				again := writtenDown(t, saved)
				require.Equal(t, in.Key(), again.Key())
				require.Equal(t, idem.OutcomeUnknown, again.Outcome())
				if when != "before the first send" {
					_, _, err = r.post(context.Background(), again, "order=2")
					require.ErrorIs(t, err, idem.ErrIntentReused, "the fingerprint came along")
				}
				resp, _, err := r.post(context.Background(), again, "order=1")
				require.NoError(t, err)
				assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
				assert.Equal(t, 2, r.count())
				assert.Equal(t, 1, r.done())
				assert.Equal(t, idem.Answered, again.Outcome())
			}, lost, created)
		})
	}
}

// Source: crbnos/carbon#252. The window of the default contract is 24 h, the
// margin before its end 2 min.
func TestCase_LIFE_2(t *testing.T) {
	const window, margin = 24 * time.Hour, 2 * time.Minute
	// Each gives the Intent to go on with at t0+age; the key can have been sent from t0 on.
	pasts := map[string]func(t *testing.T, r *rig, age time.Duration) *idem.Intent{
		"same process": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "order=1")
			require.Error(t, err)
			time.Sleep(age)
			return in
		},
		"resumed after a send": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "order=1")
			require.Error(t, err)
			time.Sleep(age)
			return writtenDown(t, toJSON(t, in))
		},
		"resumed from before the send": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			in := idem.Open()
			saved := toJSON(t, in)
			_, _, err := r.post(context.Background(), in, "order=1")
			require.Error(t, err)
			time.Sleep(age)
			return writtenDown(t, saved)
		},
		"resumed twice": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			in := idem.Open()
			saved := toJSON(t, in)
			_, _, err := r.post(context.Background(), in, "order=1")
			require.Error(t, err)
			time.Sleep(age / 2)
			saved = toJSON(t, writtenDown(t, saved)) // does not start the clock anew
			time.Sleep(age - age/2)
			return writtenDown(t, saved)
		},
		"adopted": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			t0 := time.Now()
			first, err := idem.Adopt("order-1", t0)
			require.NoError(t, err)
			_, _, err = r.post(context.Background(), first, "order=1")
			require.Error(t, err)
			time.Sleep(age)
			in, err := idem.Adopt("order-1", t0)
			require.NoError(t, err)
			return in
		},
		"derived": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			t0 := time.Now()
			first, err := idem.Derive("shop/charge", "order-1", t0)
			require.NoError(t, err)
			_, _, err = r.post(context.Background(), first, "order=1")
			require.Error(t, err)
			time.Sleep(age)
			in, err := idem.Derive("shop/charge", "order-1", t0)
			require.NoError(t, err)
			return in
		},
		"child of a resumed one": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			parent := idem.Open()
			saved := toJSON(t, parent)
			_, _, err := r.post(context.Background(), parent.Child("charge"), "order=1")
			require.Error(t, err)
			time.Sleep(age)
			return writtenDown(t, saved).Child("charge")
		},
		"child of a resumed one that was sent": func(t *testing.T, r *rig, age time.Duration) *idem.Intent {
			parent := idem.Open()
			_, _, err := r.post(context.Background(), parent.Child("charge"), "order=1")
			require.Error(t, err)
			at := time.Now()
			time.Sleep(age)
			// A Since that is later than FirstSent must not make the child younger.
			in, err := idem.Resume(idem.State{Key: parent.Key(), FirstSent: at, Since: at.Add(age)}, nil)
			require.NoError(t, err)
			return in.Child("charge")
		},
	}
	ages := map[string]struct {
		age  time.Duration
		sent bool
	}{
		"an hour later":        {window + time.Hour, false},
		"at the margin":        {window - margin, false},
		"just before it":       {window - margin - time.Second, true},
		"long after":           {1000 * time.Hour, false},
		"in the middle of it ": {window / 2, true},
	}
	for past, prepare := range pasts {
		for name, test := range ages {
			t.Run(past+"/"+name, func(t *testing.T) {
				row(t, func(t *testing.T, r *rig) {
					r.transport.MaxAttempts = 1
					in := prepare(t, r, test.age)
					require.Equal(t, 1, r.count())
					r.restarted()
					resp, _, err := r.post(context.Background(), in, "order=1")
					assert.Equal(t, 1, r.done())
					if test.sent {
						require.NoError(t, err)
						assert.Equal(t, 201, resp.StatusCode)
						assert.Equal(t, idem.Answered, in.Outcome())
						return
					}
					e := theError(t, err)
					assert.ErrorIs(t, err, idem.ErrExpired)
					assert.Equal(t, 1, r.count(), "sent after the window")
					assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
					assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
					assert.Zero(t, e.Attempts)
				}, lost, created)
			})
		}
	}
	t.Run("answered before", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "order=1")
			require.NoError(t, err)
			time.Sleep(window + time.Hour)
			_, _, err = r.post(context.Background(), in, "order=1")
			assert.ErrorIs(t, err, idem.ErrExpired)
			assert.Equal(t, idem.Answered, theError(t, err).Outcome)
			assert.Equal(t, 1, r.count())
		}, created)
	})
	t.Run("opened long ago, never sent", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			time.Sleep(1000 * time.Hour) // nobody can have sent it: its window begins now
			_, _, err := r.post(context.Background(), in, "order=1")
			require.NoError(t, err)
		}, created)
	})
	t.Run("attempts that sent nothing do not begin it", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.send(newRequest(t, in, "POST", "http://later/charges", "x"))
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			time.Sleep(window + time.Hour)
			r.serve("later", r.server)
			_, _, err = r.send(newRequest(t, in, "POST", "http://later/charges", "x"))
			require.NoError(t, err)
		}, created)
	})
	t.Run("wait past the window", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			told := r.attempts()
			in, err := idem.Adopt("order-1", time.Now().Add(-window+margin+30*time.Second))
			require.NoError(t, err)
			resp, _, err := r.post(context.Background(), in, "order=1")
			require.NoError(t, err)
			assert.Equal(t, 503, resp.StatusCode)
			assert.Equal(t, 1, r.count())
			assert.ErrorIs(t, told.all()[0].Reason, idem.ErrExpired)
			assert.ErrorIs(t, told.all()[0].Reason, idem.ErrWaitTooLong)
		}, status(503, "Retry-After", "40"), created)
	})
	t.Run("attempt into the margin", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			start := time.Now()
			in, err := idem.Adopt("order-1", start.Add(-window+margin+time.Second))
			require.NoError(t, err)
			_, _, err = r.post(context.Background(), in, "order=1")
			assert.ErrorIs(t, err, idem.ErrExpired)
			assert.Equal(t, time.Second, time.Since(start))
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
		}, stall)
	})
	t.Run("shorter and endless windows", func(t *testing.T) {
		for _, test := range []struct {
			window, age time.Duration
			sent        bool
		}{
			{time.Hour, 59 * time.Minute, false}, {time.Hour, 57 * time.Minute, true},
			{time.Minute, 31 * time.Second, false}, {time.Minute, 29 * time.Second, true},
			{-1, 100000 * time.Hour, true}, {30 * 24 * time.Hour, 29 * 24 * time.Hour, true},
		} {
			row(t, func(t *testing.T, r *rig) {
				r.transport.Contract = contract.Contract{Window: test.window}
				in, err := idem.Adopt("order-1", time.Now().Add(-test.age))
				require.NoError(t, err)
				_, _, err = r.post(context.Background(), in, "order=1")
				assert.Equal(t, test.sent, err == nil, "%v old in a window of %v", test.age, test.window)
			}, created)
		}
	})
}

// Source: woocommerce/woocommerce-square#524. The choice: found locally.
func TestCase_LIFE_3(t *testing.T) {
	firsts := map[string]struct {
		step    step
		outcome idem.Outcome // of the Intent, before and after
	}{
		"after 429":         {status(429), idem.NotExecuted},
		"after 503":         {status(503), idem.OutcomeUnknown},
		"after a lost one":  {lost, idem.OutcomeUnknown},
		"after 201":         {created, idem.Answered},
		"after 402":         {status(402), idem.Answered},
		"after a mismatch":  {status(422), idem.Answered},
		"after in progress": {status(409), idem.OutcomeUnknown},
	}
	for name, first := range firsts {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.watching().may422 = true // by the caller, in another call
				in := idem.Open()
				_, _, _ = r.post(context.Background(), in, "amount=1")
				hits := r.count()
				require.Equal(t, first.outcome, in.Outcome())
				for _, other := range []string{"amount=2", "amount=1 ", "", "amount=10"} {
					_, _, err := r.post(context.Background(), in, other)
					assert.ErrorIs(t, err, idem.ErrIntentReused)
					e := theError(t, err)
					assert.Equal(t, idem.NotExecuted, e.Outcome, "the other request was not sent")
					assert.Zero(t, e.Attempts)
					assert.Contains(t, e.Error(), "open a new one")
					assert.Contains(t, e.Error(), "Child")
					assert.Equal(t, first.outcome, in.Outcome())
				}
				assert.Equal(t, hits, r.count())
				// the same request is still welcome
				_, _, _ = r.post(context.Background(), in, "amount=1")
				assert.Greater(t, r.count(), hits)
			}, first.step)
		})
	}
	// What cannot be found locally, since the State was taken before the first
	// send, is handed back after one hit.
	t.Run("told by the server", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			saved := toJSON(t, in)
			_, _, err := r.post(context.Background(), in, "amount=1")
			require.NoError(t, err)
			r.restarted()
			again := writtenDown(t, saved)
			res, err := r.caller(t).Call(t.Context(), again, "POST", "/charges", "amount=2", nil)
			assert.ErrorIs(t, err, idem.ErrMismatch)
			assert.Equal(t, 422, res.Status)
			assert.Equal(t, idem.OutcomeUnknown, res.Outcome, "the first body may have worked")
			assert.Equal(t, 2, r.count())
		}, created, status(422))
	})
}

// Source: ubicloud/ubicloud#5898. Method, URL with query, and body are all part
// of the local check; headers and credentials are not.
func TestCase_LIFE_4(t *testing.T) {
	const base = "http://api/vms?size=2&zone=a"
	tests := map[string]struct {
		method, url, body string
		header            []string
		same              bool
	}{
		"same":                  {"POST", base, "x", nil, true},
		"other header":          {"POST", base, "x", []string{"X-Trace", "2"}, true},
		"other credentials":     {"POST", "http://me:pw@api/vms?size=2&zone=a", "x", nil, true},
		"fragment":              {"POST", base + "#top", "x", nil, true},
		"host in capitals":      {"POST", "http://API/vms?size=2&zone=a", "x", nil, true},
		"one query value":       {"POST", "http://api/vms?size=4&zone=a", "x", nil, false},
		"one parameter less":    {"POST", "http://api/vms?size=2", "x", nil, false},
		"one parameter more":    {"POST", base + "&gpu=1", "x", nil, false},
		"no query":              {"POST", "http://api/vms", "x", nil, false},
		"query moved into body": {"POST", "http://api/vms", "xsize=2&zone=a", nil, false},
		"other method":          {"PUT", base, "x", nil, false},
		"other path":            {"POST", "http://api/vm?size=2&zone=a", "x", nil, false},
		"escaped slash":         {"POST", "http://api/vms%2F?size=2&zone=a", "x", nil, false},
		"other host":            {"POST", "http://api2/vms?size=2&zone=a", "x", nil, false},
		"other scheme":          {"POST", "https://api/vms?size=2&zone=a", "x", nil, false},
		"other body":            {"POST", base, "y", nil, false},
		"no body":               {"POST", base, "", nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1
				r.net.mu.Lock()
				r.net.hosts["API:80"] = r.net.hosts["api:80"] // names of hosts have no case
				r.net.mu.Unlock()
				in := idem.Open()
				_, _, err := r.send(newRequest(t, in, "POST", base, "x"))
				require.Error(t, err)
				saved := toJSON(t, in)
				for _, in := range []*idem.Intent{in, writtenDown(t, saved)} {
					before := r.count()
					_, _, err = r.send(newRequest(t, in, test.method, test.url, test.body, test.header...))
					if test.same {
						require.NoError(t, err)
						assert.Equal(t, before+1, r.count())
						continue
					}
					assert.ErrorIs(t, err, idem.ErrIntentReused)
					assert.Equal(t, before, r.count())
				}
				assert.Equal(t, 1, r.done())
			}, lost, created)
		})
	}
}

// Source: scripe.io, idempotency_key_conflict. The choice: a local error.
func TestCase_LIFE_5(t *testing.T) {
	tests := map[string]func() (first string, again func() string){
		"stamps the time": func() (string, func() string) {
			stamp := func() string { return `{"at":` + strconv.FormatInt(time.Now().UnixNano(), 10) + `}` }
			return stamp(), stamp
		},
		"counts retries": func() (string, func() string) {
			n := 0
			return `{"retry":0}`, func() string { n++; return `{"retry":` + strconv.Itoa(n/2) + `}` }
		},
		"grows": func() (string, func() string) {
			n := 0
			return "x", func() string { n++; return strings.Repeat("x", 1+n/3) }
		},
		"shrinks": func() (string, func() string) {
			n := 0
			return "xxxx", func() string { n++; return strings.Repeat("x", 4-n/3) }
		},
		"fails": func() (string, func() string) {
			n := 0
			return "x", func() string {
				if n++; n > 1 {
					panic(errors.New("gone"))
				}
				return "x"
			}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) { // row: never two bodies under one key
				first, again := prepare()
				req := newRequest(t, idem.Open(), "POST", "http://api/charges", first)
				req.Body = io.NopCloser(struct{ io.Reader }{strings.NewReader(first)})
				req.GetBody = func() (body io.ReadCloser, err error) {
					defer func() {
						if e, ok := recover().(error); ok {
							err = e
						}
					}()
					return io.NopCloser(struct{ io.Reader }{strings.NewReader(again())}), nil
				}
				_, _, err := r.send(req)
				if err == nil {
					assert.Equal(t, 2, r.count())
					return
				}
				e := theError(t, err)
				// A second hit, if any, had the same bytes: the change was seen after them.
				if r.count() > 0 {
					assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
				}
			}, status(503), created)
		})
	}
}

// Source: HealthByRo/aa-stripe#68.
func TestCase_LIFE_6(t *testing.T) {
	mixedRow(t, func(t *testing.T, r *rig) {
		order := func(instalment string) *idem.Intent {
			in, err := idem.Derive("shop/charge", "order-1/"+instalment, since())
			require.NoError(t, err)
			return in
		}
		parent, err := idem.Derive("shop/order", "order-1", since())
		require.NoError(t, err)
		intents := []*idem.Intent{order("1"), order("2"), parent.Child("instalment 1"), parent.Child("instalment 2"), idem.Open(), idem.Open()}
		keys := map[string]bool{}
		for _, in := range intents {
			keys[in.Key()] = true
			_, _, err := r.post(context.Background(), in, "order=1")
			require.NoError(t, err)
		}
		assert.Len(t, keys, len(intents))
		assert.Equal(t, len(intents), r.done())
		// and one, if the caller asks for one
		assert.Equal(t, order("1").Key(), order("1").Key())
		_, _, err = r.post(context.Background(), order("1"), "order=1")
		require.NoError(t, err)
		assert.Equal(t, len(intents), r.done())
	}, created)
}

// Source: triggerdotdev/trigger.dev#3560.
func TestCase_LIFE_7(t *testing.T) {
	for _, n := range []int{1, 36, 254, 255, 256, 300, 3000} {
		for _, way := range []string{"Adopt", "header", "Resume"} {
			t.Run(strconv.Itoa(n)+"/"+way, func(t *testing.T) {
				row(t, func(t *testing.T, r *rig) {
					key := strings.Repeat("k", n)
					req := newRequest(t, nil, "POST", "http://api/runs", "x")
					var err error
					var in *idem.Intent
					switch way {
					case "Adopt":
						in, err = idem.Adopt(key, since())
					case "Resume":
						in, err = idem.Resume(idem.State{Key: key, Since: since()}, nil)
					default:
						req.Header.Set("Idempotency-Key", key)
					}
					if way != "header" && n <= 255 {
						require.NoError(t, err)
						req = req.WithContext(idem.WithIntent(t.Context(), in))
					}
					if err == nil {
						_, _, err = r.send(req)
					}
					if n > 255 {
						assert.ErrorIs(t, err, idem.ErrInvalidKey)
						assert.NotContains(t, err.Error(), "kkkk")
						assert.Zero(t, r.count())
						return
					}
					require.NoError(t, err)
					assert.Equal(t, []string{key}, r.all()[0].keys)
				}, status(201))
			})
		}
	}
	// A contract may be narrower, for minted keys as well.
	t.Run("narrower contract", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.Contract{MaxKey: 35}
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "x")
			assert.ErrorIs(t, err, idem.ErrInvalidKey)
			assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			assert.Equal(t, idem.NotExecuted, in.Outcome())
			assert.Zero(t, r.count())
		}, status(500))
	})
	t.Run("hex for hyphens", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.Contract{Format: contract.FormatHex, MaxKey: 32}
			in := idem.Open()
			resp, _, err := r.post(context.Background(), in, "x")
			require.NoError(t, err)
			wire := strings.ReplaceAll(in.Key(), "-", "")
			assert.Equal(t, []string{wire}, r.all()[1].keys)
			assert.Equal(t, wire, idem.ResultOf(resp).Key)
		}, status(500), created)
	})
}

// Source: teesofttech/PayBridge#119. An empty header counts as absent: code
// generators send one for a parameter that was left out.
func TestCase_LIFE_8(t *testing.T) {
	bad := map[string]string{
		"space": " ", "spaces": "   ", "tab": "\t", "padded": " k ", "leading": " k", "trailing": "k ", "inside": "a b",
		"newline": "k\n", "CRLF": "k\r\nX-Evil: 1", "NUL": "k\x00", "DEL": "k\x7f", "not ASCII": "kö", "no-break space": "k\u00a0", "not UTF-8": "k\xff",
		"nil UUID": "00000000-0000-0000-0000-000000000000", "nil UUID without hyphens": "00000000000000000000000000000000",
	}
	for name, key := range bad {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in, err := idem.Adopt(key, since())
				assert.ErrorIs(t, err, idem.ErrInvalidKey)
				assert.Nil(t, in)
				in, err = idem.Resume(idem.State{Key: key, Since: since()}, nil)
				assert.ErrorIs(t, err, idem.ErrInvalidKey)
				assert.Nil(t, in)
				data, err := json.Marshal(idem.State{Key: key, Since: since()})
				require.NoError(t, err)
				assert.ErrorIs(t, json.Unmarshal(data, new(idem.Intent)), idem.ErrInvalidKey)
				// With an Intent such a header disagrees, but for the nil UUID.
				_, err = (&idem.Transport{Base: r.watching()}).RoundTrip(newRequest(t, nil, "POST", "http://api/pay", "x", "Idempotency-Key", key))
				assert.ErrorIs(t, err, idem.ErrInvalidKey)
				assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
				assert.NotContains(t, err.Error(), "\n")
				assert.Zero(t, r.count())
			}, created)
		})
	}
	t.Run("empty", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			_, err := idem.Adopt("", since())
			assert.ErrorIs(t, err, idem.ErrInvalidKey)
			_, err = idem.Resume(idem.State{Since: since()}, nil)
			assert.ErrorIs(t, err, idem.ErrInvalidKey)
			_, err = idem.Derive("shop", "", since())
			assert.ErrorIs(t, err, idem.ErrInvalidKey)
			wire := r.written()
			// Without a key, with an empty header: unkeyed, and the header is gone.
			_, _, err = r.send(newRequest(t, nil, "POST", "http://api/pay", "x", "Idempotency-Key", "", "idempotency-key", ""))
			assert.ErrorIs(t, err, idem.ErrNotRepeatable)
			assert.Empty(t, wire.lines("idempotency"))
			assert.Equal(t, 1, r.count())
		}, lost)
	})
	t.Run("nil header", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			r.warm(t, 1) // mere presence of the header would make net/http send again
			wire := r.written()
			req := newRequest(t, nil, "POST", "http://api/pay", "x")
			req.Header["Idempotency-Key"] = nil
			_, _, err := r.send(req)
			assert.ErrorIs(t, err, idem.ErrNotRepeatable)
			assert.Empty(t, wire.lines("idempotency"))
			assert.Equal(t, 1, r.count())
		}, lost)
	})
	t.Run("many zeros are no UUID", func(t *testing.T) {
		for _, key := range []string{strings.Repeat("0", 31), strings.Repeat("0", 40), strings.Repeat("-", 36), "order-" + strings.Repeat("0", 32)} {
			_, err := idem.Adopt(key, since())
			assert.NoError(t, err, "%d bytes", len(key))
		}
	})
}

// Source: ietf-wg-httpapi/idempotency#10. The switch is Contract.Quoted.
func TestCase_LIFE_9(t *testing.T) {
	const key = `say"hi"\now`
	for _, quoted := range []bool{true, false} {
		want := key
		if quoted {
			want = `"say\"hi\"\\now"`
		}
		serve := func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
			if len(h.keys) != 1 || h.keys[0] != want {
				answer(w, 400, "")
				return
			}
			created(s, w, r, h)
		}
		for _, way := range []string{"Intent", "Intent, header as on the wire", "Intent, header bare", "header", "resumed"} {
			t.Run(way+"/"+strconv.FormatBool(quoted), func(t *testing.T) {
				row(t, func(t *testing.T, r *rig) {
					wire := r.written()
					r.transport.Contract = contract.Contract{Quoted: quoted}
					in, err := idem.Adopt(key, since())
					require.NoError(t, err)
					header := []string{"Idempotency-Key", want}
					switch way {
					case "Intent":
						header = nil
					case "Intent, header bare":
						header = []string{"Idempotency-Key", key}
					case "header":
						in = nil
					case "resumed":
						in, header = writtenDown(t, toJSON(t, in)), nil
					}
					resp, _, err := r.send(newRequest(t, in, "POST", "http://api/charges", "x", header...))
					require.NoError(t, err)
					assert.Equal(t, 201, resp.StatusCode)
					line := "Idempotency-Key: " + want
					assert.Equal(t, []string{line, line, line}, wire.lines("idempotency"))
					assert.Equal(t, want, idem.ResultOf(resp).Key)
					if in != nil {
						assert.Equal(t, key, in.Key())
					}
				}, status(503), drop, serve)
			})
		}
	}
	t.Run("header in the wrong grammar", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.IETF()
			for _, value := range []string{"bare", `"open`, `"a"b"`, `"a\`, `"a\x"`, `""`, `"a";v=1`} {
				_, _, err := r.send(newRequest(t, nil, "POST", "http://api/charges", "x", "Idempotency-Key", value))
				assert.ErrorIs(t, err, idem.ErrInvalidKey, value)
			}
			assert.Zero(t, r.count())
		}, created)
	})
	t.Run("longest key", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.IETF()
			in, err := idem.Adopt(strings.Repeat(`"`, 255), since())
			require.NoError(t, err)
			_, _, err = r.post(context.Background(), in, "x")
			require.NoError(t, err)
			assert.Len(t, r.all()[0].keys[0], 2*255+2)
		}, created)
	})
}

// Source: alphagov/pay-connector#4573.
func TestCase_LIFE_10(t *testing.T) {
	for _, code := range []int{404, 400, 402, 403, 410, 412} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				res, err := r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, nil)
				e := theError(t, err)
				assert.Equal(t, code, res.Status)
				assert.Equal(t, in.Key(), e.Key)
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome, "the first send may have worked")
				assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
				assert.Equal(t, 2, res.Attempts)
				assert.Equal(t, 2, r.count())
				assert.Equal(t, 1, r.done())
			}, lost, status(code))
		})
		t.Run(strconv.Itoa(code)+" to the only send", func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, nil)
				require.Error(t, err)
				assert.Equal(t, idem.Answered, res.Outcome)
				assert.Equal(t, 1, r.count())
			}, status(code))
		})
	}
	t.Run("refused before it", func(t *testing.T) { // a closed send does not count
		row(t, func(t *testing.T, r *rig) {
			res, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", 1, nil)
			require.Error(t, err)
			assert.Equal(t, idem.Answered, res.Outcome)
			assert.Equal(t, 2, r.count())
		}, status(429), status(402))
	})
	t.Run("after a restart", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := writtenDown(t, toJSON(t, idem.Open()))
			res, err := r.caller(t).Call(t.Context(), in, "POST", "/charges", 1, nil)
			require.Error(t, err)
			assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		}, status(404))
	})
}

// Source: RamaAditya49/titen#37.
func TestCase_LIFE_11(t *testing.T) {
	row(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		_, _, err := r.send(newRequest(t, in, "POST", "http://api/a/1", "x"))
		require.NoError(t, err)
		for _, path := range []string{"/a/2", "/a/1/", "/a/1/2", "/A/1", "//a/1", "/a/./1"} {
			_, _, err = r.send(newRequest(t, in, "POST", "http://api"+path, "x"))
			assert.ErrorIs(t, err, idem.ErrIntentReused, path)
		}
		assert.Equal(t, 1, r.count())
		assert.Equal(t, idem.Answered, in.Outcome())
	}, created)
	t.Run("a Child each", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			for _, n := range []string{"1", "2", "1"} {
				_, _, err := r.send(newRequest(t, in.Child(n), "POST", "http://api/a/"+n, "x"))
				require.NoError(t, err)
			}
			assert.Equal(t, 2, r.done())
		}, created)
	})
}

// Source: josipmusa/idempotency4j#9.
func TestCase_LIFE_12(t *testing.T) {
	mixedRow(t, func(t *testing.T, r *rig) {
		keys := map[string]bool{}
		for _, user := range []string{"anna", "bert", ""} {
			in, err := idem.Derive("shop/charge/"+user, "order-1", since())
			require.NoError(t, err)
			keys[in.Key()] = true
			resp, _, err := r.send(newRequest(t, in, "POST", "http://api/charges", "x", "Authorization", "Bearer "+user))
			require.NoError(t, err)
			assert.Equal(t, idem.ReplayUnknown, idem.ResultOf(resp).Replay)
		}
		assert.Len(t, keys, 3)
		assert.Equal(t, 3, r.done())
	}, created)
	// Where the namespace ends and the name begins makes a difference.
	a, err := idem.Derive("a", "b/c", since())
	require.NoError(t, err)
	b, err := idem.Derive("a/b", "c", since())
	require.NoError(t, err)
	assert.NotEqual(t, a.Key(), b.Key())
}

// Source: TrueLayer/truelayer-signing#95. A signer below sees the name that goes
// over the wire.
func TestCase_LIFE_13(t *testing.T) {
	for _, name := range []string{"Cko-Idempotency-Key", "cko-idempotency-key", "X-IDEMPOTENCY-KEY", "Idempotency-Key", "X-Request-Id"} {
		t.Run(name, func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				wire := r.written()
				r.transport.Contract = contract.Contract{Header: name}
				in := idem.Open()
				resp, _, err := r.send(newRequest(t, in, "POST", "http://api/charges", "x"))
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				canonical := http.CanonicalHeaderKey(name)
				line := canonical + ": " + in.Key()
				assert.Equal(t, []string{line, line, line}, wire.lines(canonical))
				if canonical != "Idempotency-Key" {
					for _, h := range r.all() {
						assert.Empty(t, h.keys, "the default name is replaced")
					}
				}
				for _, head := range r.watching().heads {
					assert.Equal(t, []string{in.Key()}, head[canonical], "as a signer below sees it")
				}
			}, status(503), drop, status(201))
		})
	}
	t.Run("set by the caller", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			wire := r.written()
			r.transport.Contract = contract.Contract{Header: "Cko-Idempotency-Key"}
			_, _, err := r.send(newRequest(t, nil, "POST", "http://api/charges", "x", "cko-idempotency-KEY", "mine-1"))
			require.NoError(t, err)
			line := "Cko-Idempotency-Key: mine-1"
			assert.Equal(t, []string{line, line}, wire.lines("idempotency"))
		}, status(503), status(201))
	})
}
