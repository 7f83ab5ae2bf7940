package idem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var judgeNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The three kinds of requests that the judgement tells apart.
type requestKind string

const (
	kindKeyed      requestKind = "keyed"
	kindRepeatable requestKind = "repeatable" // GET, without a key
	kindUnkeyed    requestKind = "unkeyed"    // POST, without a key
)

var requestKinds = []requestKind{kindKeyed, kindRepeatable, kindUnkeyed}

// freshHistory is that of a first attempt of four, without a limit in time and
// with an own wait of 100 ms.
func freshHistory(kind requestKind) history {
	return history{
		attempt: 1, limit: 4, keyed: kind == kindKeyed, repeatable: kind != kindUnkeyed,
		now: judgeNow, maxWait: time.Minute, bound: 100 * time.Millisecond,
	}
}

// answerWith is an attempt that ended with a status, classified by c.
func answerWith(c *contract.Contract, status int, body string, pairs ...string) ended {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return ended{
		how: answered, status: status, header: h, replay: replayOf(c, status, h),
		means: c.Classify(status, h, []byte(body)), advice: c.Advice(status, h, []byte(body)),
	}
}

func defaults() *contract.Contract { c := contract.Default(); return &c }

// Every row of the table in the package documentation that is not about a
// status, for each kind of request.
func TestDecide_WithoutAnAnswer(t *testing.T) {
	gone, broke := context.Canceled, io.ErrUnexpectedEOF
	notFound := &net.DNSError{Err: "no such host", Name: "name.invalid", IsNotFound: true}
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name    string
		ended   ended
		attempt int
		retry   map[requestKind]bool
		reason  map[requestKind]error // where it stops
	}{
		{"the caller's context is done", ended{how: callerDone, err: gone}, 1, nil,
			map[requestKind]error{kindKeyed: gone, kindRepeatable: gone, kindUnkeyed: gone}},
		{"the caller's body fails", ended{how: bodyFailed, err: broke}, 1, nil,
			map[requestKind]error{kindKeyed: broke, kindRepeatable: broke, kindUnkeyed: broke}},
		{"certificate, scheme, URL, header", ended{how: permanent, err: broke}, 1, nil,
			map[requestKind]error{kindKeyed: broke, kindRepeatable: broke, kindUnkeyed: broke}},
		{"not sent", ended{how: unsent, err: dial}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true, kindUnkeyed: true}, nil},
		{"not resolved, first time", ended{how: unsent, err: notFound}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true, kindUnkeyed: true}, nil},
		{"not resolved, second time", ended{how: unsent, err: notFound}, 2,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true, kindUnkeyed: true}, nil},
		{"not resolved, third time", ended{how: unsent, err: fmt.Errorf("dial: %w", notFound)}, 3, nil,
			map[requestKind]error{kindKeyed: notFound, kindRepeatable: notFound, kindUnkeyed: notFound}},
		{"the resolver is down, third time", ended{how: unsent, err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}, 3,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true, kindUnkeyed: true}, nil},
		{"refused, third time", ended{how: unsent, err: dial}, 3,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true, kindUnkeyed: true}, nil},
		{"broken in the middle", ended{how: broken, err: broke}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true},
			map[requestKind]error{kindUnkeyed: ErrNotRepeatable}},
		{"timeout of the attempt", ended{how: broken, err: context.DeadlineExceeded}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true},
			map[requestKind]error{kindUnkeyed: ErrNotRepeatable}},
		{"a 200 whose body is cut", ended{how: broken, err: broke, status: 200, header: http.Header{}}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true},
			map[requestKind]error{kindUnkeyed: ErrNotRepeatable}},
		{"a 402 whose body is cut", ended{how: broken, err: broke, status: 402, header: http.Header{}}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true},
			map[requestKind]error{kindUnkeyed: ErrNotRepeatable}},
		{"a 422 whose body is cut", ended{how: broken, err: broke, status: 422, header: http.Header{}}, 1, nil,
			map[requestKind]error{kindKeyed: broke, kindRepeatable: broke, kindUnkeyed: ErrNotRepeatable}},
		{"a 422 in progress by its code, cut behind it", ended{how: broken, err: broke, status: 422, means: contract.InProgress}, 1,
			map[requestKind]bool{kindKeyed: true, kindRepeatable: true},
			map[requestKind]error{kindUnkeyed: ErrNotRepeatable}},
		{"a 500 that says no, cut", ended{how: broken, err: broke, status: 500, advice: contract.AdviseStop}, 1, nil,
			map[requestKind]error{kindKeyed: broke, kindRepeatable: broke, kindUnkeyed: ErrNotRepeatable}},
		{"a mismatch by its code, cut behind it", ended{how: broken, err: broke, status: 400, means: contract.Mismatch}, 1, nil,
			map[requestKind]error{kindKeyed: broke, kindRepeatable: broke, kindUnkeyed: ErrNotRepeatable}},
	} {
		for _, kind := range requestKinds {
			t.Run(c.name+"/"+string(kind), func(t *testing.T) {
				h := freshHistory(kind)
				h.attempt = c.attempt
				v := decide(defaults(), h, c.ended)
				assert.Equal(t, c.retry[kind], v.retry)
				if want := c.reason[kind]; want != nil {
					assert.ErrorIs(t, v.reason, want)
				} else {
					assert.NoError(t, v.reason)
				}
				assert.Equal(t, noAnswer, v.answer, "no answer says nothing about the effect")
			})
		}
	}
}

