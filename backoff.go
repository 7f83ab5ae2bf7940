package idem

import "time"

// Backoff gives the longest wait after the attempt of that number, counted from
// 1. It must be a pure function, safe for concurrent use; a negative result
// counts as 0. The Transport draws the wait itself from the upper half of it,
// [d/2, d], so that clients that failed together do not come back together.
type Backoff func(attempt int) time.Duration

// Exponential returns the Backoff base, 2·base, 4·base, …, up to most:
//
//	Exponential(200*time.Millisecond, 10*time.Second)
//	200ms → 400ms → 800ms → 1.6s → 3.2s → 6.4s → 10s → 10s → …
//
// A base of 0 or less means no wait; a base above most counts as most.
func Exponential(base, most time.Duration) Backoff {
	return func(attempt int) time.Duration {
		d := min(base, most)
		for ; attempt > 1 && d > 0 && d < most; attempt-- {
			if d > most/2 {
				return most
			}
			d *= 2
		}
		if d < 0 {
			return 0
		}
		return d
	}
}

// halfJitter draws from [d/2, d]; draw is in [0, 1).
func halfJitter(d time.Duration, draw float64) time.Duration {
	if d <= 0 {
		return 0
	}
	half := d / 2
	return d - time.Duration(draw*float64(half))
}

// serverJitter is what is added to a wait that the server asked for, so that
// nobody comes too soon: at most a tenth of it, and at most a second.
func serverJitter(d time.Duration, draw float64) time.Duration {
	return time.Duration(draw * float64(min(d/10, time.Second)))
}
