package idem_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
