package idem_test

import (
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The longest first wait of the rig, and the most that two waits can take.
const firstBackoff, floorBackoff = 10 * time.Millisecond, 5 * time.Millisecond

// hashicorp/go-retryablehttp#297: seconds times 1e9 wrap, and the retry comes at
// once. Choice: a wait beyond MaxRetryAfter ends the call with the response.
func TestCase_RA_1(t *testing.T) {
	for _, pairs := range [][]string{
		{"Retry-After", "9223372037"},
		{"Retry-After", "9223372036"},
		{"Retry-After", "9223372036854775807"},
		{"Retry-After", "18446744074"},
		{"Retry-After", "99999999999999999999999"},
		{"Retry-After", "9223372037.5"},
		{"Retry-After-Ms", "9223372036855"},
		{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"},
	} {
		t.Run(pairs[1], func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				var resp *http.Response
				var body string
				var err error
				d := took(func() { resp, body, err = r.post(t.Context(), in, "a") })
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, "later", body)
				assert.Zero(t, d)
				assert.Equal(t, 1, r.count())
				assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrWaitTooLong)
				assert.Positive(t, lastAttempt(t, in).Wait)
				r.oneKey()
			}, statusBody(503, "later", pairs...))
		})
	}
	// The neighbour: whoever allows any wait gets a long one, not none.
	t.Run("any wait allowed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxRetryAfter = math.MaxInt64
			r.transport.Contract = contract.Contract{Window: -1}
			for range 20 { // the jitter is drawn
				before := r.count()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(1000*time.Hour, cancel)
				d := took(func() {
					_, _, err := r.post(ctx, idem.Open(), "a")
					assert.ErrorIs(t, err, context.Canceled)
				})
				assert.Equal(t, 1000*time.Hour, d)
				assert.Equal(t, 1, r.count()-before)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			before := r.count()
			for range 20 {
				d := took(func() {
					resp, _, err := r.post(ctx, idem.Open(), "a")
					require.NoError(t, err)
					assert.Equal(t, 503, resp.StatusCode)
				})
				assert.Zero(t, d, "past the deadline: at once")
			}
			assert.Equal(t, 20, r.count()-before)
		}, status(503, "Retry-After", "9223372037"))
	})
}

// kubescape/kubevuln#755: Retry-After: 0 taken literally. Choice: zero counts as
// no word at all, and the own backoff goes on as if it were not there.
func TestCase_RA_2(t *testing.T) {
	for _, v := range []string{"0", "0.0", "00", "-0"} {
		t.Run(v, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1000
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				resp, _, err := r.post(ctx, idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 429, resp.StatusCode)
				// Waits of at least 5, 10, 20, then 25 ms.
				assert.LessOrEqual(t, r.count(), 4+2000/25)
				assert.Greater(t, r.count(), 2000/50-4, "it does go on")
				gaps := r.gaps()
				within(t, gaps[:1], 5*time.Millisecond, 10*time.Millisecond)
				within(t, gaps[1:2], 10*time.Millisecond, 20*time.Millisecond)
				within(t, gaps[2:3], 20*time.Millisecond, 40*time.Millisecond)
				within(t, gaps[3:], 25*time.Millisecond, 50*time.Millisecond)
				r.oneKey()
			}, status(429, "Retry-After", v))
		})
	}
}

// openai/openai-java#853: a negative wait or a date of the past throws.
// Choice: it counts as no word at all.
func TestCase_RA_3(t *testing.T) {
	for _, v := range []string{"-1", "-9223372037", "-0.5", "Wed, 21 Oct 2015 07:28:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"} {
		t.Run(v, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				if v == "Wed, 21 Oct 2015 07:28:00 GMT" {
					time.Sleep(20 * 365 * 24 * time.Hour) // past it
				}
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, 2, r.count())
				within(t, r.gaps(), floorBackoff, firstBackoff)
				r.oneKey()
			}, status(503, "Retry-After", v), created)
		})
	}
}

// mastra-ai/mastra#23778: a malformed number parsed as a year. Only 2015 is a
// delay; Go's Atoi would take +3 and -3.
func TestCase_RA_4(t *testing.T) {
	for _, v := range []string{"-3", "+3", "1.", ".5", "1e1", "0x1", "1_0", "3s", "3 s", "1;2", "2015-10-21", "soon", "", "Infinity", "NaN", "٣"} {
		t.Run(v, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				within(t, r.gaps(), floorBackoff, firstBackoff)
				r.oneKey()
			}, status(503, "Retry-After", v), created)
		})
	}
	t.Run("2015 is above MaxRetryAfter", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			resp, _, err := r.post(t.Context(), in, "a")
			require.NoError(t, err)
			assert.Equal(t, 503, resp.StatusCode)
			assert.Equal(t, 1, r.count())
			assert.Equal(t, 2015*time.Second, lastAttempt(t, in).Wait)
		}, status(503, "Retry-After", "2015"), created)
	})
	t.Run("2015 is waited where it is allowed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxRetryAfter = time.Hour
			resp, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			within(t, r.gaps(), 2015*time.Second, 2016*time.Second)
			r.oneKey()
		}, status(503, "Retry-After", "2015"), created)
	})
}

