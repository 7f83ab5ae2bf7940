package mockserver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body that is cut on the way is no other request.
func TestCutBodyIsNotAltered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t, Config{})
		c, err := s.Dial(t.Context(), "tcp", "")
		require.NoError(t, err)
		_, err = io.WriteString(c, "POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 12\r\n\r\n{\"am")
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, s.Restart())
		_ = c.Close()
		time.Sleep(time.Second)
		require.Equal(t, 201, postOrder(t, s.Client(), s, "k", `{"amount":1}`).Status)
		log := s.Requests("k")
		require.Len(t, log, 2)
		assert.Equal(t, `{"am`, string(log[0].Body), "as far as it came")
		assert.Empty(t, log[0].Print)
		assert.True(t, log[0].Left)
		require.Equal(t, 201, postOrder(t, s.Client(), s, "k2", `{"amount":2}`).Status)
		assert.NoError(t, s.Verify())
	})
}

// Restart right after the start: for the race detector.
func TestRestartAtOnce(t *testing.T) {
	for range 50 {
		s, err := Start(Config{Addr: "memory"})
		require.NoError(t, err)
		require.NoError(t, s.Restart())
		require.Equal(t, 201, postOrder(t, s.Client(), s, "k", "{}").Status)
		require.NoError(t, s.Close())
	}
}

// A broken answer still tells the status of the answer at hand.
func TestBrokenAnswersKeepTheirStatus(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, h2 := range []bool{false, true} {
		for _, f := range []Fault{"badchunk@body", "lengths@head"} {
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Long", long)
				w.WriteHeader(402)
				_, _ = io.WriteString(w, strings.Repeat("no", 10000))
			})
			in(t, Config{HTTP2: h2, Handler: handler}, func(t *testing.T, s *Server, c *http.Client) {
				s.On("POST /orders").Then("drop@stored", f)
				require.Error(t, postOrder(t, c, s, "k", "{}").Err)
				got := postOrder(t, c, s, "k", "{}")
				if f == "lengths@head" && !h2 {
					require.Error(t, got.Err)
					return
				}
				assert.Equal(t, 402, got.Status, f)
				assert.Equal(t, long, got.Header.Get("X-Long"))
				assert.Equal(t, "true", got.Header.Get("Idempotent-Replayed"))
				if f == "lengths@head" {
					assert.Equal(t, strings.Repeat("no", 10000), got.Body)
				}
			})
		}
	}
}
