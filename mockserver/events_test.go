package mockserver

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stream collects what an event stream writes.
type stream struct {
	*httptest.ResponseRecorder

	mu  sync.Mutex
	out bytes.Buffer
}

func (w *stream) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// events takes what was written so far: the names of the events, and the data.
func (w *stream) events() (names, data []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for block := range strings.SplitSeq(w.out.String(), "\n\n") {
		if name, d, ok := strings.Cut(block, "\ndata: "); ok {
			names, data = append(names, strings.TrimPrefix(name, "event: ")), append(data, d)
		}
	}
	w.out.Reset()
	return names, data
}

// kinds are the names, each once: a request may be told more than once on its way.
func kinds(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func TestEvents(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		postOrder(t, c, s, "before", "{}")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", nil)
		r.Host = "localhost"
		w := &stream{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan bool)
		go func() { s.Control().ServeHTTP(w, r); close(ended) }()
		beats := func() { time.Sleep(2 * time.Second); synctest.Wait() }
		beats()
		names, _ := w.events()
		assert.Equal(t, []string{"breaches", "clean", "effect", "key", "request", "scripts", "server"}, kinds(names), "what has been")

		s.On("POST /orders").Key("k").Then("hang@claimed")
		beats()
		names, data := w.events()
		assert.Equal(t, []string{"breaches", "scripts"}, kinds(names))
		assert.Contains(t, data[len(data)-1], "unused")
		go postOrder(t, c, s, "k", "{}")
		beats()
		names, data = w.events()
		assert.Equal(t, []string{"breaches", "key", "request", "scripts"}, kinds(names))
		assert.Contains(t, data[len(data)-1], "unfinished")
		s.Release("k")
		beats()
		names, _ = w.events()
		assert.Equal(t, []string{"breaches", "effect", "key", "request"}, kinds(names), "the same request, moved on")
		s.Advance(25 * time.Hour)
		beats()
		names, data = w.events()
		assert.Equal(t, []string{"key", "server"}, kinds(names))
		assert.Contains(t, data[len(data)-1], "expired")
		beats()
		names, _ = w.events()
		assert.Empty(t, names, "nothing happens")
		s.clean()
		beats()
		names, _ = w.events()
		assert.Equal(t, []string{"breaches", "clean", "scripts", "server"}, kinds(names))
		time.Sleep(time.Minute)
		w.mu.Lock()
		assert.Contains(t, w.out.String(), ":\n\n", "a sign of life")
		w.mu.Unlock()
		require.NoError(t, s.Close())
		<-ended
	})
}

func TestWatch(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("POST /orders").Key("b").Then("reset@stored")
		postOrder(t, c, s, "a", "{}")
		var got []string
		ended := make(chan bool)
		go func() {
			defer close(ended)
			for r := range s.Watch(t.Context()) {
				got = append(got, r.Key+r.Scope+string(r.Answer))
			}
		}()
		synctest.Wait()
		postOrder(t, c, s, "b", "{}")
		postOrder(t, c, s, "c", "{}", "Mock-Scope: x")
		synctest.Wait()
		require.NoError(t, s.Close())
		<-ended
		assert.Equal(t, []string{"afresh", "b", "breplayed", "cxfresh"}, got)
		for range s.Watch(t.Context()) {
			break // and a reader may leave at any time
		}
	})
}
