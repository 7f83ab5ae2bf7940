package mockserver

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

// in runs f with a server in a bubble.
func in(t *testing.T, c Config, f func(t *testing.T, s *Server, client *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(t, c)
		f(t, s, s.Client())
	})
}

func TestReplay(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		first := postOrder(t, c, s, "k", `{"amount":500}`)
		again := postOrder(t, c, s, "k", `{"amount":500}`)
		require.Equal(t, 201, first.Status)
		assert.JSONEq(t, `{"amount":500,"id":"1"}`, first.Body)
		assert.Empty(t, first.Header.Get("Idempotent-Replayed"))
		assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		assert.Equal(t, first.Status, again.Status)
		assert.Equal(t, first.Body, again.Body)
		assert.Equal(t, "/orders/1", again.Header.Get("Location"), "headers are stored too")
		require.Len(t, s.Effects("k"), 1)
		e := s.Effects("k")[0]
		assert.Equal(t, Effect{Seq: 1, Request: 1, Key: "k", Name: "order", Value: e.Value, At: e.At}, e)
		log := s.Requests("k")
		assert.Equal(t, []Answer{Fresh, Replayed}, []Answer{log[0].Answer, log[1].Answer})
		for _, p := range points()[2:] {
			assert.Contains(t, log[0].Points, p)
		}
		assert.NotContains(t, log[1].Points, Claimed, "a replay claims nothing")
		require.NoError(t, s.Verify())
	})
}

func TestScopes(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		for i, credential := range []string{"Authorization: Bearer a", "Authorization: Bearer b", "X-Api-Key: c", "Authorization: naked"} {
			got := postOrder(t, c, s, "k", "{}", credential)
			assert.Equal(t, 201, got.Status, "the same key of another caller is another key")
			assert.Empty(t, got.Header.Get("Idempotent-Replayed"))
			assert.Len(t, s.Effects("k"), i+1)
		}
		assert.Equal(t, []string{"a", "b", "c", "naked"}, []string{
			s.Effects("k")[0].Caller, s.Effects("k")[1].Caller, s.Effects("k")[2].Caller, s.Effects("k")[3].Caller,
		})
		list := send(t.Context(), c, http.MethodGet, s.URL+"/orders", "", "Authorization: Bearer b")
		assert.JSONEq(t, `{"data":[{"id":"2"}]}`, list.Body, "a caller sees its own orders")
		require.NoError(t, s.Verify(), "four callers, four effects")
	})
}

