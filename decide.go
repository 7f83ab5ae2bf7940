package idem

import (
	"errors"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem/contract"
)

// decide is the whole judgement on the end of one attempt: whether to go on,
// when, why not, and what the answer says about the effect. It is pure: clock
// and chance come in as values.
func decide(c *contract.Contract, h history, e ended) verdict {
	v := judge(c, h, e)
	if !v.retry {
		return v
	}
	stop := func(reason error) verdict { return verdict{reason: reason, answer: v.answer} }
	if h.cannotRepeat != nil {
		return stop(h.cannotRepeat)
	}
	if h.attempt >= h.limit {
		return stop(ErrExhausted)
	}
	asked, byServer := retryAfter(e.header, h.now)
	wait := halfJitter(h.bound, h.draw)
	if byServer {
		if asked > h.maxWait {
			return verdict{wait: asked, answer: v.answer, reason: &waitTooLongError{wait: asked, limit: h.maxWait, what: "MaxRetryAfter allows"}}
		}
		wait = asked
	}
	if c.Gap > wait {
		wait, byServer = c.Gap, true
	}
	jitter := time.Duration(0)
	if byServer {
		jitter = serverJitter(wait, h.draw)
	}
	v.wait = wait
	return patience(v, h.now, h.deadline, h.windowEnd, jitter)
}

// patience adds jitter to a wait, or ends the call where the wait would pass the
// deadline or the window: nobody sleeps into a certain timeout.
func patience(v verdict, now, deadline, windowEnd time.Time, jitter time.Duration) verdict {
	for _, end := range []struct {
		at     time.Time
		what   string
		window bool
	}{{deadline, "the context's deadline allows", false}, {windowEnd, "the key's window allows", true}} {
		if end.at.IsZero() {
			continue
		}
		left := end.at.Sub(now)
		if v.wait >= left {
			return verdict{wait: v.wait, answer: v.answer, reason: &waitTooLongError{
				wait: v.wait, limit: max(left, 0), what: end.what, deadline: !end.window, window: end.window,
			}}
		}
		if jitter >= left-v.wait {
			jitter = 0
		}
	}
	v.wait += min(jitter, math.MaxInt64-v.wait)
	return v
}

// history is what decide knows of the call before this end of an attempt.
type history struct {
	attempt, limit int   // this attempt's number; the most there may be
	keyed          bool  // the request carries a key
	repeatable     bool  // keyed, or of an idempotent method (RFC 9110, 9.2.2)
	cannotRepeat   error // why the body cannot be sent again; nil: it can

	now                 time.Time
	deadline, windowEnd time.Time // zero: none
	maxWait             time.Duration
	bound               time.Duration // the longest own wait
	draw                float64       // chance, in [0, 1)
}

// ended is how one attempt ended.
type ended struct {
	how    how
	means  contract.Meaning
	advice contract.Advice
	replay Replay
	err    error       // nil with how == answered
	status int         // of the answer, also of one whose body was cut
	header http.Header // of the answer
}

// asked is how long the server asks to wait; zero: it does not.
func (e *ended) asked(now time.Time) time.Duration {
	if e.status < 400 {
		return 0 // nearly every attempt
	}
	d, _ := retryAfter(e.header, now)
	return d
}

type how uint8

const (
	answered   how = iota // with a head, and with the body where it was read
	callerDone            // the caller's context ended, or Request.Cancel was closed
	bodyFailed            // the caller's own body could not be read
	permanent             // certificate, scheme, URL, header: the same will happen again
	unsent                // no request head was written, and that was seen
	broken                // anything else: it may have been received
)

type verdict struct {
	retry  bool
	answer answer
	wait   time.Duration // before the next attempt; with retry false: the wait that was too long
	reason error         // why not; nil with retry, and for an answer that is final
}

// maxLookups bounds the attempts on a host name that does not exist, whatever
// MaxAttempts allows: the resolver has said so, and seldom changes its mind.
const maxLookups = 3

