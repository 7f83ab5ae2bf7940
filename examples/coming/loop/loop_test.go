// Package loop_test holds what docs/coming-from-a-loop.md says of a loop that is
// written by hand: each fault is seen, and seen not to be with idem.
package loop_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/charge"
	"github.com/idem-go/idem/examples/coming/loop/before"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// came is what one charge came to.
type came struct {
	err      error
	took     time.Duration // in virtual time
	requests []mockserver.Request
	effects  int
}

// keys are the different keys that the server saw.
func (c came) keys() int {
	var all []string
	for _, r := range c.requests {
		all = append(all, r.Key)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}

// faulty brings the next fault with each attempt, whatever its key.
type faulty struct {
	http.RoundTripper
	faults []mockserver.Fault
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(f.faults) > 0 {
		r = r.Clone(r.Context())
		r.Header.Set("Mock-Fault", string(f.faults[0]))
		f.faults = f.faults[1:]
	}
	return f.RoundTripper.RoundTrip(r)
}

// both lets the loop and the README's Charge meet the same faults, each in a
// virtual time of its own.
func both(t *testing.T, timeout time.Duration, faults ...mockserver.Fault) (loop, idm came) {
	run := func(charge func(ctx context.Context, url string, base http.RoundTripper) error) (c came) {
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.New(t, mockserver.Config{})
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			began := time.Now()
			c.err = charge(ctx, server.URL, &faulty{server.Transport(), faults})
			c.took = time.Since(began)
			c.requests, c.effects = server.Requests(""), len(server.Effects(""))
		})
		return c
	}
	loop = run(func(ctx context.Context, url string, base http.RoundTripper) error {
		return before.Charge(ctx, &http.Client{Transport: base}, url, before.Order{Amount: 500})
	})
	idm = run(func(ctx context.Context, url string, base http.RoundTripper) error {
		client, err := idem.NewClient(idem.Config{BaseURL: url, Transport: &idem.Transport{Base: base}})
		if err != nil {
			return err
		}
		_, err = charge.Charge(ctx, client, idem.Open(), charge.Order{Amount: 500})
		return err
	})
	return loop, idm
}

const long = time.Hour

// 1. A key for each attempt is no key: the lost answer is charged for again.
func TestKeyPerAttempt(t *testing.T) {
	loop, idm := both(t, long, "reset@stored")
	assert.Equal(t, 2, loop.keys())
	assert.Equal(t, 2, loop.effects)
	assert.NoError(t, loop.err)
	assert.Equal(t, 1, idm.keys())
	assert.Equal(t, 1, idm.effects)
	assert.NoError(t, idm.err)
}

// 2. "Not charged" is said of a charge that was made.
func TestSaysNotCharged(t *testing.T) {
	faults := []mockserver.Fault{"reset@stored", "503@received", "503@received", "503@received"}
	loop, idm := both(t, long, faults...)
	assert.EqualError(t, loop.err, "not charged")
	assert.Equal(t, 1, loop.effects)
	assert.ErrorIs(t, idm.err, charge.ErrUnknown)
	assert.Equal(t, 1, idm.effects)
}

// 3. 409 (the first request still runs) and 429 (too many) are taken for a no.
func TestTakesWaitForNo(t *testing.T) {
	for _, fault := range []mockserver.Fault{"409@received", "429@received"} {
		loop, idm := both(t, long, fault)
		assert.ErrorContains(t, loop.err, "not charged", fault)
		assert.Len(t, loop.requests, 1, fault)
		assert.NoError(t, idm.err, fault)
		assert.Len(t, idm.requests, 2, fault)
	}
}

// 4. The server's own wait is not read.
func TestRetryAfter(t *testing.T) {
	loop, idm := both(t, long, "503@received retry-after=20")
	assert.Equal(t, time.Second, loop.took)
	assert.GreaterOrEqual(t, idm.took, 20*time.Second)
}

// 5. The waits are the same for every client, go on after the last attempt, and do
// not hear that the caller has left.
func TestSleeps(t *testing.T) {
	faults := slices.Repeat([]mockserver.Fault{"503@received"}, 4)
	loop, idm := both(t, long, faults...)
	assert.Equal(t, (1+2+4)*time.Second, loop.took, "4 s of them after the last attempt")
	again, other := both(t, long, faults...)
	assert.Equal(t, loop.took, again.took)
	assert.NotEqual(t, idm.took, other.took)

	loop, idm = both(t, 50*time.Millisecond, faults...)
	assert.GreaterOrEqual(t, loop.took, time.Second)
	assert.LessOrEqual(t, idm.took, 50*time.Millisecond)
}

// 6. What no repetition can mend is repeated: a certificate that is not trusted.
func TestRepeatsWhatCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &untrusted{}
		began := time.Now()
		require.Error(t, before.Charge(t.Context(), &http.Client{Transport: bad}, "https://api.test", before.Order{}))
		assert.Equal(t, 3, bad.asked)
		assert.Equal(t, 7*time.Second, time.Since(began))

		bad.asked = 0
		client, err := idem.NewClient(idem.Config{BaseURL: "https://api.test", Transport: &idem.Transport{Base: bad}})
		require.NoError(t, err)
		_, err = charge.Charge(t.Context(), client, idem.Open(), charge.Order{})
		require.Error(t, err)
		assert.Equal(t, 1, bad.asked)
	})
}

var errNobody = errors.New("x509: signed by nobody")

// untrusted is a network whose server has a certificate of nobody's.
type untrusted struct{ asked int }

func (u *untrusted) RoundTrip(*http.Request) (*http.Response, error) {
	u.asked++
	return nil, &tls.CertificateVerificationError{Err: errNobody}
}

// 7. The answer is thrown away unread: that it was cut is not seen.
func TestThrowsTheAnswerAway(t *testing.T) {
	loop, idm := both(t, long, "cut@body after=9")
	assert.NoError(t, loop.err)
	assert.Len(t, loop.requests, 1, "it has not seen that the answer was cut")
	assert.NoError(t, idm.err)
	assert.Len(t, idm.requests, 2, "it asked for the whole answer, with the same key")
	assert.Equal(t, 1, idm.effects)
}