func TestMismatch(t *testing.T) {
	for name, second := range map[string]struct{ method, path, body string }{
		"body":   {"POST", "/orders", `{"amount":2}`},
		"path":   {"POST", "/refunds", `{"amount":1}`},
		"query":  {"POST", "/orders?x=1", `{"amount":1}`},
		"method": {"PUT", "/orders", `{"amount":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
				require.Equal(t, 201, postOrder(t, c, s, "k", `{"amount":1}`).Status)
				got := send(t.Context(), c, second.method, s.URL+second.path, second.body, "Idempotency-Key: k")
				assert.Equal(t, 422, got.Status)
				assert.Equal(t, "application/problem+json", got.Header.Get("Content-Type"))
				assert.JSONEq(t, `{"type":"about:blank","title":"This key is already used with another request","status":422}`, got.Body)
				assert.Len(t, s.Effects(""), 1)
				assert.Equal(t, Mismatched, s.Requests("k")[1].Answer)
				assert.ErrorContains(t, s.Verify(), "altered: key \"k\"")
			})
		})
	}
	t.Run("loose", func(t *testing.T) {
		in(t, Config{Kind: Kind{Loose: true}}, func(t *testing.T, s *Server, c *http.Client) {
			first := postOrder(t, c, s, "k", `{"amount":1}`)
			assert.Equal(t, first.Body, postOrder(t, c, s, "k", `{"amount":2}`).Body, "the old answer for a new request")
		})
	})
}

func TestInProgress(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("POST /orders").Then("hang@claimed")
		first := make(chan seen, 1)
		go func() { first <- postOrder(t, c, s, "k", "{}") }()
		require.NoError(t, s.Await(t.Context(), "k", 1, Claimed))
		got := postOrder(t, c, s, "k", "{}")
		assert.Equal(t, 409, got.Status)
		assert.Equal(t, "1", got.Header.Get("Retry-After"))
		assert.JSONEq(t, `{"type":"about:blank","title":"A request is outstanding for this key","status":409}`, got.Body)
		assert.Equal(t, contract.InProgress, contract.Default().Classify(got.Status, got.Header, []byte(got.Body)))
		assert.Equal(t, 1, s.Release("k"))
		assert.Equal(t, 0, s.Release("k"), "once")
		assert.Equal(t, 201, (<-first).Status)
		assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
		assert.Len(t, s.Effects("k"), 1)
	})
	t.Run("wait", func(t *testing.T) {
		in(t, Config{Kind: Kind{Wait: true}}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("delay@claimed for=30s")
			begin := time.Now()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status) })
			}
			all.Wait()
			assert.Equal(t, 30*time.Second, time.Since(begin))
			assert.Len(t, s.Effects("k"), 1)
		})
	})
	t.Run("wait until the process dies", func(t *testing.T) {
		in(t, Config{Kind: Kind{Wait: true}}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("hang@claimed")
			for range 2 {
				go postOrder(t, c, s, "k", "{}")
				synctest.Wait()
			}
			c.CloseIdleConnections()
			require.NoError(t, s.Restart())
			synctest.Wait()
			assert.Empty(t, s.Effects(""), "neither the first nor the one that waited for it")
			assert.Len(t, s.Requests("k"), 2)
		})
	})
	t.Run("wait for one that died", func(t *testing.T) {
		in(t, Config{Kind: Kind{Wait: true}}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("crash@claimed")
			require.Error(t, postOrder(t, c, s, "k", "{}").Err)
			begin := time.Now()
			assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
			assert.Equal(t, time.Minute, time.Since(begin), "until its lease was over")
		})
	})
}

// What is stored, by the contract's rule and the status that the handler gave.
func TestStored(t *testing.T) {
	for _, row := range []struct {
		stored contract.Stored
		kept   []int
		rerun  []int
	}{
		{contract.StoredBelow500, []int{200, 201, 400, 402, 404, 409, 422}, []int{401, 413, 429, 500, 503}},
		{contract.StoredSuccess, []int{200, 201}, []int{400, 402, 429, 500, 503}},
		{contract.StoredAll, []int{200, 402, 500, 503}, []int{401, 429}},
	} {
		for _, status := range append(row.kept, row.rerun...) {
			t.Run(fmt.Sprint(row.stored, status), func(t *testing.T) {
				runs := 0
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					runs++
					Did(r.Context(), "run", runs)
					w.WriteHeader(status)
				})
				in(t, Config{Handler: handler, Contract: contract.Contract{Stored: row.stored}}, func(t *testing.T, s *Server, c *http.Client) {
					for range 3 {
						require.Equal(t, status, postOrder(t, c, s, "k", "{}").Status)
					}
					want := 3
					for _, kept := range row.kept {
						if status == kept {
							want = 1
						}
					}
					assert.Equal(t, want, runs)
					assert.Len(t, s.Effects("k"), want)
				})
			})
		}
	}
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		first := postOrder(t, c, s, "k", `{"amount":100001}`)
		again := postOrder(t, c, s, "k", `{"amount":100001}`)
		assert.Equal(t, []int{402, 402}, []int{first.Status, again.Status}, "a failure is stored too")
		assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		assert.Empty(t, s.Effects(""))
	})
}

func TestWindowAndLease(t *testing.T) {
	contract := contract.Contract{Window: time.Hour, Lease: 10 * time.Second}
	move := map[string]func(s *Server, d time.Duration){
		"Advance": (*Server).Advance,
		"sleep":   func(_ *Server, d time.Duration) { time.Sleep(d) },
	}
	for name, pass := range move {
		t.Run(name, func(t *testing.T) {
			in(t, Config{Contract: contract}, func(t *testing.T, s *Server, c *http.Client) {
				first := postOrder(t, c, s, "k", "{}")
				pass(s, time.Hour-time.Second)
				assert.Equal(t, first.Body, postOrder(t, c, s, "k", "{}").Body, "inside the window")
				pass(s, 2*time.Second)
				assert.NotEqual(t, first.Body, postOrder(t, c, s, "k", "{}").Body, "after the window it is a new request")
				assert.Len(t, s.Effects("k"), 2)
				assert.ErrorContains(t, s.Verify(), "doubled")
			})
			in(t, Config{Contract: contract}, func(t *testing.T, s *Server, c *http.Client) {
				s.On("POST /orders").Then("crash@worked", "pass", "crash@claimed")
				require.Error(t, postOrder(t, c, s, "k", "{}").Err)
				assert.Equal(t, 409, postOrder(t, c, s, "k", "{}").Status, "the claim stays")
				assert.ErrorContains(t, s.Verify(), "unfinished: key \"k\"")
				pass(s, 10*time.Second)
				c.CloseIdleConnections() // net/http would send again on a reused one
				require.Error(t, postOrder(t, c, s, "k", "{}").Err, "a stale claim changes hands, and dies again")
				pass(s, 10*time.Second)
				assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
				assert.Len(t, s.Effects("k"), 2, "work and claim are not one fact on this server")
			})
		})
	}
	t.Run("a lease shorter than the work", func(t *testing.T) {
		in(t, Config{Contract: contract}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("delay@claimed for=15s")
			first := make(chan seen, 1)
			go func() { first <- postOrder(t, c, s, "k", "{}") }()
			time.Sleep(12 * time.Second)
			second := postOrder(t, c, s, "k", "{}")
			assert.Equal(t, 201, second.Status)
			assert.Equal(t, 201, (<-first).Status)
			assert.Len(t, s.Effects("k"), 2)
			assert.Equal(t, second.Body, postOrder(t, c, s, "k", "{}").Body, "who lost the claim stores nothing")
			assert.ErrorContains(t, s.Verify(), "doubled")
		})
	})
	t.Run("for ever", func(t *testing.T) {
		contract.Window = -1
		in(t, Config{Contract: contract}, func(t *testing.T, s *Server, c *http.Client) {
			first := postOrder(t, c, s, "k", "{}")
			s.Advance(1000 * 24 * time.Hour)
			assert.Equal(t, first.Body, postOrder(t, c, s, "k", "{}").Body)
		})
	})
}

// Time goes forward however far it is moved.
func TestAdvanceSaturates(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		for n := range 4 {
			postOrder(t, c, s, "k", "{}")
			assert.Len(t, s.Effects("k"), min(n, 1)+1, "from the second time on the clock stands at its end")
			s.Advance(math.MaxInt64 - time.Hour)
		}
	})
}

// The server of orders keeps no order that was not committed.
func TestRestartOfTheOrders(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		orders := Orders()
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				require.NoError(t, s.Restart())
			}
			orders.ServeHTTP(w, r)
		})
		require.Error(t, postOrder(t, c, s, "k", "{}").Err)
		assert.Empty(t, s.Effects(""))
		assert.JSONEq(t, `{"data":[]}`, send(t.Context(), c, http.MethodGet, s.URL+"/orders", "").Body)
	})
}

// An effect and the stored answer are one: Restart comes before both or after.
func TestRestartIsNoTornWrite(t *testing.T) {
	for _, before := range []bool{true, false} {
		working, goOn := make(chan struct{}, 1), make(chan struct{})
		s := New(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !before {
				assert.True(t, Did(r.Context(), "order", nil))
			}
			working <- struct{}{}
			<-goOn
			assert.Equal(t, !before, Did(r.Context(), "event", nil))
			w.WriteHeader(http.StatusCreated)
		})})
		got := make(chan error, 1)
		go func() { got <- postOrder(t, s.Client(), s, "k", "{}").Err }()
		<-working
		require.NoError(t, s.Restart())
		require.Error(t, <-got)
		close(goOn)
		require.NoError(t, s.until(t.Context().Done(), func() bool { return s.active == 0 }))

		if before {
			assert.Empty(t, s.Effects(""), "the process is gone: what it goes on to do is not done")
			assert.Equal(t, 409, postOrder(t, s.Client(), s, "k", "{}").Status)
			continue
		}
		assert.Len(t, s.Effects(""), 2)
		again := postOrder(t, s.Client(), s, "k", "{}")
		assert.Equal(t, 201, again.Status)
		assert.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		assert.Len(t, s.Effects(""), 2)
	}
}

func TestForgetAndRestart(t *testing.T) {
	for _, addr := range []string{"memory", "127.0.0.1:0"} {
		s := New(t, Config{Addr: addr})
		c := s.Client()
		first := postOrder(t, c, s, "k", "{}")
		require.NoError(t, s.Restart())
		again := postOrder(t, c, s, "k", "{}")
		require.NoError(t, again.Err, "the same address")
		assert.Equal(t, first.Body, again.Body, "what is stored outlives the process")

		s.On("POST /orders").Key("held").Then("hang@worked")
		got := make(chan error, 1)
		c.CloseIdleConnections() // net/http would send again on a reused one
		go func() { got <- postOrder(t, c, s, "held", "{}").Err }()
		require.NoError(t, s.Await(t.Context(), "held", 1, Worked))
		require.NoError(t, s.Restart())
		require.Error(t, <-got, "every connection is cut")
		assert.Equal(t, 0, s.Release("held"), "the process that held it is gone")
		assert.Equal(t, 409, postOrder(t, c, s, "held", "{}").Status, "its claim is not")
		s.Advance(time.Minute)
		assert.Equal(t, 201, postOrder(t, c, s, "held", "{}").Status)

		s.Forget()
		assert.NotEqual(t, first.Body, postOrder(t, c, s, "k", "{}").Body, "failed over to a replica without the key")
		assert.Len(t, s.Effects("k"), 2, "the ledger stays")
	}
}

func TestRefusedKeys(t *testing.T) {
	in(t, Config{Contract: contract.IETF()}, func(t *testing.T, s *Server, c *http.Client) {
		for _, headers := range [][]string{{"Idempotency-Key: naked"}, {`Idempotency-Key: "a"`, `Idempotency-Key: "b"`}, {`Idempotency-Key: "` + strings.Repeat("x", 300) + `"`}} {
			got := send(t.Context(), c, http.MethodPost, s.URL+"/orders", "{}", headers...)
			assert.Equal(t, 400, got.Status, headers)
		}
		assert.Equal(t, 201, send(t.Context(), c, http.MethodPost, s.URL+"/orders", "{}", `Idempotency-Key: "ok"`).Status)
		require.Len(t, s.Requests("ok"), 1, "the log speaks of keys as the client knows them")
		assert.Equal(t, Refused, s.Requests("")[0].Answer)
		assert.Len(t, s.Effects(""), 1)
	})
}

// Contracts that differ from the default in what a server does.
func TestContracts(t *testing.T) {
	t.Run("key in the body", func(t *testing.T) {
		in(t, Config{Contract: contract.Contract{Place: contract.InBody, Header: "meta.key"}}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Key("k").Then("reset@stored")
			s.On("POST /orders").Key("k2").Then("refuse@dial")
			body := `{"meta":{"key":"k"}}`
			require.Error(t, postOrder(t, c, s, "", body).Err)
			assert.Equal(t, "true", postOrder(t, c, s, "", body).Header.Get("Idempotent-Replayed"))
			assert.Len(t, s.Effects("k"), 1)
			require.ErrorContains(t, postOrder(t, c, s, "", `{"meta":{"key":"k2"}}`).Err, "refused")
		})
	})
	t.Run("codes", func(t *testing.T) {
		rules := contract.Contract{Answers: []contract.Match{
			{Status: 423, Path: "error.code", Value: "locked", Means: contract.InProgress},
			{Status: 400, Path: "error.type", Value: "idempotency_error", Means: contract.Mismatch},
			{Status: 409, Path: "error.reason", Value: "conflict", Means: contract.Done},
		}}
		in(t, Config{Contract: rules, Kind: Kind{Done: true}}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("crash@claimed")
			require.Error(t, postOrder(t, c, s, "k", "{}").Err)
			for _, want := range []struct {
				body    string
				status  int
				means   contract.Meaning
				advance time.Duration
			}{
				{"{}", 423, contract.InProgress, 0},
				{`{"a":1}`, 400, contract.Mismatch, time.Minute},
				{"{}", 201, contract.Unclassified, 0},
				{"{}", 409, contract.Done, 0},
			} {
				got := postOrder(t, c, s, "k", want.body)
				assert.Equal(t, want.status, got.Status)
				assert.Equal(t, want.means, rules.Classify(got.Status, got.Header, []byte(got.Body)), got.Body)
				s.Advance(want.advance)
			}
		})
	})
	t.Run("markers", func(t *testing.T) {
		for name, m := range map[string]contract.Marker{
			"value":    {Header: "X-Replay", Yes: []string{"Repeated"}, No: []string{"Original"}},
			"presence": {Header: "X-Key"},
			"differs":  {Header: "Original-Request", DiffersFrom: "Request-Id"},
		} {
			rules := contract.Contract{Replayed: []contract.Marker{m}, PromisesMarker: true}
			in(t, Config{Contract: rules}, func(t *testing.T, s *Server, c *http.Client) {
				for i := range 3 {
					got := postOrder(t, c, s, "k", "{}")
					replayed, known := rules.Marked(got.Status, got.Header)
					assert.Equal(t, i > 0, replayed, "%s %v", name, got.Header)
					assert.True(t, known)
				}
			})
		}
		none := contract.Contract{Replayed: []contract.Marker{}}
		in(t, Config{Contract: none}, func(t *testing.T, s *Server, c *http.Client) {
			first, again := postOrder(t, c, s, "k", "{}"), postOrder(t, c, s, "k", "{}")
			assert.Equal(t, first.Body, again.Body)
			first.Header.Del("Date")
			again.Header.Del("Date")
			assert.Equal(t, first.Header, again.Header, "no marker")
		})
	})
	t.Run("keys ignored", func(t *testing.T) {
		in(t, Config{Contract: contract.Contract{Methods: []string{}}}, func(t *testing.T, s *Server, c *http.Client) {
			postOrder(t, c, s, "k", "{}")
			postOrder(t, c, s, "k", "{}")
			assert.Len(t, s.Effects("k"), 2, "the log and the ledger know the key all the same")
		})
	})
	t.Run("another status for a repeat", func(t *testing.T) {
		in(t, Config{Kind: Kind{Repeat: 409}}, func(t *testing.T, s *Server, c *http.Client) {
			first, again := postOrder(t, c, s, "k", "{}"), postOrder(t, c, s, "k", "{}")
			assert.Equal(t, 409, again.Status)
			assert.Equal(t, first.Body, again.Body)
		})
	})
	t.Run("every contract of the catalogue", func(t *testing.T) {
		for _, rules := range contract.All() {
			if rules.Place == contract.InBody {
				continue
			}
			in(t, Config{Contract: rules}, func(t *testing.T, s *Server, c *http.Client) {
				wire, err := rules.Wire("0f8fad5b-d9cb-469f-a165-70867728950e")
				require.NoError(t, err)
				headers := []string{rules.Header + ": " + wire}
				if rules.FirstSentHeader != "" {
					headers = append(headers, rules.FirstSentHeader+": "+time.Now().UTC().Format(http.TimeFormat))
				}
				first := send(t.Context(), c, http.MethodPost, s.URL+"/orders", "{}", headers...)
				again := send(t.Context(), c, http.MethodPost, s.URL+"/orders", "{}", headers...)
				require.Equal(t, 201, first.Status, rules.Name)
				assert.Equal(t, first.Body, again.Body, rules.Name)
				assert.Len(t, s.Effects(""), 1, rules.Name)
			})
		}
	})
}

// The atomic claim: of many requests at one moment one works.
func TestClaimIsAtomic(t *testing.T) {
	s := New(t, Config{})
	c := s.Client()
	var all sync.WaitGroup
	for i := range 20 {
		for range 10 {
			all.Go(func() {
				got := postOrder(t, c, s, fmt.Sprint("k", i), "{}")
				assert.Contains(t, []int{201, 409}, got.Status)
			})
		}
	}
	all.Wait()
	assert.Len(t, s.Effects(""), 20)
}