// What the table says of a bare status: retried for keyed requests, for other
// repeatable ones, and what a keyed answer tells about its send.
func statusRule(status int) (keyed, repeatable bool, says answer) {
	switch status {
	case 409:
		return true, false, noAnswer
	case 408, 423, 425:
		return true, true, noAnswer
	case 429:
		return true, true, refused
	case 401, 407, 413:
		return false, false, refused
	case 501, 505, 506, 508, 510, 511:
		return false, false, noAnswer
	}
	switch {
	case status >= 500:
		return true, true, noAnswer
	case status >= 400:
		return false, false, decided
	case status >= 200 && status < 300:
		return false, false, settled
	default:
		return false, false, noAnswer
	}
}

func TestDecide_EveryStatus(t *testing.T) {
	c := defaults()
	for status := 100; status <= 599; status++ {
		keyed, repeatable, says := statusRule(status)
		for _, kind := range requestKinds {
			want := map[requestKind]bool{kindKeyed: keyed, kindRepeatable: repeatable}[kind]
			v := decide(c, freshHistory(kind), answerWith(c, status, ""))
			require.Equal(t, want, v.retry, "%d %s", status, kind)
			if kind == kindKeyed {
				require.Equal(t, says, v.answer, "%d", status)
			}
			switch {
			case want:
				require.NoError(t, v.reason, "%d %s", status, kind)
				require.Positive(t, v.wait, "%d %s", status, kind)
			case kind == kindUnkeyed && repeatable:
				require.ErrorIs(t, v.reason, ErrNotRepeatable, "%d %s", status, kind)
			case kind == kindKeyed && status == 422:
				require.ErrorIs(t, v.reason, ErrMismatch)
			default:
				require.NoError(t, v.reason, "%d %s: the answer is final", status, kind)
				require.Zero(t, v.wait, "%d %s", status, kind)
			}
		}
	}
}

// Retry-After alone makes nothing retried, and is honoured on everything that is.
func TestDecide_RetryAfterOnEveryStatus(t *testing.T) {
	c := defaults()
	for status := 100; status <= 599; status++ {
		keyed, _, _ := statusRule(status)
		h := freshHistory(kindKeyed)
		v := decide(c, h, answerWith(c, status, "", "Retry-After", "7"))
		require.Equal(t, keyed, v.retry, "%d", status)
		if keyed {
			require.Equal(t, 7*time.Second, v.wait, "%d", status)
		} else {
			require.Zero(t, v.wait, "%d", status)
		}
	}
}

// A stored answer does not change, whatever its status and whatever is hinted.
func TestDecide_ReplayedIsNeverRetried(t *testing.T) {
	c := defaults()
	for status := 200; status <= 599; status++ {
		for _, hint := range []string{"", "true", "false"} {
			v := decide(c, freshHistory(kindKeyed), answerWith(c, status, "", "Idempotent-Replayed", "true", "X-Should-Retry", hint, "Retry-After", "1"))
			require.False(t, v.retry, "%d %s", status, hint)
			switch {
			case status >= 500, status >= 300 && status < 400:
				// That a failure was stored does not say whether the work was done.
				require.Equal(t, noAnswer, v.answer, "%d", status)
			default:
				require.Equal(t, settled, v.answer, "%d", status)
			}
		}
	}
	v := decide(c, freshHistory(kindKeyed), answerWith(c, 503, "", "Idempotent-Replayed", "false"))
	require.True(t, v.retry, "marked as fresh")
}

