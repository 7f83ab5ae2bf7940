package idem

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// askNow is the local clock of the tables. It is not on a whole second, so that
// what is measured against it can be told from what is measured against Date.
var askNow = time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)

// askDate is the server's clock: five minutes behind.
var askDate = time.Date(2026, 3, 1, 11, 55, 0, 0, time.UTC)

const rfc850GMT = "Monday, 02-Jan-06 15:04:05 GMT"

const forever = time.Duration(math.MaxInt64)

type askCase struct {
	name   string
	header http.Header
	want   time.Duration // 0: it does not ask
}

// after is a header with one Retry-After.
func after(v string) http.Header { return http.Header{"Retry-After": {v}} }

// afterMs is a header with one Retry-After-Ms.
func afterMs(v string) http.Header { return http.Header{"Retry-After-Ms": {v}} }

// afterDate is a Retry-After beside the answer's own Date.
func afterDate(v, date string) http.Header {
	return http.Header{"Retry-After": {v}, "Date": {date}}
}

func askCases() []askCase {
	http1 := func(t time.Time) string { return t.Format(http.TimeFormat) }
	cases := []askCase{
		{"no header at all", nil, 0},
		{"neither header", http.Header{"Date": {http1(askDate)}}, 0},
		{"a nil list", http.Header{"Retry-After": nil, "Retry-After-Ms": nil}, 0},

		// seconds
		{"one second", after("1"), time.Second},
		{"whole seconds", after("120"), 2 * time.Minute},
		{"leading zeros", after("0007"), 7 * time.Second},
		{"blanks and tabs around", after(" \t 3 \t"), 3 * time.Second},
		{"a fraction is rounded up", after("1.5"), 2 * time.Second},
		{"the least fraction is rounded up", after("0.000000001"), time.Second},
		{"just below a second", after("299.997"), 300 * time.Second},
		{"just above a second", after("2.0001"), 3 * time.Second},
		{"a fraction of zeros", after("2.000"), 2 * time.Second},
		{"0.1 has no exact double", after("0.1"), time.Second},
		{"1.1 has no exact double", after("1.1"), 2 * time.Second},
		{"a year that looks like one", after("2015"), 2015 * time.Second},
		{"epoch seconds", after("1771404540"), 1771404540 * time.Second},
		{"zero", after("0"), 0},
		{"zeros", after("000"), 0},
		{"zero with a fraction", after("0.0"), 0},
		{"less than any number", after("0." + strings.Repeat("0", 400) + "1"), 0},
		{"negative", after("-1"), 0},
		{"minus zero", after("-0"), 0},
		{"negative fraction", after("-0.5"), 0},
		{"a plus", after("+3"), 0},
		{"a dot at the end", after("1."), 0},
		{"a dot at the start", after(".5"), 0},
		{"two dots", after("1.2.3"), 0},
		{"a list in one line", after("30,120"), 2 * time.Minute},
		{"a list in one line, with blanks", after("2 ,\t1.5, 1"), 2 * time.Second},
		{"a list with an empty part", after(", 3,"), 3 * time.Second},
		{"a list with a part that is none", after("1, 1.2.3"), time.Second},
		{"a list of nothing", after(", ,"), 0},
		{"a list with a date", after("1, " + http1(askNow.Add(time.Minute))), 0},
		{"a unit", after("1s"), 0},
		{"words", after("soon"), 0},
		{"empty", after(""), 0},
		{"blank", after("  "), 0},
		{"hexadecimal", after("0x10"), 0},
		{"an exponent", after("1e3"), 0},
		{"underscores", after("1_000"), 0},
		{"infinity", after("Inf"), 0},
		{"not a number", after("NaN"), 0},
		{"other digits", after("٣"), 0},
		{"full-width digits", after("３"), 0},
		{"a blank inside", after("1 0"), 0},
		{"a line break inside", after("1\n0"), 0},
		{"a NUL", after("1\x00"), 0},

		// saturation
		{"the last that fits", after("9223372035"), 9223372035 * time.Second},
		{"one above what fits", after("9223372037"), forever},
		{"int64's maximum", after("9223372036854775807"), forever},
		{"above uint64", after("18446744073709551617"), forever},
		{"above any double", after(strings.Repeat("9", 400)), forever},
		{"above any double, with a fraction", after(strings.Repeat("9", 400) + ".5"), forever},

		// several lines
		{"the longest of several lines", http.Header{"Retry-After": {"1", "5", "3"}}, 5 * time.Second},
		{"a malformed line beside a good one", http.Header{"Retry-After": {"soon", "4"}}, 4 * time.Second},
		{"zero beside a good one", http.Header{"Retry-After": {"0", "4"}}, 4 * time.Second},
		{"only bad lines", http.Header{"Retry-After": {"0", "-1", "x"}}, 0},
		{"seconds beside a date", http.Header{"Retry-After": {"2", http1(askDate.Add(9 * time.Second))}, "Date": {http1(askDate)}}, 9 * time.Second},
		{"two dates", http.Header{"Retry-After": {http1(askDate.Add(9 * time.Second)), http1(askDate.Add(4 * time.Second))}, "Date": {http1(askDate)}}, 9 * time.Second},

		// milliseconds
		{"milliseconds", afterMs("1500"), 1500 * time.Millisecond},
		{"a millisecond is not rounded to a second", afterMs("1"), time.Millisecond},
		{"a decimal of milliseconds", afterMs("0.5"), 500 * time.Microsecond},
		{"blanks around milliseconds", afterMs(" 20 "), 20 * time.Millisecond},
		{"the longest of several milliseconds", http.Header{"Retry-After-Ms": {"20", "30", "x"}}, 30 * time.Millisecond},
		{"milliseconds do not take dates", afterMs(http1(askNow.Add(time.Hour))), 0},
		{"milliseconds saturate", afterMs("9223372036855"), forever},
		{"milliseconds above any number", afterMs(strings.Repeat("9", 400)), forever},
		{"zero milliseconds", afterMs("0"), 0},
		{"negative milliseconds", afterMs("-5"), 0},
		{"malformed milliseconds", afterMs("5ms"), 0},

		// precedence
		{"milliseconds before seconds, shorter", http.Header{"Retry-After-Ms": {"200"}, "Retry-After": {"1"}}, 200 * time.Millisecond},
		{"milliseconds before seconds, longer", http.Header{"Retry-After-Ms": {"5000"}, "Retry-After": {"1"}}, 5 * time.Second},
		{"zero milliseconds leave the word to seconds", http.Header{"Retry-After-Ms": {"0"}, "Retry-After": {"1"}}, time.Second},
		{"malformed milliseconds leave it too", http.Header{"Retry-After-Ms": {"x"}, "Retry-After": {"1"}}, time.Second},
		{"milliseconds beside a malformed Retry-After", http.Header{"Retry-After-Ms": {"7"}, "Retry-After": {"x"}}, 7 * time.Millisecond},

		// dates beside a Date
		{"IMF-fixdate", afterDate(http1(askDate.Add(2*time.Second)), http1(askDate)), 2 * time.Second},
		{"RFC 850", afterDate(askDate.Add(2*time.Second).Format(rfc850GMT), http1(askDate)), 2 * time.Second},
		{"asctime", afterDate(askDate.Add(2*time.Second).Format(time.ANSIC), http1(askDate)), 2 * time.Second},
		{"the Date in RFC 850", afterDate(http1(askDate.Add(2*time.Second)), askDate.Format(rfc850GMT)), 2 * time.Second},
		{"the Date in asctime", afterDate(http1(askDate.Add(2*time.Second)), askDate.Format(time.ANSIC)), 2 * time.Second},
		{"the same moment as Date", afterDate(http1(askDate), http1(askDate)), 0},
		{"before Date", afterDate(http1(askDate.Add(-time.Second)), http1(askDate)), 0},
		{"before Date, after the local clock", afterDate(http1(askNow.Add(time.Hour)), http1(askNow.Add(2*time.Hour))), 0},
		{"Date does not matter to seconds", afterDate("3", http1(askDate)), 3 * time.Second},
		{"a date a lifetime away", afterDate("Fri, 31 Dec 9999 23:59:59 GMT", http1(askDate)), forever},
		{"a date of the past, from a Date a lifetime away", afterDate(http1(askDate), "Fri, 31 Dec 9999 23:59:59 GMT"), 0},

		// dates beside no Date, or none that is one
		{"IMF-fixdate by the local clock", after(http1(askNow.Add(2 * time.Second))), 1750 * time.Millisecond},
		{"RFC 850 by the local clock", after(askNow.Add(2 * time.Second).Format(rfc850GMT)), 1750 * time.Millisecond},
		{"asctime by the local clock", after(askNow.Add(2 * time.Second).Format(time.ANSIC)), 1750 * time.Millisecond},
		{"a Date that is none", afterDate(http1(askNow.Add(2*time.Second)), "today"), 1750 * time.Millisecond},
		{"an empty Date", afterDate(http1(askNow.Add(2*time.Second)), ""), 1750 * time.Millisecond},
		{"past by the local clock", after("Wed, 21 Oct 2015 07:28:00 GMT"), 0},
		{"long past", after("Mon, 01 Jan 0001 00:00:00 GMT"), 0},
	}

	// What looks like a date of HTTP and is none (RFC 9110, 5.6.7).
	soon := askDate.Add(2 * time.Second)
	for name, layout := range map[string]string{
		"IMF-fixdate in UTC":                 "Mon, 02 Jan 2006 15:04:05 UTC",
		"IMF-fixdate with an offset":         "Mon, 02 Jan 2006 15:04:05 +0000",
		"IMF-fixdate without a zone":         "Mon, 02 Jan 2006 15:04:05",
		"IMF-fixdate without a day":          "02 Jan 2006 15:04:05 GMT",
		"ISO 8601":                           "2006-01-02T15:04:05Z",
		"ISO 8601 with an offset":            "2006-01-02T15:04:05+00:00",
		"ISO 8601 with a blank":              "2006-01-02 15:04:05",
		"a date without a time":              "2006-01-02",
		"a time without a date":              "15:04:05",
		"RFC 822 with two digits":            "Mon, 02 Jan 06 15:04:05 GMT",
		"RFC 850 in UTC":                     "Monday, 02-Jan-06 15:04:05 UTC",
		"RFC 850 in another zone":            "Monday, 02-Jan-06 15:04:05 PST",
		"RFC 850 with an offset in its zone": "Monday, 02-Jan-06 15:04:05 GMT+1",
	} {
		cases = append(cases, askCase{name, afterDate(soon.Format(layout), http1(askDate)), 0})
	}
	return cases
}

