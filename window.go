package idem

import (
	"net/http"
	"time"
)

// stampFirstSent writes the earliest time at which the key can have been sent,
// where the contract asks for that. It is the same on every attempt, and in every
// process that goes on with the Intent, because State and Derive hand the time on.
func (c *call) stampFirstSent(h http.Header) {
	if name := c.settings.contract.FirstSentHeader; name != "" && c.keyed() {
		h.Set(name, c.in.sentSince(c.book.firstSend()).UTC().Format(http.TimeFormat))
	}
}

// keepGap makes a call wait before its first attempt, if the contract wants a
// longer time since the last send of the Intent.
func (c *call) keepGap() verdict {
	gap := c.settings.contract.Gap
	if gap == 0 || !c.keyed() || c.attempts > 0 {
		return verdict{}
	}
	now, last := time.Now(), c.book.lastSend()
	if last.IsZero() || ageOf(last, now) >= gap {
		return verdict{}
	}
	deadline, _ := c.layered.Deadline()
	age := max(ageOf(last, now), 0) // a State may come from a machine whose clock is ahead
	return patience(verdict{retry: true, wait: gap - age}, now, deadline, c.windowEnd(now), 0)
}

// windowEnd is when the last attempt may start and the last re-send may leave:
// the end of the window less a margin for what is still on its way then. Zero
// means never.
func (c *call) windowEnd(now time.Time) time.Time {
	window := c.settings.contract.Window
	if !c.keyed() || window < 0 {
		return time.Time{}
	}
	margin := min(max(c.settings.attemptTimeout, 2*time.Minute), window/2)
	var age time.Duration
	for _, start := range []time.Time{c.in.since, c.book.firstSend()} {
		if !start.IsZero() {
			age = max(age, ageOf(start, now))
		}
	}
	return now.Add(window - margin - age)
}

// isOver reports whether a window that ends then is over; a zero end never comes.
func isOver(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// ageOf is the time since start by the clock that says more: the monotonic clock
// stands still while a machine sleeps, the wall clock may be set back.
func ageOf(start, now time.Time) time.Duration {
	return max(now.Sub(start), now.Round(0).Sub(start.Round(0)))
}
