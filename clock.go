package idem

import (
	"context"
	"errors"
	"io"
	"time"
)

var errAttemptOver = errors.New("idem: the attempt is over")

// newAttempt starts the clock of one attempt, at now.
func (c *call) newAttempt(parent context.Context, now, windowEnd time.Time) *attempt {
	a := &c.first
	if a.call != nil {
		a = new(attempt)
	}
	a.call, a.number, a.fresh = c, c.attempts, now
	a.sends.attempt = a
	a.line[0] = c.wire
	a.Context, a.cancel = context.WithCancelCause(parent)
	left, limited := a.left(now, windowEnd)
	deadline, ok := parent.Deadline()
	if callersIsSooner := ok && deadline.Sub(now) <= left; limited && !callersIsSooner {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.clocked = true
		a.timer = time.AfterFunc(left, a.expire)
	}
	return a
}

// left is the time that the attempt still has at now, if it is limited. No send may
// leave after windowEnd.
func (a *attempt) left(now, windowEnd time.Time) (left time.Duration, limited bool) {
	if a.drained != nil {
		return drainTime - now.Sub(a.fresh), true
	}
	if timeout := a.call.settings.attemptTimeout; timeout > 0 {
		left, limited = timeout-now.Sub(a.fresh), true
	}
	if !windowEnd.IsZero() {
		if d := windowEnd.Sub(now); !limited || d < left {
			left, limited = d, true
		}
	}
	return left, limited
}

// expire ends the attempt if its time has run out, and else looks again later.
func (a *attempt) expire() {
	if body := a.expired(time.Now()); body != nil {
		_ = body.Close() // for a Base that does not heed the context
	}
}

// expired does what expire does, but leaves it the closing of what is drained: that
// may block, and the lock is held here.
func (a *attempt) expired(now time.Time) (drained io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clocked {
		return nil
	}
	end := a.call.windowEnd(now)
	switch left, _ := a.left(now, end); {
	case left > 0: // it was given time anew
		a.timer.Reset(left)
	case a.drained != nil:
		a.cancel(errAttemptOver)
		return a.drained
	case isOver(end, now):
		a.cancel(ErrExpired)
	default:
		a.cancel(attemptTimeoutError(a.call.settings.attemptTimeout))
	}
	return nil
}

// drain gives the attempt a short time to read what is left of body.
func (a *attempt) drain(body io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clocked, a.drained, a.fresh = true, body, time.Now()
	if a.timer == nil {
		a.timer = time.AfterFunc(drainTime, a.expire)
	} else {
		a.timer.Reset(drainTime)
	}
}

// restart gives the attempt its whole time again: the request is written. It
// leaves the timer alone, which would take 35 ns more of every attempt: expire
// sees to it, in the few that come so far.
func (a *attempt) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.drained == nil {
		a.fresh = time.Now()
	}
}

// progress notes that n bytes of a body that is not in memory were taken.
func (a *attempt) progress(n int) {
	if n > 0 {
		a.restart()
	}
}

// stopClock lets what is left of the attempt, a streamed body, take its time.
func (a *attempt) stopClock() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocked {
		a.clocked = false
		a.timer.Stop()
		a.timer = nil // the attempt may be kept through a long wait
	}
}

// over ends the attempt and gives back what it holds.
func (a *attempt) over() {
	a.stopClock()
	a.cancel(errAttemptOver)
}
