package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntentBind(t *testing.T) {
	const text = "order=1"
	bodies := map[string]func(t *testing.T) io.Reader{
		"strings.Reader": func(*testing.T) io.Reader { return strings.NewReader(text) },
		"bytes.Reader":   func(*testing.T) io.Reader { return bytes.NewReader([]byte(text)) },
		"bytes.Buffer":   func(*testing.T) io.Reader { return bytes.NewBufferString(text) },
		"stream":         func(*testing.T) io.Reader { return newCountedBody(text) },
		"file": func(t *testing.T) io.Reader {
			name := filepath.Join(t.TempDir(), "body")
			require.NoError(t, os.WriteFile(name, []byte("skipped "+text), 0o600))
			f, err := os.Open(name)
			require.NoError(t, err)
			_, err = f.Seek(int64(len("skipped ")), io.SeekStart)
			require.NoError(t, err)
			return f
		},
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				post := func(in *idem.Intent, b io.Reader) *http.Request {
					req, err := http.NewRequestWithContext(idem.WithIntent(context.Background(), in), "POST", "http://api/charges", b)
					require.NoError(t, err)
					return req
				}
				b := body(t)
				req := post(in, b)
				require.NoError(t, in.Bind(req))
				require.NoError(t, in.Bind(req), "once more")
				require.NoError(t, in.Bind(post(in, strings.NewReader(text))), "the same in another form")
				assert.Equal(t, idem.NotExecuted, in.Outcome())
				assert.Zero(t, r.count())
				s := in.State()
				assert.NotEmpty(t, s.Fingerprint)
				assert.Zero(t, s.FirstSent)
				assert.ErrorIs(t, in.Bind(post(in, strings.NewReader("order=2"))), idem.ErrIntentReused)
				assert.Equal(t, s.Fingerprint, in.State().Fingerprint, "a refused Bind changes nothing")

				_, _, err := r.send(req)
				require.NoError(t, err)
				assert.Equal(t, text, r.all()[0].body)
				if c, ok := b.(*countedBody); ok {
					assert.Equal(t, 1, c.closed(), "closes of the caller's body")
				}
				if f, ok := b.(*os.File); ok {
					assert.ErrorIs(t, f.Close(), os.ErrClosed)
				}
				assert.Equal(t, s.Fingerprint, in.State().Fingerprint)
				again, err := idem.Resume(s, nil)
				require.NoError(t, err)
				assert.ErrorIs(t, again.Bind(post(again, strings.NewReader("order=2"))), idem.ErrIntentReused)
				_, _, err = r.send(post(again, strings.NewReader("order=2")))
				assert.ErrorIs(t, err, idem.ErrIntentReused)
				_, _, err = r.send(post(again, strings.NewReader(text)))
				require.NoError(t, err)
				assert.Equal(t, 2, r.count())
				assert.Equal(t, 1, r.done())
			}, created)
		})
	}
	t.Run("after the first send", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, text)
			require.NoError(t, err)
			req := newRequest(t, in, "POST", "http://api/charges", "order=2")
			assert.ErrorIs(t, in.Bind(req), idem.ErrIntentReused)
			data, err := io.ReadAll(req.Body)
			require.NoError(t, err)
			assert.Equal(t, "order=2", string(data), "still to be sent, by another Intent")
			require.NoError(t, in.Bind(newRequest(t, in, "POST", "http://api/charges", text)))
			assert.NotEmpty(t, in.State().Fingerprint)
		}, created)
	})
	t.Run("a body too long", func(t *testing.T) {
		long := strings.Repeat("x", 1<<20+5)
		req := newRequest(t, nil, "POST", "http://api/charges", "")
		req.Body = &countedBody{Reader: strings.NewReader(long)}
		req.ContentLength = -1
		in := idem.Open()
		err := in.Bind(req)
		assert.ErrorIs(t, err, idem.ErrNotRepeatable)
		assert.Empty(t, in.State().Fingerprint)
		// The request must not go out without its beginning: either the body is
		// whole, or it cannot be read any more.
		data, err := io.ReadAll(req.Body)
		if err == nil {
			assert.Len(t, data, len(long))
		}
		require.NoError(t, in.Bind(newRequest(t, nil, "POST", "http://api/charges", text)), "it is still free")
	})
	t.Run("a body that fails", func(t *testing.T) {
		req := newRequest(t, nil, "POST", "http://api/charges", "")
		gone := errors.New("gone")
		req.Body = &countedBody{Reader: io.MultiReader(strings.NewReader("x"), failingReader{gone})}
		req.ContentLength = -1
		in := idem.Open()
		assert.ErrorIs(t, in.Bind(req), gone)
		require.NoError(t, in.Bind(newRequest(t, nil, "POST", "http://api/charges", text)), "it is still free")
	})
	t.Run("nothing to bind", func(t *testing.T) {
		assert.Error(t, idem.Open().Bind(nil))
		assert.Error(t, idem.Open().Bind(&http.Request{}))
	})
	t.Run("no body", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			req := newRequest(t, in, "DELETE", "http://api/charges/1", "")
			require.NoError(t, in.Bind(req))
			assert.NotEmpty(t, in.State().Fingerprint)
			_, _, err := r.send(req)
			require.NoError(t, err)
			_, _, err = r.send(newRequest(t, in, "DELETE", "http://api/charges/2", ""))
			assert.ErrorIs(t, err, idem.ErrIntentReused)
		}, created)
	})
	t.Run("concurrently", func(t *testing.T) {
		in := idem.Open()
		var mu sync.Mutex
		bound := map[string]int{}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				body := fmt.Sprint("order=", i%2)
				if err := in.Bind(newRequest(t, nil, "POST", "http://api/charges", body)); err == nil {
					mu.Lock()
					bound[body]++
					mu.Unlock()
				} else {
					assert.ErrorIs(t, err, idem.ErrIntentReused)
				}
			})
		}
		wg.Wait()
		assert.Len(t, bound, 1)
	})
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A long stream cannot be compared with the request of a State. It is not said to
// be another, for which the caller would open a new Intent.
func TestIntentBind_ResumedWithAStream(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxBody = 4
		opened := idem.Open()
		require.NoError(t, opened.Bind(keyedPost(t, nil, "http://api/x", strings.NewReader("hello"))))
		in, err := idem.Resume(opened.State(), nil)
		require.NoError(t, err)
		_, _, err = r.send(keyedPost(t, in, "http://api/x", newOpaque("hello")))
		require.ErrorIs(t, err, idem.ErrNotRepeatable)
		require.NotErrorIs(t, err, idem.ErrIntentReused)
		require.Equal(t, idem.OutcomeUnknown, in.Outcome())
		require.Zero(t, r.count())
		_, _, err = r.send(keyedPost(t, in, "http://api/x", strings.NewReader("hello")))
		require.NoError(t, err)
	}, created)
}
