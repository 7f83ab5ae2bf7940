package idem

import (
	"context"
	"errors"
	"time"
)

var errAttemptOver = errors.New("idem: the attempt is over")

// newAttempt starts the clock of one attempt, at now.
func (c *call) newAttempt(parent context.Context, now, windowEnd time.Time) *attempt {
	a := &c.first
	if a.call != nil {
		a = new(attempt)
	}
	a.call, a.number, a.timeout, a.until = c, c.attempts, c.settings.attemptTimeout, windowEnd
	a.sends.attempt = a
	a.line[0] = c.wire
	a.Context, a.cancel = context.WithCancelCause(parent)
	limit := a.limit(now)
	deadline, ok := parent.Deadline()
	if callersIsSooner := ok && deadline.Sub(now) <= limit; limit > 0 && !callersIsSooner {
		a.clocked = true
		a.timer = time.AfterFunc(limit, a.expire)
	}
	return a
}

// limit is the time left from now on, 0 if there is no limit.
func (a *attempt) limit(now time.Time) time.Duration {
	d := a.timeout
	if !a.until.IsZero() {
		if left := max(a.until.Sub(now), 1); d <= 0 || left < d {
			d = left
		}
	}
	return max(d, 0)
}

// expire ends the attempt when its time has run out.
func (a *attempt) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clocked {
		return
	}
	if !a.until.IsZero() && !time.Now().Before(a.until) {
		a.cancel(ErrExpired)
		return
	}
	a.cancel(attemptTimeoutError(a.timeout))
}

// restart gives the attempt its whole time again: the request is written.
func (a *attempt) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clocked {
		a.timer.Reset(a.limit(time.Now()))
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
	}
}

// over ends the attempt and gives back what it holds.
func (a *attempt) over() {
	a.stopClock()
	a.cancel(errAttemptOver)
}
