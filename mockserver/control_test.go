package mockserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// control makes one call of the control API and decodes the answer.
func control(t *testing.T, s *Server, call, body string, into any) int {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8081"
	w := httptest.NewRecorder()
	s.Control().ServeHTTP(w, r)
	if into != nil {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), into), "%s: %s", call, w.Body)
	}
	return w.Code
}

func TestControl(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		var script map[string]any
		require.Equal(t, 201, control(t, s, "POST /scripts", `{"on":"POST /orders","then":["reset@stored","hang@claimed"],"key":"k"}`, &script))
		assert.Equal(t, map[string]any{"id": 1., "on": "POST /orders", "key": "k", "then": []any{"reset@stored", "hang@claimed"}, "hits": 0., "unused": []any{"reset@stored", "hang@claimed"}}, script)
		require.Equal(t, 201, control(t, s, "POST /scripts", `{"sometimes":["418@received"],"p":1,"seed":3,"caller":"bot"}`, nil))
		require.Equal(t, 201, control(t, s, "POST /scripts", `{"on":"GET /never","always":"418@received"}`, nil))
		assert.Equal(t, 418, postOrder(t, c, s, "x", "{}", "X-Api-Key: bot").Status)

		c.CloseIdleConnections() // net/http would send again on a reused one
		require.Error(t, postOrder(t, c, s, "k", `{"amount":5}`).Err)
		var request requestDoc2
		require.Equal(t, 200, control(t, s, "GET /requests/2", "", &request))
		assert.Equal(t, "reset@stored", request.Fault)
		assert.Equal(t, "POST /orders", request.Script)
		assert.Equal(t, []met{{"reset", Stored, request.Met[0].At}}, request.Met)
		assert.JSONEq(t, `{"amount":5}`, request.Body)
		assert.True(t, request.Lost)

		time.Sleep(time.Second)
		assert.Equal(t, 201, postOrder(t, c, s, "k", `{"amount":5}`).Status, "a replay is not claimed, so it does not hang")
		require.Equal(t, 204, control(t, s, "POST /restart", `{"forget":true}`, nil))
		require.Equal(t, 201, control(t, s, "POST /scripts", `{"on":"POST /orders","then":["hang@claimed"],"key":"held"}`, nil))
		held := make(chan seen, 1)
		go func() { held <- postOrder(t, c, s, "held", "{}") }()
		require.Equal(t, 200, control(t, s, "GET /await?key=held&point=claimed&timeout=5s", "", &request))
		assert.Equal(t, "held", request.Key)
		var keys []map[string]any
		require.Equal(t, 200, control(t, s, "GET /keys", "", &keys))
		require.Len(t, keys, 3)
		assert.Equal(t, []any{"free", "free", "claimed"}, []any{keys[0]["state"], keys[1]["state"], keys[2]["state"]}, "forgotten, and at work")
		assert.Equal(t, []any{2., 2., 1.}, []any{keys[1]["requests"], keys[1]["attempts"], keys[1]["effects"]})
		var released map[string]int
		require.Equal(t, 200, control(t, s, "POST /release", `{"key":"nobody"}`, &released))
		assert.Zero(t, released["released"])
		require.Equal(t, 200, control(t, s, "POST /release", "", &released))
		assert.Equal(t, 1, released["released"])
		assert.Equal(t, 201, (<-held).Status)
		require.Equal(t, 504, control(t, s, "GET /await?key=held&n=2&timeout=1s", "", nil))

		require.Equal(t, 200, control(t, s, "GET /keys/held", "", &keys))
		assert.Equal(t, "stored", keys[0]["state"])
		assert.Equal(t, "{\"id\":\"2\"}\n", keys[0]["stored"].(map[string]any)["body"])
		var server map[string]any
		require.Equal(t, 200, control(t, s, "POST /advance", `{"by":"24h"}`, &server))
		assert.InDelta(t, 86400, server["ahead"], 0)
		require.Equal(t, 200, control(t, s, "GET /keys/held", "", &keys))
		assert.Equal(t, "expired", keys[0]["state"])

		var effects []map[string]any
		require.Equal(t, 200, control(t, s, "GET /effects?after=1", "", &effects))
		require.Len(t, effects, 1)
		assert.Equal(t, map[string]any{"id": "2"}, effects[0]["value"])
		require.Equal(t, 200, control(t, s, "GET /requests?key=k&after=2", "", &keys))
		assert.Len(t, keys, 1)

		require.Equal(t, 204, control(t, s, "POST /believe", `{"key":"k","belief":"notdone"}`, nil))
		var verdict struct {
			OK       bool        `json:"ok"`
			Breaches []breachDoc `json:"breaches"`
		}
		require.Equal(t, 200, control(t, s, "POST /verify", "", &verdict))
		assert.False(t, verdict.OK)
		kinds := []string{}
		for _, b := range verdict.Breaches {
			kinds = append(kinds, b.Kind)
		}
		assert.Equal(t, []string{"phantom", "unused", "unused"}, kinds)
		require.Equal(t, 204, control(t, s, "DELETE /scripts/3", "", nil))
		require.Equal(t, 404, control(t, s, "DELETE /scripts/3", "", nil))
		var scripts []scriptDoc
		require.Equal(t, 200, control(t, s, "GET /scripts", "", &scripts))
		assert.Equal(t, []int{1, 1, 1}, []int{scripts[0].Hits, scripts[1].Hits, scripts[2].Hits})

		require.Equal(t, 204, control(t, s, "DELETE /", "", nil))
		require.Equal(t, 200, control(t, s, "POST /verify", "", &verdict))
		assert.True(t, verdict.OK)
		assert.Empty(t, s.Requests(""))
		assert.JSONEq(t, `{"id":"1"}`, postOrder(t, c, s, "k", "{}").Body, "orders too begin anew")
		assert.Equal(t, 1, s.Requests("")[0].Seq)
	})
}