func TestRetryAfter(t *testing.T) {
	for _, c := range askCases() {
		t.Run(c.name, func(t *testing.T) {
			got, asked := retryAfter(c.header, askNow)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.want > 0, asked)
		})
	}
}

// Every whole number of seconds up to the limit is taken as it is, and above it
// the wait never gets shorter.
func TestRetryAfter_NeverWraps(t *testing.T) {
	last := time.Duration(0)
	for shift := range 200 {
		digits := strings.Repeat("9", shift/3+1)
		got, asked := retryAfter(after(digits), askNow)
		require.True(t, asked, digits)
		require.GreaterOrEqual(t, got, last, digits)
		last = got
	}
	require.Equal(t, forever, last)

	for s := int64(1); s < math.MaxInt64/int64(time.Second); s = s*3 + 1 {
		got, asked := retryAfter(after(strconv.FormatInt(s, 10)), askNow)
		require.True(t, asked)
		require.Equal(t, time.Duration(s)*time.Second, got, "%d s", s)
	}
}

// Two readings of one header are the same: nothing is kept between lines.
func TestRetryAfter_Pure(t *testing.T) {
	for _, c := range askCases() {
		h := c.header.Clone()
		a, _ := retryAfter(c.header, askNow)
		b, _ := retryAfter(c.header, askNow)
		assert.Equal(t, a, b, c.name)
		assert.Equal(t, h, c.header, c.name)
	}
}

