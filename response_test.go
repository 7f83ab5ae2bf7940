package idem_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body of known length is whole if all of it came and nothing went wrong after
// it, in whichever way its reader tells of the end; else it is asked for again.
func TestResponse_Whole(t *testing.T) {
	const length = 10
	reset := errors.New("connection reset")
	for name, c := range map[string]struct {
		body  io.Reader
		whole bool
	}{
		"the end comes with the last bytes": {iotest.DataErrReader(strings.NewReader("0123456789")), true},
		"the end comes by itself":           {strings.NewReader("0123456789"), true},
		"byte by byte":                      {iotest.OneByteReader(strings.NewReader("0123456789")), true},
		"longer than it says":               {strings.NewReader("0123456789abc"), true},
		"nothing":                           {strings.NewReader(""), false},
		"the end comes early":               {strings.NewReader("01234"), false},
		"an error comes early":              {io.MultiReader(strings.NewReader("01234"), iotest.ErrReader(reset)), false},
		"an error comes after all bytes":    {io.MultiReader(strings.NewReader("0123456789"), iotest.ErrReader(reset)), false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			transport := &idem.Transport{Backoff: idem.Exponential(0, 0), Base: through(func(*http.Request) (*http.Response, error) {
				asked++
				body := c.body
				if asked > 1 {
					body = strings.NewReader("0123456789")
				}
				return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, ContentLength: length, Body: io.NopCloser(body)}, nil
			})}
			resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil))
			require.NoError(t, err)
			data, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, "0123456789", string(data))
			assert.Equal(t, c.whole, asked == 1, "it was asked %d times", asked)
		})
	}
}

// No limit at all is a limit as well.
func TestResponse_NoLimit(t *testing.T) {
	transport := &idem.Transport{MaxResponse: math.MaxInt64, Base: through(func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: http.StatusCreated, Header: h, ContentLength: -1, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})}
	resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil))
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "{}", string(data))
}

// A 503 whose body stops coming delays the next attempt by little, also if Base
// does not heed the context and only Close wakes its reader.
func TestResponse_DrainIsBounded(t *testing.T) {
	for name, length := range map[string]int64{"of known length": 10, "of unknown length": -1} {
		for _, limit := range []time.Duration{0, -1} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					asked := 0
					transport := &idem.Transport{
						AttemptTimeout: limit, Backoff: idem.Exponential(0, 0),
						Base: through(func(*http.Request) (*http.Response, error) {
							if asked++; asked > 1 {
								return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody}, nil
							}
							stalled, _ := io.Pipe()
							return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, ContentLength: length, Body: stalled}, nil
						}),
					}
					start := time.Now()
					resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil))
					require.NoError(t, err)
					assert.Equal(t, http.StatusCreated, resp.StatusCode)
					assert.Equal(t, 100*time.Millisecond, time.Since(start))
				})
			})
		}
	}
}

// A request whose body is still being sent, while its 503 stalls, does not make
// the drain longer.
func TestResponse_DrainUnderUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, gone := 0, make(chan struct{})
		uploading, stop := context.WithCancel(t.Context())
		defer stop()
		transport := &idem.Transport{MaxBody: -1, Backoff: idem.Exponential(0, 0), Base: through(func(r *http.Request) (*http.Response, error) {
			if asked++; asked > 1 {
				stop()
				return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody}, nil
			}
			go func() {
				defer close(gone)
				for uploading.Err() == nil {
					_, _ = r.Body.Read(make([]byte, 1))
					time.Sleep(50 * time.Millisecond)
				}
				r.Body.Close()
			}()
			stalled, _ := io.Pipe()
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, ContentLength: 10, Body: stalled}, nil
		})}
		req := postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil)
		req.ContentLength = 1000
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(new(endless), 1000)), nil }
		req.Body, _ = req.GetBody()
		start := time.Now()
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, http.StatusCreated, resp.StatusCode)
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
		<-gone
	})
}

// endless is a body that does not end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

// Of a body of unknown length only so much is read as its connection is worth.
func TestResponse_DrainIsShort(t *testing.T) {
	body := new(endless)
	transport := &idem.Transport{MaxAttempts: 2, Backoff: idem.Exponential(0, 0), Base: through(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(body)}, nil
	})}
	resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Positive(t, body.read)
	assert.Less(t, body.read, 128<<10)
}