// Hints are obeyed before the status, but not for 2xx, 3xx and 422, and not for
// what cannot be repeated.
func TestDecide_Hints(t *testing.T) {
	c := defaults()
	for status := 100; status <= 599; status++ {
		for _, name := range []string{"X-Should-Retry", "Stripe-Should-Retry"} {
			for _, kind := range requestKinds {
				yes := decide(c, freshHistory(kind), answerWith(c, status, "", name, "true"))
				no := decide(c, freshHistory(kind), answerWith(c, status, "", name, "FALSE"))
				may := status >= 400 && status != 422 && kind != kindUnkeyed
				require.Equal(t, may, yes.retry, "%s: true on %d %s", name, status, kind)
				require.False(t, no.retry, "%s: false on %d %s", name, status, kind)
			}
		}
	}
	keyed, _, _ := statusRule(503)
	require.True(t, keyed)
	v := decide(c, freshHistory(kindKeyed), answerWith(c, 503, "", "X-Should-Retry", "maybe"))
	assert.True(t, v.retry, "an unknown value says nothing")
	v = decide(c, freshHistory(kindKeyed), answerWith(c, 402, "", "X-Should-Retry", "true"))
	assert.True(t, v.retry)
	assert.Equal(t, noAnswer, v.answer, "what is to be asked again is no decision")
	v = decide(c, freshHistory(kindKeyed), answerWith(c, 409, "", "X-Should-Retry", "false"))
	assert.False(t, v.retry)
	assert.Equal(t, noAnswer, v.answer, "a hint does not say what the 409 means")
}

// Every meaning on every class of status.
func TestDecide_Meanings(t *testing.T) {
	withCode := func(m contract.Meaning) *contract.Contract {
		c := contract.Contract{Answers: []contract.Match{{Path: "code", Value: "x", Means: m}}}.WithDefaults()
		return &c
	}
	for _, row := range []struct {
		means      contract.Meaning
		keyed      bool // retried with a key
		repeatable bool // retried without
		on422      bool // retried with a key on 422
		reason     error
		says       map[int]answer // by status
	}{
		{contract.InProgress, true, false, true, nil,
			map[int]answer{400: noAnswer, 401: noAnswer, 409: noAnswer, 422: noAnswer, 429: noAnswer, 500: noAnswer}},
		{contract.Transient, true, true, true, nil,
			map[int]answer{400: noAnswer, 401: noAnswer, 409: noAnswer, 422: noAnswer, 429: noAnswer, 500: noAnswer}},
		{contract.Mismatch, false, false, false, ErrMismatch,
			map[int]answer{400: decided, 401: decided, 409: decided, 422: decided, 429: noAnswer, 500: noAnswer}},
		{contract.KeyRefused, false, false, false, nil,
			map[int]answer{400: decided, 401: decided, 409: decided, 422: decided, 429: noAnswer, 500: noAnswer}},
		{contract.Final, false, false, false, nil,
			map[int]answer{400: decided, 401: decided, 409: decided, 422: decided, 429: noAnswer, 500: noAnswer}},
		{contract.Settled, false, false, false, nil,
			map[int]answer{400: settled, 401: settled, 409: settled, 422: settled, 429: settled, 500: settled}},
		{contract.Done, false, false, false, nil,
			map[int]answer{400: settled, 401: settled, 409: settled, 422: settled, 429: settled, 500: settled}},
	} {
		c := withCode(row.means)
		for status, says := range row.says {
			t.Run(fmt.Sprintf("%v on %d", row.means, status), func(t *testing.T) {
				for _, hint := range []string{"", "true"} {
					e := answerWith(c, status, `{"code":"x"}`, "X-Should-Retry", hint)
					require.Equal(t, row.means, e.means)
					v := decide(c, freshHistory(kindKeyed), e)
					want := row.keyed
					if status == 422 {
						want = row.on422
					}
					assert.Equal(t, want, v.retry, "keyed, hint %q", hint)
					assert.Equal(t, says, v.answer, "hint %q", hint)
					if row.reason != nil {
						assert.ErrorIs(t, v.reason, row.reason)
					} else {
						assert.NoError(t, v.reason)
					}
				}
				e := answerWith(c, status, `{"code":"x"}`, "X-Should-Retry", "false")
				assert.False(t, decide(c, freshHistory(kindKeyed), e).retry, "a hint says no")
				e = answerWith(c, status, `{"code":"x"}`)
				assert.False(t, decide(c, freshHistory(kindUnkeyed), e).retry, "unkeyed")
			})
		}
		// Without a key there is nothing that the meaning can be about, except
		// that asking again may help.
		v := decide(c, freshHistory(kindRepeatable), answerWith(c, 400, `{"code":"x"}`))
		assert.Equal(t, row.repeatable, v.retry, "%v without a key", row.means)
	}
	// A 2xx whose body says that the work is still going on is no success.
	c := contract.Contract{Answers: []contract.Match{{Status: 202, Path: "code", Value: "x", Means: contract.InProgress}}}.WithDefaults()
	v := decide(&c, freshHistory(kindKeyed), answerWith(&c, 202, `{"code":"x"}`))
	assert.True(t, v.retry)
	assert.Equal(t, noAnswer, v.answer)
	v = decide(&c, freshHistory(kindKeyed), answerWith(&c, 202, `{"code":"y"}`))
	assert.False(t, v.retry)
	assert.Equal(t, settled, v.answer)
}

