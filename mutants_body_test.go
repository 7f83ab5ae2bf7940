package idem_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stream whose length is not what ContentLength says is the caller's fault: it
// is refused before anything is sent.
func TestBody_StreamOfAnotherLength(t *testing.T) {
	for _, length := range []int64{3, 9, 11, 2000} {
		bubble(t, func(t *testing.T, r *rig) {
			body := newCountedBody("0123456789")
			req := postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil)
			req.Body, req.GetBody, req.ContentLength = body, nil, length
			_, _, err := r.send(req)
			e := theError(t, err)
			assert.Zero(t, e.Attempts, "length %d", length)
			assert.Equal(t, idem.NotExecuted, e.Outcome)
			assert.Zero(t, r.count())
			assert.Equal(t, 1, body.closed())
		}, created)
	}
}

// Bind leaves a request that net/http can send twice: its GetBody is of the body
// that was read.
func TestBind_GetBody(t *testing.T) {
	req := postUnder(t, t.Context(), nil, "http://api/charges", io.MultiReader(strings.NewReader("0123456789")))
	require.Nil(t, req.GetBody)
	require.NoError(t, idem.Open().Bind(req))
	require.NotNil(t, req.GetBody)
	for range 2 {
		body, err := req.GetBody()
		require.NoError(t, err)
		data, err := io.ReadAll(body)
		require.NoError(t, err)
		assert.Equal(t, "0123456789", string(data))
	}
}

// What is sent once at most is not read into memory first: the first byte goes
// out before the last is there.
func TestBody_UnkeyedStreamIsNotBuffered(t *testing.T) {
	upload, pipe := io.Pipe()
	started := make(chan string, 1)
	transport := &idem.Transport{Base: through(func(r *http.Request) (*http.Response, error) {
		first := make([]byte, 5)
		_, err := io.ReadFull(r.Body, first)
		started <- string(first)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		r.Body.Close()
		return fine(r, http.NoBody), err
	})}
	go func() {
		_, _ = io.WriteString(pipe, "first")
		assert.Equal(t, "first", <-started)
		pipe.Close()
	}()
	req := postUnder(t, t.Context(), nil, "http://api/", upload)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	resp.Body.Close()
}

// JSON of unknown length that is longer than MaxResponse reaches the caller whole.
func TestResponse_LongJSONOfUnknownLength(t *testing.T) {
	for _, size := range []int{9, 10, 11, 12, 5000} {
		text := `"` + strings.Repeat("x", size-2) + `"`
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.MaxResponse = 10
			_, body, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
			assert.Equal(t, text, body)
			assert.Equal(t, 1, r.count())
		}, func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
			s.exec(h)
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, text)
		})
	}
}

// A body that is framed is whole when its frame is, whatever it holds: only one
// that the end of its connection delimits has to be valid JSON.
func TestResponse_FramedJSONNeedNotBeValid(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		resp, body, err := r.post(t.Context(), idem.Open(), "a")
		require.NoError(t, err)
		assert.Equal(t, []string{"chunked"}, resp.TransferEncoding)
		assert.Equal(t, `{"id":`, body)
		assert.Equal(t, 1, r.count())
	}, func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
		s.exec(h)
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, `{"id":`)
	})
}

// Where only the end of the connection delimits a body, what is not JSON, or in a
// coding that net/http leaves on, does not count as cut.
func TestResponse_WholeAlthoughNotJSON(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct{ header, body string }{
		"coded":             {"Content-Encoding: br\r\n", "\x0b\x02\x80{}\x03"},
		"coded, like a cut": {"Content-Encoding: br\r\n", `{"a":`},
		"byte order mark":   {"", "\ufeff{}"},
		"guarded":           {"", ")]}',\n{}"},
		"lines of JSON":     {"", "{}\n{}\n"},
		"NaN":               {"", `{"a":NaN}`},
		"HTML":              {"", "<html></html>"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				resp, body, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, c.body, body)
				assert.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
				assert.Equal(t, 1, r.count())
			}, raw(head+c.header+"\r\n"+c.body))
		})
	}
	for name, body := range map[string]string{"blanks before nothing": "\n\n", "a word": "tru", "the second line": "{}\n{\"a\""} {
		t.Run("cut: "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				_, body, err := r.post(t.Context(), idem.Open(), "a")
				require.NoError(t, err)
				assert.Equal(t, `{"id":"ch_1"}`, body)
				assert.Equal(t, 2, r.count())
			}, raw(head+"\r\n"+body), created)
		})
	}
}