// opensearch-project/data-prepper#6927: a fraction makes the client come far too
// early. Choice: seconds are rounded up.
func TestCase_RA_5(t *testing.T) {
	for _, c := range []struct {
		value string
		wait  time.Duration
	}{{"1.5", 2 * time.Second}, {"0.001", time.Second}, {"1.000", time.Second}, {"59.01", time.Minute}} {
		t.Run(c.value, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				within(t, r.gaps(), c.wait, c.wait+min(c.wait/10, time.Second))
				r.oneKey()
			}, status(503, "Retry-After", c.value), created)
		})
	}
	for _, v := range []string{"299.997", "60.001"} {
		t.Run(v+" is above MaxRetryAfter", func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				resp, _, err := r.post(t.Context(), in, "a")
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, 1, r.count())
				assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrWaitTooLong)
			}, status(503, "Retry-After", v), created)
		})
	}
}

// openclaw/clawhub#407: told to wait 56 years, by epoch seconds.
func TestCase_RA_6(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		in := idem.Open()
		var resp *http.Response
		var body string
		var err error
		d := took(func() { resp, body, err = r.post(ctx, in, "a") })
		require.NoError(t, err)
		assert.Zero(t, d, "not one moment of a wait that cannot end")
		assert.Equal(t, 429, resp.StatusCode)
		assert.Equal(t, "1771404540", resp.Header.Get("Retry-After"))
		assert.Equal(t, "slow down", body)
		assert.Equal(t, 1, r.count())
		assert.Equal(t, idem.NotExecuted, in.Outcome(), "a 429 is given before the work")
		assert.Equal(t, idem.NotExecuted, idem.ResultOf(resp).Outcome)
		r.oneKey()
	}, statusBody(429, "slow down", "Retry-After", "1771404540"))
}

// asecurityteam/transport#33: seconds read as milliseconds.
func TestCase_RA_7(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		resp, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		within(t, r.gaps(), time.Second, 1100*time.Millisecond)
		assert.Len(t, r.gaps(), 1)
		r.oneKey()
	}, status(503, "Retry-After", "1"), created)
	// The neighbour: milliseconds are that.
	bubble(t, func(t *testing.T, r *rig) {
		_, _, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		within(t, r.gaps(), 300*time.Millisecond, 330*time.Millisecond)
		assert.Len(t, r.gaps(), 1)
		r.oneKey()
	}, status(503, "Retry-After-Ms", "300", "Retry-After", "1"), created)
}

// apache/iggy#4168: the header is read on 429 only, and unbounded. It counts on
// every status that is retried, and asks nothing on those that are not.
func TestCase_RA_8(t *testing.T) {
	for _, code := range []int{408, 409, 423, 425, 429, 500, 502, 503, 504, 507, 599} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, 2, r.count())
				within(t, r.gaps(), time.Second, 1100*time.Millisecond)
				r.oneKey()
			}, status(code, "Retry-After", "1"), created)
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				var resp *http.Response
				var err error
				d := took(func() { resp, _, err = r.post(t.Context(), in, "a") })
				require.NoError(t, err)
				assert.Equal(t, code, resp.StatusCode)
				assert.Equal(t, "86400", resp.Header.Get("Retry-After"))
				assert.Equal(t, 1, r.count())
				assert.Zero(t, d)
				assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrWaitTooLong)
			}, status(code, "Retry-After", "86400"), created)
		})
	}
	for _, code := range []int{400, 404, 422, 501} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, code, resp.StatusCode)
				time.Sleep(time.Hour)
				assert.Equal(t, 1, r.count(), "never sent again")
			}, status(code, "Retry-After", "1"), created)
		})
	}
}

// hashicorp/go-retryablehttp#283: the configured maximum is ignored. Choice: a
// longer wait ends the call now, with the response; it is never cut short.
func TestCase_RA_9(t *testing.T) {
	for _, c := range []struct {
		max   time.Duration
		asked string
		hits  int
	}{
		{time.Second, "3600", 1},
		{time.Second, "2", 1},
		{time.Second, "1.001", 1},
		{time.Second, "1", 3},
		{0, "60", 3}, // the default of one minute
		{0, "61", 1},
		{time.Nanosecond, "1", 1},
	} {
		t.Run(c.max.String()+" "+c.asked, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxRetryAfter = c.max
				in := idem.Open()
				resp, body, err := r.post(t.Context(), in, "a")
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, "later", body)
				assert.Equal(t, c.hits, r.count())
				if c.hits == 1 {
					assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrWaitTooLong)
				} else {
					assert.ErrorIs(t, lastAttempt(t, in).Reason, idem.ErrExhausted)
				}
				r.oneKey()
			}, statusBody(503, "later", "Retry-After", c.asked))
		})
	}
	t.Run("negative is refused", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxRetryAfter = -1
			_, _, err := r.post(t.Context(), idem.Open(), "a")
			assert.ErrorContains(t, err, "MaxRetryAfter")
			assert.Zero(t, r.count())
		}, created)
	})
}

