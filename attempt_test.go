package idem_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTransport_AttemptNumber(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		require.Zero(t, idem.AttemptNumber(t.Context()))
		var numbers []int
		r.transport.Base = baseFunc(func(q *http.Request) (*http.Response, error) {
			numbers = append(numbers, idem.AttemptNumber(q.Context()))
			return r.base.RoundTrip(q)
		})
		_, _, err := r.post(t.Context(), idem.Open(), "{}")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3}, numbers)
	}, status(503), status(503), created)
	t.Run("one Transport below another", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			inner := r.transport
			r.transport = &idem.Transport{Base: inner, MaxAttempts: 3, Backoff: idem.Exponential(time.Millisecond, time.Millisecond)}
			resp, _, err := r.post(t.Context(), idem.Open(), "{}")
			require.NoError(t, err)
			require.Equal(t, 3, r.count(), "hits add, they do not multiply")
			require.Equal(t, 3, idem.ResultOf(resp).Attempts)
			r.oneKey()
		}, status(503))
	})
}

func TestTransport_OnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		type key struct{}
		in := idem.Open()
		var list []idem.Attempt
		var when []time.Time
		r.transport.OnAttempt = func(ctx context.Context, a idem.Attempt) {
			require.Equal(t, "mine", ctx.Value(key{}))
			list, when = append(list, a), append(when, time.Now())
		}
		start := time.Now()
		resp, _, err := r.post(context.WithValue(t.Context(), key{}, "mine"), in, "{}")
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode)
		require.Len(t, list, 3)
		require.Equal(t, in.Attempts(), list)
		require.Equal(t, start, when[0], "before the wait")
		for i, a := range list {
			require.Equal(t, i+1, a.Number)
			require.Equal(t, 1, a.Call)
			require.Equal(t, "POST", a.Method)
			require.Equal(t, "api", a.Host)
			require.Equal(t, 1, a.Sends)
			require.Equal(t, i < 2, a.Retry)
			require.Equal(t, i < 2, a.Wait > 0)
			require.NoError(t, a.Reason)
		}
		require.Equal(t, 503, list[0].Status)
		require.NoError(t, list[0].Err)
		require.Equal(t, 429, list[1].Status)
		require.Equal(t, idem.Replayed, list[2].Replay)
		require.Equal(t, idem.Answered, list[2].Outcome)
		require.GreaterOrEqual(t, list[1].Start.Sub(list[0].Start), list[0].Wait)
	}, status(503), status(429), statusBody(201, "{}", "Idempotent-Replayed", "true"))
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			var hook told
			r.transport.OnAttempt = hook.hook
			_, _, err := r.post(t.Context(), nil, "{}")
			require.Error(t, err)
			require.Len(t, hook.all(), 1)
			require.ErrorIs(t, hook.all()[0].Reason, idem.ErrNotRepeatable)
			require.Equal(t, idem.OutcomeUnknown, hook.all()[0].Outcome)
		}, lost)
	})
}

// What the server asks for is told also where no other attempt follows, for one who
// asks again later.
func TestAttempt_Asked(t *testing.T) {
	for name, c := range map[string]struct {
		step step
		want time.Duration
	}{
		"after the last attempt": {status(503, "Retry-After", "7.5"), 8 * time.Second},
		"the longest":            {status(429, "Retry-After", "30,120"), 2 * time.Minute},
		"of a final answer":      {status(402, "Retry-After-Ms", "250"), 250 * time.Millisecond},
		"nothing":                {status(503), 0},
		"of a success":           {status(202, "Retry-After", "7"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxAttempts = 1
				in := idem.Open()
				_, _, err := r.send(postUnder(t, t.Context(), in, "http://api/charges", nil))
				require.NoError(t, err)
				require.Len(t, in.Attempts(), 1)
				assert.Equal(t, c.want, in.Attempts()[0].Asked)
				assert.Zero(t, in.Attempts()[0].Wait)
			}, c.step)
		})
	}
}