// A Base in a test leaves ContentLength at 0, whatever the body: it is read all
// the same.
func TestResponse_WithoutContentLength(t *testing.T) {
	for _, media := range []string{"application/json", "text/plain", ""} {
		transport := &idem.Transport{Base: through(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: 201, ProtoMajor: 1, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(`{"id":"ch_1"}`)),
			}, nil
		})}
		resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/", nil))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(t, err)
		assert.Equal(t, `{"id":"ch_1"}`, string(text), media)

		client, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: transport})
		require.NoError(t, err)
		var out struct{ ID string }
		_, err = client.Call(t.Context(), idem.Open(), "POST", "/charges", 1, &out)
		require.NoError(t, err)
		assert.Equal(t, "ch_1", out.ID, media)
	}
}

// Of a discarded answer that is declared to be long nothing is read.
func TestResponse_LongOnesAreNotDrained(t *testing.T) {
	read := 0
	transport := &idem.Transport{Backoff: idem.Exponential(0, 0), MaxAttempts: 2, Base: through(func(r *http.Request) (*http.Response, error) {
		resp := fine(r, io.NopCloser(reader(func(p []byte) (int, error) { read += len(p); return len(p), nil })))
		resp.StatusCode, resp.ContentLength = 503, 10<<20
		if idem.AttemptNumber(r.Context()) == 2 {
			resp = fine(r, http.NoBody)
		}
		return resp, nil
	})}
	resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/", nil))
	require.NoError(t, err)
	resp.Body.Close()
	assert.Zero(t, read)
}

type reader func([]byte) (int, error)

func (f reader) Read(p []byte) (int, error) { return f(p) }

// A ContentLength that is smaller than what is left of a file cuts it, on every
// attempt.
func TestBody_FileIsCutByContentLength(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		file, err := os.Create(filepath.Join(t.TempDir(), "body"))
		require.NoError(t, err)
		_, err = file.WriteString("0123456789")
		require.NoError(t, err)
		_, err = file.Seek(2, io.SeekStart)
		require.NoError(t, err)
		req := postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil)
		req.Body, req.GetBody, req.ContentLength = file, nil, 5
		_, _, err = r.send(req)
		require.NoError(t, err)
		require.Equal(t, 2, r.count())
		assert.Equal(t, "23456", r.all()[0].body)
		r.oneKey()
	}, status(503), created)
}

// Each body that GetBody gives is closed once, also where the Base closes it and
// shows no trace.
func TestBody_GetBodysAreClosedOnce(t *testing.T) {
	var given []*countedBody
	get := func() (io.ReadCloser, error) {
		given = append(given, newCountedBody("a"))
		return given[len(given)-1], nil
	}
	transport := &idem.Transport{Backoff: idem.Exponential(0, 0), MaxAttempts: 3, MaxBody: -1, Base: through(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
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

// An answer that is longer than MaxResponse, and an event stream of whatever
// length, is handed over with its head.
func TestResponse_PassesThrough(t *testing.T) {
	for name, c := range map[string]struct {
		media string
		most  int64
		waits bool
	}{
		"short":           {"text/plain", 10, true},
		"long":            {"text/plain", 9, false},
		"an event stream": {"text/event-stream; charset=utf-8", 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxResponse = c.most
				start := time.Now()
				resp, err := r.client().Do(postUnder(t, t.Context(), idem.Open(), "http://api/charges", nil))
				require.NoError(t, err)
				defer resp.Body.Close()
				assert.Equal(t, c.waits, time.Since(start) > 5*time.Second, "it took %v", time.Since(start))
				data, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				assert.Equal(t, "0123456789", string(data))
			}, func(s *server, w http.ResponseWriter, _ *http.Request, h hit) {
				s.exec(h)
				w.Header().Set("Content-Type", c.media)
				w.Header().Set("Content-Length", "10")
				_, _ = io.WriteString(w, "01234")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Second)
				_, _ = io.WriteString(w, "56789")
			})
		})
	}
}
