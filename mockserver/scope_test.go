package mockserver

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMockFault(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("POST /orders").Then("418@received")
		require.Error(t, postOrder(t, c, s, "k", "{}", "Mock-Fault: drop@stored").Err)
		log := s.Requests("k")
		assert.Equal(t, Fault("drop@stored"), log[0].Fault)
		assert.NotContains(t, log[0].Header, "Mock-Fault", "the handler does not see it")
		assert.Equal(t, 418, postOrder(t, c, s, "k", "{}").Status, "the script waits for its turn")
		assert.Equal(t, "true", postOrder(t, c, s, "k", "{}").Header.Get("Idempotent-Replayed"))
		bad := postOrder(t, c, s, "k2", "{}", "Mock-Fault: drop@sotred")
		assert.Equal(t, 400, bad.Status)
		assert.Contains(t, bad.Body, `drop@stored`)
		assert.Equal(t, 400, postOrder(t, c, s, "k2", "{}", "Mock-Fault: drop@dial").Status, "too late for that")
		assert.Empty(t, s.Effects("k2"))
	})
}

func TestMockScope(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		require.Equal(t, 201, control(t, s, "POST /scripts?scope=a", `{"on":"POST /orders","then":["503@received"]}`, nil))
		var all sync.WaitGroup
		for scope, want := range map[string]int{"a": 503, "b": 201, "": 201} {
			all.Go(func() {
				headers := []string{"Mock-Scope: " + scope}
				if scope == "" {
					headers = nil
				}
				assert.Equal(t, want, postOrder(t, c, s, "k", `{"scope":"`+scope+`"}`, headers...).Status)
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		assert.Len(t, s.Requests(""), 1)
		for scope, effects := range map[string]int{"a": 0, "b": 1, "": 1} {
			var list []map[string]any
			require.Equal(t, 200, control(t, s, "GET /effects?key=k&scope="+scope, "", &list))
			assert.Len(t, list, effects, scope)
		}
		again := postOrder(t, c, s, "k", `{"scope":"b"}`, "Mock-Scope: b")
		assert.JSONEq(t, `{"id":"1","scope":"b"}`, again.Body, "ids count by scope")
		require.Equal(t, 200, control(t, s, "POST /advance?scope=b", `{"by":"25h"}`, nil))
		assert.JSONEq(t, `{"id":"2","scope":"b"}`, postOrder(t, c, s, "k", `{"scope":"b"}`, "Mock-Scope: b").Body, "so does the clock")
		assert.ErrorContains(t, s.Verify(), `mockserver: doubled: scope "b": key "k"`)
		require.Equal(t, 204, control(t, s, "POST /restart?scope=b", "", nil))
		require.Equal(t, 204, control(t, s, "DELETE /?scope=b", "", nil))
		assert.Equal(t, []string{"a"}, s.doc().Scopes)
		assert.NoError(t, s.Verify())
		for i := range maxScopes {
			if _, err := s.scoped(strings.Repeat("x", i+1)); err != nil {
				assert.Equal(t, maxScopes-1, i)
				assert.ErrorContains(t, err, "too many scopes")
			}
		}
		assert.Equal(t, 503, postOrder(t, c, s, "k", "{}", "Mock-Scope: more").Status)
		require.Equal(t, 204, control(t, s, "DELETE /", "", nil))
		assert.Empty(t, s.doc().Scopes)
	})
}

// A scope ends with its server, and by a clean start, whatever it holds.
func TestMockScopeEnds(t *testing.T) {
	for name, end := range map[string]func(*Server){
		"close": func(s *Server) { assert.NoError(t, s.Close()) },
		"scope": func(s *Server) { assert.Equal(t, 204, control(t, s, "DELETE /?scope=a", "", nil)) },
		"clean": func(s *Server) { s.clean() },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
				held := make(chan error, 1)
				go func() { held <- postOrder(t, c, s, "k", "{}", "Mock-Scope: a", "Mock-Fault: hang@worked").Err }()
				require.Equal(t, 200, control(t, s, "GET /await?scope=a&key=k&point=worked", "", nil))
				end(s)
				require.Error(t, <-held)
				if name != "close" {
					assert.Empty(t, s.doc().Scopes)
					assert.JSONEq(t, `{"id":"1"}`, postOrder(t, c, s, "k", "{}", "Mock-Scope: a").Body, "a new one of that name")
				}
			})
		})
	}
}