func FuzzRetryAfter(f *testing.F) {
	first := func(values []string) string {
		if len(values) == 0 {
			return ""
		}
		return values[0]
	}
	for _, c := range askCases() {
		second := ""
		if v := c.header["Retry-After"]; len(v) > 1 {
			second = v[1]
		}
		f.Add(first(c.header["Retry-After-Ms"]), first(c.header["Retry-After"]), second, c.header.Get("Date"), askNow.UnixNano())
	}
	f.Fuzz(func(t *testing.T, ms, one, two, date string, nano int64) {
		now := time.Unix(0, nano)
		h := http.Header{"Retry-After-Ms": {ms}, "Retry-After": {one, two}, "Date": {date}}
		got, asked := retryAfter(h, now)
		if got < 0 {
			t.Fatalf("%v is negative", got)
		}
		if asked != (got > 0) {
			t.Fatalf("asked is %v for %v", asked, got)
		}
		single, _ := retryAfter(http.Header{"Retry-After-Ms": {ms}, "Retry-After": {one}, "Date": {date}}, now)
		if single > got {
			t.Fatalf("a second line makes the wait shorter: %v, not %v", got, single)
		}
		if s, err := strconv.ParseUint(strings.Trim(one, " \t"), 10, 63); err == nil && s > 0 && strings.Trim(one, " \t")[0] != '+' {
			alone, _ := retryAfter(http.Header{"Retry-After": {one}}, now)
			if want := time.Duration(min(s, math.MaxInt64/uint64(time.Second))) * time.Second; alone < want {
				t.Fatalf("%d seconds became %v", s, alone)
			}
		}
	})
}