// A 422 is asked again only where a code of the contract says so, never for a
// status alone, whatever the contract and the answer say.
func TestDecide_422(t *testing.T) {
	for _, answers := range [][]contract.Match{
		nil,
		{},
		{{Status: 422, Means: contract.InProgress}},
		{{Status: 422, Means: contract.Transient}},
		{{Status: 422, Path: "code", Means: contract.Transient}},
		{{Means: contract.Transient}},
		{{Status: 422, Means: contract.Final}},
	} {
		c := contract.Contract{Answers: answers}.WithDefaults()
		for _, pairs := range [][]string{nil, {"X-Should-Retry", "true"}, {"Stripe-Should-Retry", "true"}, {"Retry-After", "1"}, {"Retry-After-Ms", "1", "X-Should-Retry", "true"}} {
			v := decide(&c, freshHistory(kindKeyed), answerWith(&c, 422, `{"code":"x"}`, pairs...))
			assert.False(t, v.retry, "%v %v", answers, pairs)
		}
	}
}

// Without a key there is no first request under it and no mismatch: the reason
// must not say so.
func TestDecide_NoWordOfAKeyWithoutOne(t *testing.T) {
	c := defaults()
	for _, kind := range []requestKind{kindRepeatable, kindUnkeyed} {
		v := decide(c, freshHistory(kind), answerWith(c, 422, ""))
		assert.False(t, v.retry)
		assert.NotErrorIs(t, v.reason, ErrMismatch, "%s: no key was sent that could have come before", kind)
	}
}

func TestDecide_Limits(t *testing.T) {
	c := defaults()
	bad := errors.New("cannot repeat")
	for _, e := range []ended{
		{how: broken, err: io.EOF},
		{how: unsent, err: io.EOF},
		answerWith(c, 503, "", "Retry-After", "7200"),
		answerWith(c, 409, ""),
	} {
		h := freshHistory(kindKeyed)
		h.attempt, h.limit = 4, 4
		v := decide(c, h, e)
		assert.False(t, v.retry)
		assert.ErrorIs(t, v.reason, ErrExhausted, "no attempt left comes before the wait")
		assert.Zero(t, v.wait, "no wait after the last attempt")

		h.attempt = 9
		assert.ErrorIs(t, decide(c, h, e).reason, ErrExhausted, "past the limit")

		h = freshHistory(kindKeyed)
		h.limit = 1
		assert.ErrorIs(t, decide(c, h, e).reason, ErrExhausted, "MaxAttempts 1")

		h = freshHistory(kindKeyed)
		h.cannotRepeat = bad
		v = decide(c, h, e)
		assert.False(t, v.retry)
		assert.ErrorIs(t, v.reason, bad)
	}
	// What is final has no reason of ours, also at the limit.
	h := freshHistory(kindKeyed)
	h.attempt, h.cannotRepeat = 4, bad
	for _, status := range []int{200, 404, 501} {
		assert.NoError(t, decide(c, h, answerWith(c, status, "")).reason)
	}
	// The answer says the same of the effect, whether it may be repeated or not.
	h = freshHistory(kindKeyed)
	h.attempt = 4
	assert.Equal(t, refused, decide(c, h, answerWith(c, 429, "")).answer)
	assert.Equal(t, noAnswer, decide(c, h, answerWith(c, 409, "")).answer)
	assert.Equal(t, noAnswer, decide(c, h, answerWith(c, 402, "", "X-Should-Retry", "true")).answer)
}

