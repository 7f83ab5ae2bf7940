package mockserver

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request is in the log from its first byte on, and begins with it.
func TestLogFromTheFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, Config{})
		c := connect(t, s)
		synctest.Wait()
		assert.Empty(t, s.Requests(""), "a connection is no request")

		first := time.Now()
		feed(t, c, "P")
		require.Len(t, s.Requests(""), 1)
		assert.Equal(t, Request{Conn: 1, Start: first, Points: map[Point]time.Time{}}, s.Requests("")[0])
		var docs []map[string]any
		require.Equal(t, 200, control(t, s, "GET /requests", "", &docs))
		require.Len(t, docs, 1)
		assert.Equal(t, []any{0., ""}, []any{docs[0]["seq"], docs[0]["method"]})

		time.Sleep(time.Second)
		feed(t, c, "OST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{")
		require.Len(t, s.Requests(""), 1, "the head is whole, the body is not")
		r := s.Requests("k")[0]
		assert.Equal(t, 1, r.Seq)
		assert.Equal(t, first, r.Start)
		assert.Empty(t, r.Points)

		time.Sleep(time.Second)
		feed(t, c, "}")
		assert.Equal(t, first.Add(2*time.Second), s.Requests("k")[0].Points[Received])
		assert.Equal(t, 201, s.Requests("k")[0].Status)

		time.Sleep(time.Minute)
		feed(t, c, "G")
		list := s.Requests("")
		require.Len(t, list, 2)
		assert.Equal(t, time.Now(), list[1].Start, "not the time of the last answer")
		assert.True(t, list[1].Reused)
	})
}

// What never becomes a whole head is in the log once it has ended.
func TestLogOfHeadsThatDoNotComeWhole(t *testing.T) {
	const head = "POST /orders HTTP/1.1\r\nHo"
	for _, tt := range []struct {
		name string
		sent string
		end  func(t *testing.T, s *Server, c net.Conn)
		want Request
	}{
		{"client closes", head, func(_ *testing.T, _ *Server, c net.Conn) { _ = c.Close() }, Request{Left: true}},
		{"client resets", head, func(_ *testing.T, _ *Server, c net.Conn) { reset(c) }, Request{Left: true}},
		{"server restarts", head, func(t *testing.T, s *Server, _ net.Conn) { require.NoError(t, s.Restart()) }, Request{}},
		{"not HTTP", "what is this\r\n\r\n", nil, Request{Status: 400, Answer: Refused}},
		{"no Host", "POST / HTTP/1.1\r\n\r\n", nil, Request{Status: 400, Answer: Refused}},
		{"a version of the future", "POST / HTTP/3.0\r\nHost: x\r\n\r\n", nil, Request{Status: 505, Answer: Refused}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(t, Config{})
				c := connect(t, s)
				feed(t, c, tt.sent)
				if tt.end != nil {
					require.Zero(t, s.Requests("")[0].Seq)
					tt.end(t, s, c)
					synctest.Wait()
				} else {
					_, err := io.ReadAll(c)
					require.NoError(t, err)
				}
				list := s.Requests("")
				require.Len(t, list, 1)
				got := list[0]
				assert.Equal(t, 1, got.Seq)
				assert.Equal(t, 1, got.Conn)
				assert.Empty(t, got.Method)
				assert.False(t, got.Start.IsZero() || got.End.IsZero())
				assert.Equal(t, tt.want, Request{Status: got.Status, Answer: got.Answer, Left: got.Left})
				require.NoError(t, s.Verify())

				require.Equal(t, 201, postOrder(t, s.Client(), s, "k", "{}").Status)
				assert.Equal(t, 2, s.Requests("k")[0].Seq)
			})
		})
	}
}

// What http.Server refuses on a connection that was used before is its refusal, and
// not a client that left: the end of each answer ends a read by a deadline.
func TestLogOfARefusalOnAReusedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, Config{})
		c := connect(t, s)
		for range 2 {
			feed(t, c, "GET /orders HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		feed(t, c, "GET /orders HTTP/1.1\r\n\r\n") // without a Host
		list := s.Requests("")
		require.Len(t, list, 3)
		last := list[2]
		assert.Equal(t, []any{3, true, 400, Refused, false}, []any{last.Seq, last.Reused, last.Status, last.Answer, last.Left})
	})
}

// A stream of HTTP/2 begins with its first frame, and one that http.Server does
// not accept is logged as well.
func TestLogOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, Config{HTTP2: true})
		c := connect(t, s)
		head := headers(1, 0, literal(":method", "POST"))
		feed(t, c, preface+string(frame(settings, 0, 0, nil))+string(head[:len(head)-3]))
		require.Len(t, s.Requests(""), 1, "a frame that is not whole")
		assert.Zero(t, s.Requests("")[0].Seq)

		// Without a path it is no request: http.Server resets the stream.
		feed(t, c, string(head[len(head)-3:]))
		list := s.Requests("")
		require.Len(t, list, 1)
		assert.Equal(t, Request{Seq: 1, Conn: 1, Start: list[0].Start, End: list[0].Start, Points: map[Point]time.Time{}},
			Request{Seq: list[0].Seq, Conn: 1, Start: list[0].Start, End: list[0].End, Points: list[0].Points})
		assert.False(t, list[0].Left)

		feed(t, c, string(frame(headersFrame, 0, 3, nil)))
		require.Len(t, s.Requests(""), 2, "its continuation has not come")
		require.NoError(t, c.Close())
		synctest.Wait()
		assert.True(t, s.Requests("")[1].Left)
		assert.Equal(t, 2, s.Requests("")[1].Seq)
	})
}

// What a hijacker reads is no request.
func TestUpgradedConnectionIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
			}
		})})
		c := connect(t, s)
		feed(t, c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
		feed(t, c, "hello")
		b := make([]byte, 5)
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(b))
		assert.Len(t, s.Requests(""), 1)
		require.NoError(t, c.Close())
	})
}

func connect(t *testing.T, s *Server) net.Conn {
	c, err := s.Dial(t.Context(), "tcp", "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// feed writes and waits until the server has seen it.
func feed(t *testing.T, c net.Conn, b string) {
	_, err := io.WriteString(c, b)
	require.NoError(t, err)
	synctest.Wait()
}

// What a fault at Dial takes has not reached the server, whatever runs on it.
func TestDialFaultsAreNotLogged(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		in(t, Config{HTTP2: h2}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("drop@dial", "reset@dial")
			for range 2 {
				require.Error(t, postOrder(t, c, s, "k", "{}").Err)
			}
			assert.Empty(t, s.Requests(""))
		})
	}
}