// judge decides without regard to limits and waits.
func judge(c *contract.Contract, h history, e ended) verdict {
	switch e.how {
	case answered:
		return judgeAnswer(c, h, e)
	case callerDone, bodyFailed, permanent:
		return verdict{reason: e.err}
	case unsent: // nothing left: safe for any method
		if dns, ok := errors.AsType[*net.DNSError](e.err); ok && dns.IsNotFound && h.attempt >= maxLookups {
			return verdict{reason: e.err}
		}
		return verdict{retry: true}
	default:
		if !h.repeatable {
			return verdict{reason: ErrNotRepeatable}
		}
		if saidNo(e) { // in what came of its answer, before that was cut
			return verdict{reason: e.err}
		}
		return verdict{retry: true}
	}
}

// saidNo reports whether the server, or its contract, has forbidden to ask again.
func saidNo(e ended) bool {
	switch e.means {
	case contract.Mismatch, contract.KeyRefused, contract.Final:
		return true
	}
	return e.advice == contract.AdviseStop || is422(e)
}

// is422 reports whether the answer is a 422 that no code makes one to repeat.
func is422(e ended) bool {
	return e.status == http.StatusUnprocessableEntity && e.means != contract.InProgress && e.means != contract.Transient
}

func judgeAnswer(c *contract.Contract, h history, e ended) verdict {
	v := verdict{answer: answerOf(c, e)}
	if v.answer == settled || e.status < 400 && e.means == contract.Unclassified {
		return v
	}
	if !h.repeatable {
		if retriable(e.status) {
			v.reason = ErrNotRepeatable
		}
		return v
	}
	switch {
	case e.replay == Replayed: // the stored answer will not change
	case e.means == contract.Mismatch:
		if h.keyed {
			v.reason = ErrMismatch
		}
	case e.means == contract.KeyRefused, e.means == contract.Final:
	case e.advice == contract.AdviseStop:
	case is422(e):
	case e.advice == contract.AdviseRetry, e.means == contract.InProgress && h.keyed, e.means == contract.Transient:
		v.retry = true
	case e.status == http.StatusConflict:
		v.retry = h.keyed // in progress, for all that is known
	default:
		v.retry = retriable(e.status)
	}
	if v.retry && v.answer == decided {
		v.answer = noAnswer // what the server wants asked again is not its decision
	}
	return v
}

// answerOf says what an answer tells about the effect of its send.
func answerOf(c *contract.Contract, e ended) answer {
	switch {
	case succeeded(e.status, e.means):
		return settled
	case e.status < 400 && e.means == contract.Unclassified:
		return noAnswer // 1xx and 3xx: a redirect is no answer to a write
	case e.means == contract.Settled:
		return settled
	case e.status >= 500:
		// Also when it is marked as a replay: a failure that was stored may have
		// come before the work or after it.
		return noAnswer
	case e.replay == Replayed:
		return settled
	case c.Refuses(e.status) && e.means == contract.Unclassified:
		return refused
	case e.means == contract.InProgress, e.means == contract.Transient, retriable(e.status), e.status == http.StatusConflict && e.means == contract.Unclassified:
		return noAnswer
	default:
		return decided
	}
}

// succeeded reports whether an answer says that the work is done: 2xx, unless
// its body says otherwise, or whatever the contract knows as "done before".
func succeeded(status int, means contract.Meaning) bool {
	if means == contract.Unclassified || means == contract.Settled {
		return status >= 200 && status < 300
	}
	return means == contract.Done
}

// retriable reports whether a status by itself asks to be repeated.
func retriable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates,
		http.StatusLoopDetected, http.StatusNotExtended, http.StatusNetworkAuthenticationRequired:
		return false
	}
	return status >= 500
}

// isSafe reports whether the method is safe (RFC 9110, 9.2.1).
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// isIdempotent reports whether the method is idempotent (RFC 9110, 9.2.2).
func isIdempotent(method string) bool {
	return isSafe(method) || method == http.MethodPut || method == http.MethodDelete
}