// The own wait is drawn from the upper half of the bound.
func TestDecide_OwnWait(t *testing.T) {
	c := defaults()
	h := freshHistory(kindKeyed)
	for _, bound := range []time.Duration{-forever, -1, 0, 1, 2, 3, 100 * time.Millisecond, forever} {
		for _, draw := range []float64{0, 0.25, 0.5, 0.999999, math.Nextafter(1, 0)} {
			h.bound, h.draw = bound, draw
			v := decide(c, h, ended{how: broken, err: io.EOF})
			require.True(t, v.retry)
			require.GreaterOrEqual(t, v.wait, max(bound/2, 0), "bound %d draw %v", bound, draw)
			require.LessOrEqual(t, v.wait, max(bound, 0), "bound %d draw %v", bound, draw)
		}
	}
	h.bound, h.draw = 100*time.Millisecond, 0
	require.Equal(t, 100*time.Millisecond, decide(c, h, ended{how: broken, err: io.EOF}).wait)
	h.draw = 0.5
	require.Equal(t, 75*time.Millisecond, decide(c, h, ended{how: broken, err: io.EOF}).wait)
	// An own wait is not bounded by what a server may ask.
	h.bound, h.maxWait, h.draw = time.Hour, time.Minute, 0
	v := decide(c, h, ended{how: broken, err: io.EOF})
	require.True(t, v.retry)
	require.Equal(t, time.Hour, v.wait)
}

// The server's wait is never cut short; the jitter on it is at most a tenth of
// it and at most a second.
func TestDecide_ServerWait(t *testing.T) {
	c := defaults()
	h := freshHistory(kindKeyed)
	h.maxWait = 2 * time.Hour
	almost := math.Nextafter(1, 0)
	for _, row := range []struct {
		asked string
		wait  time.Duration
		extra time.Duration // the most
	}{
		{"1", time.Second, 100 * time.Millisecond},
		{"5", 5 * time.Second, 500 * time.Millisecond},
		{"10", 10 * time.Second, time.Second},
		{"60", time.Minute, time.Second},
		{"3600", time.Hour, time.Second},
	} {
		for _, draw := range []float64{0, 0.3, almost} {
			h.draw = draw
			v := decide(c, h, answerWith(c, 503, "", "Retry-After", row.asked))
			require.True(t, v.retry)
			require.GreaterOrEqual(t, v.wait, row.wait)
			require.LessOrEqual(t, v.wait, row.wait+row.extra)
			if draw == 0 {
				require.Equal(t, row.wait, v.wait)
			} else {
				require.Greater(t, v.wait, row.wait, "some jitter")
			}
		}
	}
	h.draw = 0
	// It replaces the own wait also where that is longer.
	h.bound = time.Minute
	require.Equal(t, time.Second, decide(c, h, answerWith(c, 503, "", "Retry-After", "1")).wait)
	// What does not count leaves the own wait.
	for _, v := range []string{"0", "-1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"} {
		require.Equal(t, time.Minute, decide(c, h, answerWith(c, 503, "", "Retry-After", v)).wait, v)
	}
	// Also an answer whose body was cut may ask.
	e := answerWith(c, 503, "", "Retry-After", "1")
	e.how, e.err = broken, io.ErrUnexpectedEOF
	require.Equal(t, time.Second, decide(c, h, e).wait)
}

func TestDecide_MaxRetryAfter(t *testing.T) {
	c := defaults()
	h := freshHistory(kindKeyed)
	h.maxWait, h.draw = 10*time.Second, math.Nextafter(1, 0)
	v := decide(c, h, answerWith(c, 503, "", "Retry-After", "10"))
	require.True(t, v.retry, "the limit itself is allowed, and the jitter does not count")
	require.Greater(t, v.wait, 10*time.Second)

	v = decide(c, h, answerWith(c, 503, "", "Retry-After", "11"))
	require.False(t, v.retry)
	require.ErrorIs(t, v.reason, ErrWaitTooLong)
	require.NotErrorIs(t, v.reason, context.DeadlineExceeded)
	require.NotErrorIs(t, v.reason, ErrExpired)
	require.Equal(t, 11*time.Second, v.wait, "the wait that was asked")
	require.ErrorContains(t, v.reason, "11s")
	require.ErrorContains(t, v.reason, "10s")

	h.maxWait = 0
	require.ErrorIs(t, decide(c, h, answerWith(c, 503, "", "Retry-After-Ms", "1")).reason, ErrWaitTooLong)
	require.True(t, decide(c, h, answerWith(c, 503, "")).retry, "an own wait needs no permission")
}

