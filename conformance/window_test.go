package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// margin is the time before the window's end from which on nothing is sent.
func (r *rig) margin() time.Duration { return min(2*time.Minute, r.Window/2) }

// Within the window, less the margin, the key is sent; after it the client
// refuses, and keeps what it knows.
func TestExpiredKey(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then("drop@head")
		c := r.client(attempts(1))
		res, err := r.post(c, r.charge(1))
		r.check(res, err, want{hits: 1, runs: 1, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExhausted}})
		if r.Window < 0 {
			time.Sleep(10 * 365 * 24 * time.Hour)
			res, err = r.post(c, r.charge(1))
			r.check(res, err, r.repeated(2, 1))
			return
		}
		time.Sleep(r.Window - r.margin())
		res, err = r.post(c, r.charge(1))
		r.check(res, err, want{hits: 1, runs: 1, outcome: idem.OutcomeUnknown, is: []error{idem.ErrExpired}})
	})
	each(t, func(r *rig) {
		if r.Window < 0 {
			return
		}
		r.srv.On("POST /charges").Then("drop@head")
		c := r.client(attempts(1))
		_, err := r.post(c, r.charge(1))
		require.ErrorIs(r.t, err, idem.ErrExhausted)
		time.Sleep(r.Window - r.margin() - time.Second)
		res, err := r.post(c, r.charge(1))
		r.check(res, err, r.repeated(2, 1))
		time.Sleep(2 * time.Second)
		res, err = r.post(c, r.charge(1))
		w := r.repeated(2, 1)
		w.status, w.replay, w.is = r.repeated(2, 1).status, idem.ReplayUnknown, []error{idem.ErrExpired}
		r.check(res, err, w) // Answered stays Answered
	})
}

// The server does the work again once the window is over, and not before: that
// is what the client's refusal is for.
func TestForgottenKey(t *testing.T) {
	each(t, func(r *rig) {
		r.breach = true // the work is done twice, as it must be
		send := func() { r.other(http.MethodPost, r.wire(), r.charge(1)) }
		send()
		if r.Window < 0 {
			time.Sleep(10 * 365 * 24 * time.Hour)
			send()
			assert.Len(r.t, r.srv.Effects(""), 1)
			return
		}
		time.Sleep(r.Window - time.Second)
		send()
		assert.Len(r.t, r.srv.Effects(""), 1)
		time.Sleep(time.Second)
		send()
		assert.Len(r.t, r.srv.Effects(""), 2)
	})
}

// Between two attempts lies the contract's gap at least; a client that does not
// keep it is found by the server.
func TestGap(t *testing.T) {
	each(t, func(r *rig) {
		r.srv.On("POST /charges").Then("drop@received", "drop@stored")
		res, err := r.post(r.client(), r.charge(1))
		r.check(res, err, r.repeated(3, 1))
		hits := r.srv.Requests("")
		for i := range hits[1:] {
			assert.GreaterOrEqual(r.t, hits[i+1].Start.Sub(hits[i].Start), r.Gap)
		}
	})
	each(t, func(r *rig) {
		r.other(http.MethodPost, r.wire(), r.charge(1))
		time.Sleep(r.Gap - time.Millisecond)
		r.other(http.MethodPost, r.wire(), r.charge(1))
		var early *mockserver.Breach
		if r.Gap > 0 {
			r.breach = true
			require.ErrorAs(r.t, r.srv.Verify(), &early)
			assert.Equal(r.t, "early", early.Kind)
		}
	})
}

// The time of the first send is the same on every attempt, of every call and in
// every process.
func TestFirstSent(t *testing.T) {
	each(t, func(r *rig) {
		name := r.FirstSentHeader
		if name == "" {
			name = "Repeatability-First-Sent"
		}
		at := time.Now()
		r.srv.On("POST /charges").Then("drop@received", "503@received type=text/plain retry-after=2", "drop@stored")
		c := r.client(attempts(2))
		_, err := r.post(c, r.charge(1))
		require.Error(r.t, err)
		time.Sleep(max(r.Gap, 3*time.Second))
		r.in, err = idem.Resume(r.in.State(), nil)
		require.NoError(r.t, err)
		_, _ = r.post(c, r.charge(1))
		hits := r.srv.Requests("")
		assert.Len(r.t, hits, 4)
		for _, h := range hits {
			if r.FirstSentHeader == "" {
				assert.Empty(r.t, h.Header.Values(name))
				continue
			}
			assert.Equal(r.t, []string{at.UTC().Format(http.TimeFormat)}, h.Header.Values(name))
		}
	})
}

// Processes that derive the key from the same id say the same: the earliest time
// at which it can have been sent. So does one that adopts it.
func TestFirstSentOfDerived(t *testing.T) {
	in(t, server{Contract: contract.Azure()}, func(r *rig) {
		since := time.Now()
		for range 2 {
			time.Sleep(10 * time.Second)
			var err error
			r.in, err = idem.Derive("shop/charge", "1", since)
			require.NoError(r.t, err)
			_, err = r.post(r.client(), r.charge(1))
			require.NoError(r.t, err)
		}
		r.adopt()
		_, err := r.post(r.client(), r.charge(1))
		require.NoError(r.t, err)
		var got []string
		for _, h := range r.srv.Requests("") {
			got = append(got, h.Header.Get("Repeatability-First-Sent"))
		}
		first := since.UTC().Format(http.TimeFormat)
		assert.Equal(r.t, []string{first, first, since.Add(20 * time.Second).UTC().Format(http.TimeFormat)}, got)
		assert.Len(r.t, r.srv.Effects(""), 1)
	})
}
