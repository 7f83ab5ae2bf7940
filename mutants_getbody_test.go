package idem_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body that is longer than MaxBody is sent again by its GetBody, whether or not
// its length is known.
func TestBody_GetBodyOfALongBody(t *testing.T) {
	const text = "0123456789012345"
	for _, length := range []int64{int64(len(text)), -1} {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxBody = 10
			in := idem.Open()
			req := postUnder(t, t.Context(), in, "http://api/charges", nil)
			body := newCountedBody(text)
			req.Body, req.ContentLength = body, length
			req.GetBody = func() (io.ReadCloser, error) { return newCountedBody(text), nil }
			_, _, err := r.send(req)
			require.NoError(t, err)
			require.Equal(t, 2, r.count(), "length %d", length)
			assert.Equal(t, text, r.all()[0].body)
			r.oneKey()
			assert.Equal(t, 1, body.closed())
		}, status(503), created)
	}
}

// Without a key nothing has to be compared: a body with GetBody goes out as it
// comes, and is not read into memory before.
func TestBody_UnkeyedGetBodyIsNotBuffered(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		started := make(chan struct{})
		upload, pipe := io.Pipe()
		go func() {
			_, _ = io.WriteString(pipe, "first")
			<-started
			pipe.Close()
		}()
		base := r.transport.Base
		r.transport.Base = through(func(req *http.Request) (*http.Response, error) {
			if idem.AttemptNumber(req.Context()) == 1 {
				close(started)
			}
			return base.RoundTrip(req)
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://api/charges", upload)
		require.NoError(t, err)
		req.ContentLength = -1
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("first")), nil }
		_, _, err = r.send(req)
		require.NoError(t, err)
		require.Equal(t, 2, r.count())
		assert.Equal(t, "first", r.all()[0].body)
		assert.Equal(t, "first", r.all()[1].body)
	}, status(503), created)
}

// A GetBody that gives neither a body nor an error is no reason to panic.
func TestBody_GetBodyGivesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxBody = -1
		in := idem.Open()
		req := postUnder(t, t.Context(), in, "http://api/charges", nil)
		req.Body = newCountedBody("a")
		req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
		assert.NotPanics(t, func() { _, _, _ = r.send(req) })
		assert.LessOrEqual(t, r.count(), 1, "no other body goes out under the key")
		for _, h := range r.all() {
			assert.Equal(t, "a", h.body)
		}
	}, status(503), created)
}

// A GetBody that gives something else later is found out before the last byte of
// it is sent, and one that fails ends the call: nothing is asked again after it.
func TestBody_LongGetBodyLies(t *testing.T) {
	const text = "0123456789"
	errGone := errors.New("the body is gone")
	for name, c := range map[string]struct {
		later string
		err   error // comes after it
		want  error
	}{
		"other bytes":  {"012345678x", nil, idem.ErrNotRepeatable},
		"longer":       {text + "x", nil, idem.ErrNotRepeatable},
		"shorter":      {text[:9], nil, idem.ErrNotRepeatable},
		"a read error": {"012", errGone, errGone},
		"an error":     {"", errGone, errGone},
	} {
		for _, length := range []int64{10, -1} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxBody = 5
					in := idem.Open()
					req := postUnder(t, t.Context(), in, "http://api/charges", nil)
					given := 0
					req.Body, req.ContentLength = newCountedBody(text), length
					req.GetBody = func() (io.ReadCloser, error) {
						given++
						switch {
						case given == 1: // for the comparison
							return newCountedBody(text), nil
						case c.later == "":
							return nil, c.err
						case c.err != nil:
							return io.NopCloser(io.MultiReader(strings.NewReader(c.later), iotest.ErrReader(c.err))), nil //nolint:nilerr // it comes with the reading
						}
						return newCountedBody(c.later), nil
					}
					_, _, err := r.send(req)
					require.ErrorIs(t, err, c.want)
					assert.Equal(t, 2, theError(t, err).Attempts)
					for _, h := range r.all() {
						assert.Equal(t, text, h.body)
					}
				}, status(503))
			})
		}
	}
}

// A Base that shows no trace and forgets to close the body does not leak it.
func TestBody_ForgottenByTheBase(t *testing.T) {
	var given []*countedBody
	get := func() (io.ReadCloser, error) {
		given = append(given, newCountedBody("a"))
		return given[len(given)-1], nil
	}
	transport := &idem.Transport{Backoff: idem.Exponential(0, 0), MaxAttempts: 3, MaxBody: -1, Base: through(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})}
	req := postUnder(t, t.Context(), idem.Open(), "http://api/", nil)
	req.Body, _ = get()
	req.GetBody = get
	_, err := transport.RoundTrip(req)
	require.ErrorIs(t, err, idem.ErrExhausted)
	require.GreaterOrEqual(t, len(given), 3)
	for i, body := range given {
		assert.Equal(t, 1, body.closed(), "body %d of %d", i+1, len(given))
	}
}