// A limit that says "any wait" must not make the longest wait none at all.
func TestDecide_NoLimitOnTheServersWait(t *testing.T) {
	c := defaults()
	h := freshHistory(kindKeyed)
	h.maxWait = forever
	for _, draw := range []float64{0, 0.5, math.Nextafter(1, 0)} {
		h.draw = draw
		for _, asked := range []string{"9223372035", "9223372036", "9223372037", "99999999999999999999"} {
			e := answerWith(c, 503, "", "Retry-After", asked)
			want, _ := retryAfter(e.header, h.now)
			for _, end := range []time.Time{{}, h.now.Add(time.Hour)} {
				h.deadline = end
				v := decide(c, h, e)
				assert.GreaterOrEqual(t, v.wait, want, "%s s, draw %v: the wait wraps", asked, draw)
				assert.Equal(t, end.IsZero(), v.retry, "%s s, draw %v, deadline %v", asked, draw, end)
			}
		}
	}
}

func TestDecide_Deadline(t *testing.T) {
	c := defaults()
	const wait = 10 * time.Second
	for _, own := range []bool{true, false} {
		t.Run("own wait "+strconv.FormatBool(own), func(t *testing.T) {
			e := ended{how: broken, err: io.EOF}
			h := freshHistory(kindKeyed)
			h.bound = wait
			if !own {
				e = answerWith(c, 503, "", "Retry-After", "10")
			}
			for _, window := range []bool{false, true} {
				for _, row := range []struct {
					left  time.Duration
					draw  float64
					retry bool
					wait  time.Duration
				}{
					{-time.Second, 0, false, wait},
					{0, 0, false, wait},
					{wait - 1, 0, false, wait},
					{wait, 0, false, wait},
					{wait + 1, 0, true, wait},
					{wait + time.Hour, 0, true, wait},
				} {
					h.draw, h.deadline, h.windowEnd = row.draw, time.Time{}, time.Time{}
					if window {
						h.windowEnd = h.now.Add(row.left)
					} else {
						h.deadline = h.now.Add(row.left)
					}
					v := decide(c, h, e)
					require.Equal(t, row.retry, v.retry, "%v left", row.left)
					require.Equal(t, row.wait, v.wait, "%v left", row.left)
					if row.retry {
						require.NoError(t, v.reason)
						continue
					}
					require.ErrorIs(t, v.reason, ErrWaitTooLong)
					require.Equal(t, !window, errors.Is(v.reason, context.DeadlineExceeded))
					require.Equal(t, window, errors.Is(v.reason, ErrExpired))
					require.ErrorContains(t, v.reason, "10s")
					require.NotContains(t, v.reason.Error(), "-", "a time left is never negative")
				}
			}
		})
	}
	// Jitter on the server's wait is dropped rather than let it pass the end.
	h := freshHistory(kindKeyed)
	h.draw = math.Nextafter(1, 0)
	e := answerWith(c, 503, "", "Retry-After", "10")
	for _, end := range []*time.Time{&h.deadline, &h.windowEnd} {
		*end = h.now.Add(wait + 500*time.Millisecond)
		v := decide(c, h, e)
		require.True(t, v.retry)
		require.Equal(t, wait, v.wait)
		*end = h.now.Add(wait + 2*time.Second)
		require.Greater(t, decide(c, h, e).wait, wait)
		*end = time.Time{}
	}
	// Both ends: the nearer one counts, in either order.
	h.deadline, h.windowEnd = h.now.Add(time.Hour), h.now.Add(time.Second)
	require.ErrorIs(t, decide(c, h, e).reason, ErrExpired)
	h.deadline, h.windowEnd = h.now.Add(time.Second), h.now.Add(time.Hour)
	require.ErrorIs(t, decide(c, h, e).reason, context.DeadlineExceeded)
}

// The contract's Gap is the least wait, whoever asks for less.
func TestDecide_Gap(t *testing.T) {
	c := defaults()
	c.Gap = 5 * time.Second
	h := freshHistory(kindKeyed)
	require.Equal(t, 5*time.Second, decide(c, h, ended{how: broken, err: io.EOF}).wait)
	require.Equal(t, 5*time.Second, decide(c, h, answerWith(c, 503, "", "Retry-After", "1")).wait)
	require.Equal(t, 7*time.Second, decide(c, h, answerWith(c, 503, "", "Retry-After", "7")).wait)
	h.bound = 20 * time.Second
	require.Equal(t, 20*time.Second, decide(c, h, ended{how: broken, err: io.EOF}).wait)
	// It gets jitter on top, never below.
	h.bound, h.draw = time.Millisecond, math.Nextafter(1, 0)
	v := decide(c, h, ended{how: broken, err: io.EOF})
	require.Greater(t, v.wait, 5*time.Second)
	require.LessOrEqual(t, v.wait, 5500*time.Millisecond)
	// And it is held against the ends.
	h.deadline = h.now.Add(4 * time.Second)
	require.ErrorIs(t, decide(c, h, ended{how: broken, err: io.EOF}).reason, ErrWaitTooLong)
}