// A long body is cut between two characters, and stays text.
func TestTextIsCut(t *testing.T) {
	for _, c := range []string{"é", "€", "𝄞"} {
		for _, before := range []string{"", "a", "aa", "aaa"} {
			got := text([]byte(before + strings.Repeat(c, 40<<10)))
			assert.True(t, strings.HasPrefix(got, before+c) && strings.HasSuffix(got, c+"…"), "%.10q", got)
			assert.InDelta(t, 64<<10, len(got), 8)
		}
	}
}

// requestDoc2 is what a client reads of a request.
type requestDoc2 struct {
	Key, Fault, Script, Body string
	Met                      []met
	Lost                     bool
}

// A clean start while a request is held: it gets no answer, and leaves no trace.
func TestControlCleanWhileHeld(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		c.Transport.(*transport).base.DisableKeepAlives = true
		s.On("POST /orders").Then("hang@worked")
		got := make(chan error, 1)
		go func() { got <- postOrder(t, c, s, "k", "{}").Err }()
		require.NoError(t, s.Await(t.Context(), "k", 1, Worked))
		require.Equal(t, 204, control(t, s, "DELETE /", "", nil))
		require.Error(t, <-got)
		synctest.Wait()
		assert.Equal(t, 0, s.active)
		assert.Empty(t, s.Effects(""))
		assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
	})
}

func TestControlRefuses(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, _ *http.Client) {
		for _, row := range []struct {
			call, body, title string
			status            int
		}{
			{"POST /scripts", `{"then":["reset@stord"]}`, `right is reset@dial`, 400},
			{"POST /scripts", `{"always":"rset@stored"}`, `did you mean "reset"?`, 400},
			{"POST /scripts", `{"sometimes":["nope"],"p":1}`, `no action "nope"`, 400},
			{"POST /scripts", `{"on":"POST"}`, "host/path missing", 400},
			{"POST /scripts", `{"on":"/"}`, "without a fault", 400},
			{"POST /scripts", `{"sometimes":["pass"],"p":2}`, "a probability from 0 to 1", 400},
			{"POST /scripts", `{"p":1}`, "go together", 400},
			{"POST /scripts", `{"than":["pass"]}`, `unknown field "than"`, 400},
			{"POST /scripts", `{"then":["pass"],"scope":"a"}`, "right is ?scope=", 400},
			{"POST /scripts?scope=b", `{"then":["pass"],"scope":"a"}`, "right is ?scope=", 400},
			{"POST /scripts", `{"then":["alert@handshake"]}`, "no handshake without Config.TLS", 400},
			{"POST /scripts?scope=a", `{"then":["refuse@dial"]}`, "no dial to come", 400},
			{"POST /scripts", `[`, "the body of POST /scripts", 400},
			{"DELETE /scripts/x", "", "no script x", 404},
			{"GET /keys/nobody", "", `had the key "nobody"`, 404},
			{"GET /requests/7", "", "no request 7", 404},
			{"GET /await?point=somewhere", "", `no point "somewhere"; there are [dial`, 400},
			{"GET /await?n=x", "", "no number of an attempt", 400},
			{"GET /await?timeout=x", "", "right is 10s", 400},
			{"POST /advance", `{"by":"-1h"}`, `right is "24h"`, 400},
			{"POST /advance", "", "no time to go forward", 400},
			{"POST /release", `{"key":1}`, "the body", 400},
			{"POST /restart", `{"key":1}`, "the body", 400},
			{"POST /believe", `{"key":"k","belief":"maybe"}`, `"done" or "notdone"`, 400},
			{"POST /believe", `{`, "the body", 400},
		} {
			var problem struct {
				Title  string `json:"title"`
				Status int    `json:"status"`
			}
			assert.Equal(t, row.status, control(t, s, row.call, row.body, &problem), row.call)
			assert.Equal(t, row.status, problem.Status)
			assert.Contains(t, problem.Title, row.title)
			assert.NotContains(t, problem.Title, "\n")
		}
		assert.Empty(t, s.scripts)
	})
}

// A site in a browser on this machine can neither read nor change anything.
func TestControlGuards(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, _ *http.Client) {
		try := func(host string, set ...string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/verify", nil)
			r.Host = host
			for i := 0; i < len(set); i += 2 {
				r.Header.Set(set[i], set[i+1])
			}
			w := httptest.NewRecorder()
			s.Control().ServeHTTP(w, r)
			assert.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
			return w.Code
		}
		for _, host := range []string{"localhost", "LOCALHOST:8081", "127.0.0.1:8081", "[::1]:8081", "127.8.8.8"} {
			assert.Equal(t, 200, try(host), host)
		}
		for _, host := range []string{"evil.test:8081", "localhost.evil.test", "10.0.0.1", "", "0.0.0.0:8081"} {
			assert.Equal(t, 403, try(host), host)
		}
		assert.Equal(t, 403, try("localhost:8081", "Sec-Fetch-Site", "cross-site"))
		assert.Equal(t, 403, try("localhost:8081", "Origin", "http://evil.test"))
		assert.Equal(t, 200, try("localhost:8081", "Sec-Fetch-Site", "same-origin"))
	})
}
