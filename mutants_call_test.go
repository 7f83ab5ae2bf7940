package idem

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withClock returns t with another reading of the monotonic clock, which the
// package time does not let anybody set.
func withClock(t time.Time, reading time.Duration) time.Time {
	(*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t)).ext = int64(reading)
	return t
}

// The age of a key is by the clock that says more: the wall clock may be set
// back, and the monotonic one stands still while the machine sleeps.
func TestAgeOf(t *testing.T) {
	base := time.Now()
	require.Equal(t, 7*time.Second, withClock(base, 9*time.Second).Sub(withClock(base, 2*time.Second)), "what withClock is for")
	for name, c := range map[string]struct {
		wall, monotonic, want time.Duration
	}{
		"both agree":           {time.Hour, time.Hour, time.Hour},
		"the machine slept":    {3 * time.Hour, time.Minute, 3 * time.Hour},
		"the clock was set":    {-time.Hour, 2 * time.Hour, 2 * time.Hour},
		"and a little forward": {61 * time.Minute, time.Hour, 61 * time.Minute},
	} {
		start := withClock(base, time.Second)
		now := withClock(base.Add(c.wall), time.Second+c.monotonic)
		assert.Equal(t, c.want, ageOf(start, now), name)
	}
	// A time that was written down has no monotonic reading.
	assert.Equal(t, time.Hour, ageOf(base.Round(0), base.Add(time.Hour)))
}

func TestOriginOf(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.test/a":     "https://api.test:443",
		"https://api.test:443/b": "https://api.test:443",
		"https://API.test/":      "https://api.test:443",
		"https://api.test:8443/": "https://api.test:8443",
		"http://api.test/":       "http://api.test:80",
		"http://api.test:80/":    "http://api.test:80",
		"http://[::1]/":          "http://::1:80",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		assert.Equal(t, want, originOf(&http.Request{URL: u}), raw)
	}
}

// A machine that sleeps in the middle of an attempt wakes with its timers late and
// its connection dead: what net/http would send again then is out of the window.
func TestSends_NotAfterTheMachineSlept(t *testing.T) {
	for name, where := range map[string]string{"before the connection is looked for": "GetConn", "while it is dialled": "GotConn"} {
		t.Run(name, func(t *testing.T) {
			in := Open()
			sleep := func() {
				in.book.mu.Lock()
				defer in.book.mu.Unlock()
				in.book.firstSent = in.book.firstSent.Add(-25 * time.Hour)
			}
			here, there := net.Pipe()
			defer there.Close()
			transport := &Transport{Base: roundTripper(func(q *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(q.Context())
				trace.GetConn("api:80")
				trace.GotConn(httptrace.GotConnInfo{})
				trace.WroteHeaders()
				require.NoError(t, q.Context().Err())
				if where == "GetConn" {
					sleep()
				}
				trace.GetConn("api:80")
				if where == "GotConn" {
					require.NoError(t, q.Context().Err())
					sleep()
				}
				trace.GotConn(httptrace.GotConnInfo{Conn: here})
				require.ErrorIs(t, context.Cause(q.Context()), ErrExpired)
				_, err := here.Write([]byte("POST"))
				require.ErrorIs(t, err, io.ErrClosedPipe)
				return nil, q.Context().Err()
			})}
			req, err := http.NewRequestWithContext(WithIntent(t.Context(), in), "POST", "http://api/x", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(req) //nolint:bodyclose // there is none
			require.ErrorIs(t, err, ErrExpired)
			require.Len(t, in.Attempts(), 1)
			require.Equal(t, OutcomeUnknown, in.Outcome())
		})
	}
}