// The contract's own list of refusals is the one that counts.
func TestDecide_Refusals(t *testing.T) {
	c := contract.Contract{Refusals: []int{403}}.WithDefaults()
	h := freshHistory(kindKeyed)
	assert.Equal(t, refused, decide(&c, h, answerWith(&c, 403, "")).answer)
	assert.Equal(t, decided, decide(&c, h, answerWith(&c, 401, "")).answer)
	assert.Equal(t, noAnswer, decide(&c, h, answerWith(&c, 429, "")).answer)
	none := contract.Contract{Refusals: []int{}}.WithDefaults()
	assert.Equal(t, noAnswer, decide(&none, h, answerWith(&none, 429, "")).answer)
	assert.Equal(t, decided, decide(&none, h, answerWith(&none, 413, "")).answer)
	// 5xx is never a refusal: a gateway may have passed the request on.
	odd := contract.Contract{Refusals: []int{503}}.WithDefaults()
	assert.Equal(t, noAnswer, decide(&odd, h, answerWith(&odd, 503, "")).answer)
}

func TestIsIdempotent(t *testing.T) {
	for _, m := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"} {
		assert.True(t, isIdempotent(m), m)
	}
	for _, m := range []string{"POST", "PATCH", "CONNECT", "QUERY", "get", ""} {
		assert.False(t, isIdempotent(m), m)
	}
}

// fuzzContracts are those that the fuzzed judgement is asked about.
func fuzzContracts() []contract.Contract {
	code := contract.Contract{Answers: []contract.Match{{Path: "code", Value: "x", Means: contract.InProgress}}}
	gap := contract.Contract{Gap: 3 * time.Second, Refusals: []int{403, 503}}
	silent := contract.Contract{Hints: []contract.Hint{{Header: "X-Should-Retry", Retry: "true", Stop: "false", SilenceStops: true}}}
	return append(contract.All(), code.WithDefaults(), gap.WithDefaults(), silent.WithDefaults())
}

func FuzzDecide(f *testing.F) {
	add := func(kind, how uint8, status, attempt, limit int, asked string, bound, left, window, most int64, draw float64) {
		f.Add(kind, how, status, uint8(0), uint8(0), uint8(0), uint8(0), attempt, limit, asked, bound, left, window, most, draw)
	}
	for status := 100; status <= 599; status++ {
		add(0, 0, status, 1, 4, "1", 1e8, 0, 0, 6e10, 0.5)
	}
	for how := range uint8(6) {
		for kind := range uint8(3) {
			add(kind, how, 0, 1, 4, "", 1e8, 1e9, 0, 6e10, 0.5)
			add(kind, how, 0, 4, 4, "", 1e8, 0, 1e9, 6e10, 0.5)
		}
	}
	for _, c := range askCases() {
		if v := c.header["Retry-After"]; len(v) > 0 {
			add(0, 0, 503, 1, 4, v[0], 1e8, 0, 0, math.MaxInt64, 0.99)
		}
	}
	add(0, 0, 503, 1, 4, "9223372037", 1e8, 3600e9, 0, math.MaxInt64, 0.99)
	for means := range uint8(8) {
		for _, status := range []int{200, 302, 400, 401, 409, 422, 429, 500, 501} {
			f.Add(uint8(0), uint8(0), status, means, means%3, means%3, uint8(2), 1, 4, "2", int64(1e8), int64(0), int64(0), int64(6e10), 0.25)
		}
	}
	contracts := fuzzContracts()
	f.Fuzz(func(t *testing.T, kind, howRaw uint8, status int, meansRaw, adviceRaw, replayRaw, which uint8, attempt, limit int, asked string, bound, left, window, most int64, draw float64) {
		if !(draw >= 0 && draw < 1) || most < 0 || status < 100 || status > 599 {
			t.Skip("not what decide can be given")
		}
		c := contracts[int(which)%len(contracts)]
		h := freshHistory(requestKinds[int(kind)%3])
		h.attempt, h.limit, h.bound, h.maxWait, h.draw = attempt, limit, time.Duration(bound), time.Duration(most), draw
		if left != 0 {
			h.deadline = h.now.Add(time.Duration(left))
		}
		if window != 0 {
			h.windowEnd = h.now.Add(time.Duration(window))
		}
		e := ended{how: how(howRaw % 6), header: http.Header{"Retry-After": {asked}}}
		if e.how == answered {
			e.status, e.means = status, contract.Meaning(meansRaw%8)
			e.advice, e.replay = contract.Advice(adviceRaw%3), Replay(replayRaw%3)
		} else {
			e.err = io.ErrUnexpectedEOF
		}
		v := decide(&c, h, e)

		again := decide(&c, h, e)
		for _, broken := range slices.Concat(brokenRules(&c, h, e, v), brokenRetryRules(&c, h, e, v)) {
			t.Errorf("%s\nhistory %+v\nended %+v\nverdict %+v", broken, h, e, v)
		}
		if v.retry != again.retry || v.wait != again.wait || v.answer != again.answer || (v.reason == nil) != (again.reason == nil) {
			t.Errorf("the same input gives another verdict: %+v, then %+v", v, again)
		}
	})
}

