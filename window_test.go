package idem_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/require"
)

// No attempt starts after the window less its margin.
func TestTransport_Window(t *testing.T) {
	t.Run("between calls", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			time.Sleep(100 * time.Hour) // an Intent that was not sent does not age
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(23 * time.Hour)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(59 * time.Minute)
			_, _, err = r.post(t.Context(), in, "{}")
			require.ErrorIs(t, err, idem.ErrExpired)
			require.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
			require.Equal(t, 2, r.count())
		}, status(501))
	})
	t.Run("in a call", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = 10 * time.Minute
			r.transport.MaxAttempts = 1000
			r.transport.Backoff = idem.Exponential(time.Minute, time.Minute)
			in := idem.Open()
			resp, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			hits := r.all()
			require.Less(t, hits[len(hits)-1].at.Sub(hits[0].at), 8*time.Minute)
			require.Greater(t, len(hits), 7)
			list := in.Attempts()
			require.ErrorIs(t, list[len(list)-1].Reason, idem.ErrExpired)
			require.ErrorIs(t, list[len(list)-1].Reason, idem.ErrWaitTooLong)
			r.oneKey()
		}, status(503))
	})
	t.Run("an attempt ends there", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = time.Minute
			r.transport.AttemptTimeout = -1
			start := time.Now()
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrExpired)
			require.Equal(t, 30*time.Second, time.Since(start), "half of a short window")
			require.Equal(t, idem.OutcomeUnknown, e.Outcome)
			require.Equal(t, 1, r.count())
		}, stall)
	})
	t.Run("for ever", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract.Window = -1
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			time.Sleep(10_000 * time.Hour)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 1, r.done())
		}, created)
	})
}

// A State may come from a machine whose clock is ahead: the contract's gap is kept
// from now on then, and no longer.
func TestTransport_GapAfterAClockAhead(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{Gap: 30 * time.Second}
		for _, ahead := range []time.Duration{0, time.Minute, 10 * time.Hour} {
			in, err := idem.Resume(idem.State{Key: "order-1", FirstSent: time.Now().Add(ahead)}, nil)
			require.NoError(t, err)
			start := time.Now()
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 30*time.Second, time.Since(start), ahead)
		}
	}, created)
}
