package mockserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Many streams at once on one connection, each ended with a code of its own:
// none is mixed up, and those between them are answered.
func TestStreamsAreNotMixedUp(t *testing.T) {
	for _, c := range []Config{{HTTP2: true}, {HTTP2: true, TLS: true}, {HTTP2: true, Addr: "127.0.0.1:0"}} {
		s := New(t, c)
		codes := []int{0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13}
		for _, code := range codes {
			s.On(fmt.Sprintf("POST /end/%d", code)).Always(Fault(fmt.Sprintf("abort@stored code=%d", code)))
			s.On(fmt.Sprintf("POST /half/%d", code)).Always(Fault(fmt.Sprintf("abort@body after=5 code=%d", code)))
		}
		client := s.Client()
		require.Equal(t, 404, send(t.Context(), client, "GET", s.URL+"/orders/0", "").Status, "one connection for all")
		var all sync.WaitGroup
		for i := range 360 {
			code := codes[i%len(codes)]
			all.Go(func() {
				path := []string{"end", "half", "orders"}[i/len(codes)%3]
				url := s.URL + "/orders"
				if path != "orders" {
					url = fmt.Sprintf("%s/%s/%d", s.URL, path, code)
				}
				got := send(t.Context(), client, "POST", url, "{}")
				switch path {
				case "orders":
					assert.Equal(t, 201, got.Status)
					assert.NoError(t, got.Err)
				case "half":
					assert.Len(t, got.Body, 5)
					fallthrough
				default:
					var stream StreamError
					if assert.ErrorAs(t, got.Err, &stream) {
						assert.Equal(t, uint32(code), stream.Code)
					}
				}
			})
		}
		all.Wait()
		conns := map[int]int{}
		for _, r := range s.Requests("") {
			conns[r.Conn]++
			assert.NotContains(t, r.Header, streamHeader)
			assert.NotContains(t, r.Header, stampHeader)
		}
		assert.Greater(t, conns[1], 100, "at once on one connection")
	}
}

// What a handler sees is the request, and nothing of the server's own.
func TestHandlerSees(t *testing.T) {
	networks(t, func(t *testing.T, c Config) {
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.NotContains(t, r.Header, stampHeader)
			assert.NotContains(t, r.Header, streamHeader)
			assert.Equal(t, c.TLS, r.TLS != nil)
			fmt.Fprintf(w, "%s %s %s %s %d %s", r.Method, r.Host, r.URL, r.Header.Get("X-A"), len(b), r.Trailer.Get("X-T"))
		})
		s := New(t, c)
		req, err := http.NewRequestWithContext(t.Context(), "POST", strings.Replace(s.URL, "mock.test", "any.example", 1)+"/a?b=c", io.MultiReader(strings.NewReader(strings.Repeat("x", 100000))))
		require.NoError(t, err)
		req.Header.Set("X-A", strings.Repeat("long", 5000)) // CONTINUATION frames
		req.Header["Empty"] = nil
		req.Trailer = http.Header{"X-T": {"trailer"}}
		before := req.Header.Clone()
		resp, err := s.Client().Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("POST %s /a?b=c %s 100000 trailer", req.URL.Host, strings.Repeat("long", 5000)), string(b))
		assert.Equal(t, before, req.Header, "the caller's request is not touched")
		assert.Same(t, req, resp.Request)
		wantProto := "HTTP/1.1"
		if c.HTTP2 {
			wantProto = "HTTP/2.0"
		}
		assert.Equal(t, wantProto, s.Requests("")[0].Proto)
	})
}

// HTTP/1.1 still works where HTTP/2 is spoken.
func TestBothProtocols(t *testing.T) {
	s := New(t, Config{HTTP2: true})
	plain := &http.Client{Transport: &http.Transport{DialContext: s.Dial, DisableKeepAlives: true}}
	got := postOrder(t, plain, s, "k", "{}")
	assert.Equal(t, 201, got.Status)
	assert.Equal(t, 201, postOrder(t, s.Client(), s, "k", "{}").Status)
	assert.Equal(t, []string{"HTTP/1.1", "HTTP/2.0"}, []string{s.Requests("k")[0].Proto, s.Requests("k")[1].Proto})
}

// A stream flows while its handler runs, where no answer is kept.
func TestStreaming(t *testing.T) {
	networks(t, func(t *testing.T, c Config) {
		next := make(chan string)
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for event := range next {
				_, _ = io.WriteString(w, event)
				assert.NoError(t, http.NewResponseController(w).Flush())
			}
			_, _ = io.WriteString(w, "end")
		})
		s := New(t, c)
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
		require.NoError(t, err)
		go func() { next <- "one" }()
		resp, err := s.Client().Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b := make([]byte, 3)
		_, err = io.ReadFull(resp.Body, b)
		require.NoError(t, err)
		assert.Equal(t, "one", string(b), "before the handler has returned")
		next <- "two"
		close(next)
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "twoend", string(rest))
	})
}

// Behind a foreign http.Server the faults that a handler can make still hold.
func TestServeHTTP(t *testing.T) {
	s := New(t, Config{})
	s.On("POST /orders").Then("drop@stored", "503@received")
	m := newMemory()
	foreign := &http.Server{Handler: s}
	go func() { _ = foreign.Serve(m) }()
	defer foreign.Close()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer(m)}}
	assert.ErrorIs(t, postOrder(t, c, s, "k", "{}").Err, io.EOF)
	assert.Equal(t, 503, postOrder(t, c, s, "k", "{}").Status)
	assert.Equal(t, "true", postOrder(t, c, s, "k", "{}").Header.Get("Idempotent-Replayed"))
	assert.Len(t, s.Effects("k"), 1)
}

// Whatever a client sends, in whatever pieces, it passes whole, but for the header
// that is added to requests.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 3)
	f.Add([]byte(preface[:10]), 1)
	f.Add(append([]byte(preface), frame(settings, endStream, 0, nil)...), 5)
	f.Add(append([]byte(preface), headers(1, endStream|padded, []byte{200, 1, 2})...), 7)
	f.Add(append([]byte(preface), headers(1, padded, nil)...), 7)
	f.Add(append([]byte(preface), append(frame(headersFrame, 0, 3, literal(":status", "200")), frame(continuation, endHeaders, 3, []byte("x"))...)...), 100)
	f.Fuzz(func(t *testing.T, sent []byte, piece int) {
		if piece < 1 {
			return
		}
		fr := newFrames(&conn{s: &Server{heads: map[headID]head{}}})
		var got []byte
		for rest := sent; len(rest) > 0; {
			n := min(piece, len(rest))
			fr.in = append(fr.in, rest[:n]...)
			rest = rest[n:]
			fr.take()
			got = append(got, fr.out...)
			fr.out = nil
		}
		got = append(got, fr.in...)
		field := "mock-stream"
		if len(got) < len(sent) || !bytes.Contains(got, []byte(field)) && !bytes.Equal(got, sent) {
			t.Fatalf("%q became %q", sent, got)
		}
	})
}