// rules collects what does not hold.
type rules []string

func (r *rules) must(ok bool, broken string) {
	if !ok {
		*r = append(*r, broken)
	}
}

// brokenRules returns which of the rules that hold for any verdict v breaks.
func brokenRules(c *contract.Contract, h history, e ended, v verdict) (r rules) {
	r.must(!v.retry || v.reason == nil, "both retry and reason")
	r.must(v.retry || v.reason != nil || e.how == answered, "stopped without an answer and without a reason")
	r.must(v.wait >= 0, "a negative wait")
	if e.how != answered {
		r.must(v.answer == noAnswer, "no answer says something about the effect")
		return r
	}
	r.must(v.answer != refused || c.Refuses(e.status) && e.status < 500, "a refusal that is not listed")
	r.must(v.answer != settled || e.status < 300 || e.replay == Replayed || e.means == contract.Settled || e.means == contract.Done, "settled without a ground")
	r.must(e.status < 300 || e.status >= 400 || e.means != contract.Unclassified || v.answer == noAnswer, "a redirect as an answer")
	r.must(!errors.Is(v.reason, ErrMismatch) || h.keyed, "a mismatch without a key")
	return r
}

// brokenRetryRules returns which of the rules on another attempt v breaks.
func brokenRetryRules(c *contract.Contract, h history, e ended, v verdict) (r rules) {
	if !v.retry {
		return nil
	}
	r.must(h.attempt < h.limit, "an attempt too many")
	r.must(v.answer != settled && v.answer != decided, "asked again after a decision")
	r.must(e.how != callerDone && e.how != bodyFailed && e.how != permanent, "asked again after what is final")
	r.must(h.repeatable || e.how == unsent, "an unkeyed write is repeated that may have been sent")
	r.must(e.status != 422 || e.means == contract.InProgress || e.means == contract.Transient, "a 422 is repeated without a code")
	r.must(e.status != 409 || h.keyed || e.advice == contract.AdviseRetry || e.means == contract.Transient, "an unkeyed 409 is repeated")
	r.must(e.replay != Replayed, "a stored answer is asked for again")
	r.must(e.advice != contract.AdviseStop, "the server said no")
	r.must(!slices.Contains([]contract.Meaning{contract.Mismatch, contract.Done, contract.KeyRefused, contract.Final, contract.Settled}, e.means), "the contract said no")
	r.must(e.how != answered || e.status >= 400 || e.means != contract.Unclassified, "a success is repeated")

	wait, byServer := retryAfter(e.header, h.now)
	longest := max(wait, h.bound, c.Gap)
	r.must(!byServer || v.wait >= wait, "sooner than asked")
	r.must(!byServer || wait <= h.maxWait, "longer than MaxRetryAfter")
	r.must(byServer || v.wait >= h.bound/2, "sooner than the own wait")
	r.must(v.wait >= c.Gap, "sooner than the contract's Gap")
	r.must(v.wait-longest <= min(longest/10+1, time.Second), "too much jitter")
	r.must(h.deadline.IsZero() || v.wait < h.deadline.Sub(h.now), "a wait into the deadline")
	r.must(h.windowEnd.IsZero() || v.wait < h.windowEnd.Sub(h.now), "a wait into the window's end")
	return r
}