// xorbitsai/xllamacpp#155: a date is held against a local clock that is wrong.
// Choice: the answer's own Date counts where there is one.
func TestCase_RA_10(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": -5 * time.Minute, "behind": 5 * time.Minute, "right": 0} {
		t.Run("client "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				within(t, r.gaps(), 2*time.Second, 2200*time.Millisecond)
				assert.Len(t, r.gaps(), 1)
				r.oneKey()
			}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
				there := time.Now().Add(skew).UTC()
				answer(w, 503, "", "Date", there.Format(http.TimeFormat), "Retry-After", there.Add(2*time.Second).Format(http.TimeFormat))
			}, created)
		})
	}
	// Without a Date the local clock is all there is: by one that is ahead the
	// date is past, which counts as no word, not as "now".
	t.Run("without a Date", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			within(t, r.gaps(), floorBackoff, firstBackoff)
			assert.Len(t, r.gaps(), 1)
			r.oneKey()
		}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.Header()["Date"] = nil
			answer(w, 503, "", "Retry-After", time.Now().Add(-5*time.Minute+2*time.Second).UTC().Format(http.TimeFormat))
		}, created)
	})
}

// denoland/std#7299: three forms of a date are legal, look-alikes must fail.
func TestCase_RA_11(t *testing.T) {
	at := func(layout string) step {
		return func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			answer(w, 503, "", "Retry-After", time.Now().Add(2*time.Second).UTC().Format(layout))
		}
	}
	for name, layout := range map[string]string{
		"IMF-fixdate": http.TimeFormat,
		"RFC 850":     "Monday, 02-Jan-06 15:04:05 GMT",
		"asctime":     time.ANSIC,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				within(t, r.gaps(), 2*time.Second, 2200*time.Millisecond)
				r.oneKey()
			}, at(layout), created)
		})
	}
	for name, layout := range map[string]string{
		"UTC":               "Mon, 02 Jan 2006 15:04:05 UTC",
		"+0000":             "Mon, 02 Jan 2006 15:04:05 +0000",
		"ISO 8601":          time.RFC3339,
		"RFC 822":           "02 Jan 06 15:04 GMT",
		"no zone":           "Mon, 02 Jan 2006 15:04:05",
		"RFC 850 in UTC":    "Monday, 02-Jan-06 15:04:05 UTC",
		"RFC 850 elsewhere": "Monday, 02-Jan-06 15:04:05 EST",
		"asctime with GMT":  "Mon Jan _2 15:04:05 2006 GMT",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, _, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				within(t, r.gaps(), floorBackoff, firstBackoff)
				r.oneKey()
			}, at(layout), created)
		})
	}
}

// cenkalti/backoff#159: a wait longer than the time left ends the retries in
// silence. It ends them at once, and says what was asked and what was left.
func TestCase_RA_12(t *testing.T) {
	step := statusBody(503, "maintenance", "Retry-After", "10")
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		in := idem.Open()
		d := took(func() {
			resp, body, err := r.post(ctx, in, "a")
			require.NoError(t, err)
			assert.Equal(t, "10", resp.Header.Get("Retry-After"))
			assert.Equal(t, "maintenance", body)
		})
		assert.Zero(t, d)
		last := lastAttempt(t, in)
		assert.ErrorIs(t, last.Reason, idem.ErrWaitTooLong)
		assert.ErrorIs(t, last.Reason, context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, last.Wait)
		assert.ErrorContains(t, last.Reason, "10s")
		assert.ErrorContains(t, last.Reason, "5s")
		assert.Equal(t, 1, r.count())
		r.oneKey()
	}, step)
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := r.jsonClient(t).Call(ctx, idem.Open(), "POST", "/charges", nil, nil)
		e := theError(t, err)
		assert.ErrorIs(t, err, idem.ErrWaitTooLong)
		assert.ErrorContains(t, err, "10s")
		assert.ErrorContains(t, err, "5s")
		assert.Equal(t, "10", e.Header.Get("Retry-After"))
		assert.Equal(t, "maintenance", string(e.Body))
		assert.Equal(t, 503, e.Status)
	}, step)
}
