package idem

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter returns how long the server asks to wait, and whether it asks at
// all. It reads Retry-After-Ms (milliseconds), then Retry-After (RFC 9110,
// 10.2.3): seconds, whole or decimal, rounded up, or one of the three dates of
// HTTP, measured against the answer's own Date if it has one, since the two
// clocks may differ. What is zero, negative, past or malformed does not count:
// it would be a call to come back at once. Long waits saturate.
//
// Where a header stands more than once the longest wait wins, also where somebody
// on the way has joined the numbers with commas (RFC 9110, 5.3).
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	if d := longest(header["Retry-After-Ms"], func(v string) time.Duration {
		return decimal(v, time.Millisecond)
	}); d > 0 {
		return d, true
	}
	d := longest(header["Retry-After"], func(v string) time.Duration {
		if d := decimal(v, time.Second); d > 0 {
			return ceilSecond(d)
		}
		at, ok := httpDate(v)
		if !ok {
			return 0
		}
		if date, ok := httpDate(header.Get("Date")); ok {
			now = date
		}
		return at.Sub(now) // saturates
	})
	return d, d > 0
}

func longest(values []string, read func(string) time.Duration) (d time.Duration) {
	for _, v := range values {
		parts := []string{v}
		if strings.Trim(v, "0123456789., \t") == "" { // not a date, which may have a comma
			parts = strings.Split(v, ",")
		}
		for _, part := range parts {
			d = max(d, read(strings.Trim(part, " \t")))
		}
	}
	return d
}

// decimal reads digits, with a fraction or without, as a number of units; it
// returns 0 for anything else and saturates at the largest Duration.
func decimal(s string, unit time.Duration) time.Duration {
	whole, fraction, dotted := strings.Cut(s, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	d := time.Duration(n) * unit
	if dotted {
		f, _ := strconv.ParseFloat("0."+fraction, 64) // only digits: it cannot fail
		d += time.Duration(math.Ceil(f * float64(unit)))
	}
	return d
}

// httpDate reads one of the three forms (RFC 9110, 5.6.7). All are in GMT, which
// http.ParseTime does not insist on.
func httpDate(s string) (time.Time, bool) {
	if strings.Contains(s, ",") && !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false
	}
	t, err := http.ParseTime(s)
	return t, err == nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func ceilSecond(d time.Duration) time.Duration {
	if rest := d % time.Second; rest > 0 && d < math.MaxInt64-time.Second {
		return d - rest + time.Second
	}
	return d
}
