package mockserver

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The most specific pattern is asked first, then key and caller; who has nothing
// to say passes on.
func TestOn(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/").Always("410@received")
		s.On("POST /orders").Then("411@received")
		s.On("POST /orders").Key("k").Then("412@received")
		s.On("POST /orders").Key("k").Caller("me").Then("413@received")
		s.On("/{x}").Then("414@received")
		s.On("mock.test/things").Always("415@received")

		me := "Authorization: Bearer me"
		for _, want := range []int{413, 412, 411, 414, 410, 410} {
			assert.Equal(t, want, postOrder(t, c, s, "k", "{}", me).Status)
		}
		assert.Equal(t, 411, postOrder(t, c, s, "other", "{}", me).Status, "each key begins at the first step")
		assert.Equal(t, 412, postOrder(t, c, s, "k", "{}").Status, "so does each caller")
		assert.Equal(t, 410, send(t.Context(), c, "GET", s.URL+"/a/b", "").Status)
		assert.Equal(t, 415, send(t.Context(), c, "GET", s.URL+"/things", "").Status)
	})
}

// Patterns of which neither is the more specific do not disturb each other.
func TestOnConflicting(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/orders/{id}").Then("410@received")
		s.On("/{x}/latest").Then("411@received")
		var got []int
		for range 3 {
			got = append(got, send(t.Context(), c, "GET", s.URL+"/orders/latest", "").Status)
		}
		assert.Equal(t, []int{410, 411, 404}, got)
	})
}

func TestOnWrong(t *testing.T) {
	for name, do := range map[string]func(s *Server){
		`mockserver: parsing "/{a}/{a}": at offset 5: duplicate wildcard name`:  func(s *Server) { s.On("/{a}/{a}") },
		`mockserver: fault "rest@stored": there is no action "rest"; did you`:   func(s *Server) { s.On("/").Then("pass", "rest@stored") },
		`mockserver: fault "hang@nowhere": hang cannot be at "nowhere"; right `: func(s *Server) { s.On("/").Always("hang@nowhere") },
		`mockserver: Sometimes(1.5) with 1 faults`:                              func(s *Server) { s.On("/").Sometimes(1.5, 1, "pass") },
		`mockserver: Sometimes(NaN) with 1 faults`:                              func(s *Server) { s.On("/").Sometimes(math.NaN(), 1, "pass") },
		`mockserver: Sometimes(0.5) with 0 faults`:                              func(s *Server) { s.On("/").Sometimes(0.5, 1) },
		`mockserver: fault "alert@handshake": there is no handshake without`:    func(s *Server) { s.On("/").Then("alert@handshake") },
	} {
		tb := &fakeTB{TB: t}
		s := New(tb, Config{})
		assert.Contains(t, tb.fails(t, func() { do(s) }), name, "it fails the test at once")
		tb.end()
		assert.Empty(t, tb.failed)

		s, err := Start(Config{Addr: "memory"})
		require.NoError(t, err)
		assert.PanicsWithError(t, tb.fatal[0], func() { do(s) }, "without a test it panics")
		require.NoError(t, s.Close())
	}
}

// A scripted fault that nothing met fails the test; what may be unmet does not.
func TestUnused(t *testing.T) {
	tb := &fakeTB{TB: t}
	s := New(tb, Config{})
	s.On("POST /orders").Then("reset@stored", "pass", "503@received").Sometimes(0, 1, "418@received")
	s.On("POST /never").Always("410@received")
	s.On("POST /orders").Key("x").Then("drop@stored; 401@received send=2")
	require.Error(t, postOrder(t, s.Client(), s, "k", "{}").Err)
	require.Error(t, postOrder(t, s.Client(), s, "x", "{}").Err)
	want := []string{
		`the fault "503@received" of On("POST /orders"), step 3, was not met`,
		`the fault "410@received" of On("POST /never"), Always, was not met`,
		`the fault "drop@stored; 401@received send=2" of On("POST /orders"), step 1, was not met`,
	}
	for _, w := range want {
		assert.ErrorContains(t, s.Verify(), "mockserver: unused: "+w)
	}
	tb.end()
	require.Len(t, tb.failed, len(want))
	for i := range want {
		assert.Equal(t, "mockserver: "+want[i], tb.failed[i])
	}
}

// A fault at a point that the attempt does not pass is not met.
func TestUnusedPoint(t *testing.T) {
	tb := &fakeTB{TB: t}
	s := New(tb, Config{})
	s.On("POST /orders").Then("pass", "reset@worked")
	c := s.Client()
	postOrder(t, c, s, "k", "{}")
	assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status, "a replay does no work")
	tb.end()
	assert.Len(t, tb.failed, 1)
}

// Sometimes draws from (seed, caller, key, attempt): the order of the requests
// changes nothing, another seed does, and the probability is what was asked for.
func TestSometimes(t *testing.T) {
	draw := func(t *testing.T, seed uint64, reverse bool) map[string]int {
		met := map[string]int{}
		in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Sometimes(0.3, seed, "410@received", "411@received")
			for i := range 200 {
				if reverse {
					i = 199 - i
				}
				for n := range 3 {
					met[fmt.Sprint(i, n)] = postOrder(t, c, s, fmt.Sprint("k", i), "{}").Status
				}
			}
		})
		return met
	}
	first := draw(t, 7, false)
	assert.Equal(t, first, draw(t, 7, true), "in whatever order")
	assert.NotEqual(t, first, draw(t, 8, false))
	count := map[int]int{}
	for _, status := range first {
		count[status]++
	}
	assert.InDelta(t, 0.3, float64(count[410]+count[411])/600, 0.06)
	assert.InDelta(t, count[410], count[411], 40)

	t.Run("after Then, before Always", func(t *testing.T) {
		in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("410@received").Sometimes(0.5, 3, "411@received").Always("412@received")
			seen := map[int]int{}
			for range 40 {
				seen[postOrder(t, c, s, "k", "{}").Status]++
			}
			assert.Equal(t, 1, seen[410])
			assert.Equal(t, 40, seen[410]+seen[411]+seen[412])
			assert.NotZero(t, seen[411])
			assert.NotZero(t, seen[412])
		})
	})
}

// One hundred clients at once, each with a script for its key: each step is met
// once, none by another key, and the ledger agrees.
func TestHundredClients(t *testing.T) {
	for _, c := range []Config{{}, {HTTP2: true}, {TLS: true, HTTP2: true}, {Addr: "127.0.0.1:0"}} {
		t.Run(fmt.Sprintf("%+v", c.Addr+fmt.Sprint(c.TLS, c.HTTP2)), func(t *testing.T) {
			s := New(t, c)
			s.On("POST /orders").Then("503@received", "502@head", "429@received", "500@head")
			var all sync.WaitGroup
			for i := range 100 {
				key := fmt.Sprint("k", i)
				s.On("POST /orders").Key(key).Then(Fault(fmt.Sprintf("%d@received", 400+i)), "reset@stored")
				all.Go(func() {
					client := s.Client()
					defer client.CloseIdleConnections()
					body := fmt.Sprintf(`{"n":%d}`, i)
					assert.Equal(t, 400+i, postOrder(t, client, s, key, body).Status)
					client.CloseIdleConnections()
					if err := postOrder(t, client, s, key, body).Err; !assert.ErrorIs(t, err, syscall.ECONNRESET) {
						return
					}
					var got []int
					for range 5 {
						got = append(got, postOrder(t, client, s, key, body).Status)
					}
					assert.Equal(t, []int{503, 502, 429, 500, 201}, got, "then the general script")
				})
			}
			all.Wait()
			assert.Len(t, s.Effects(""), 100)
			for i := range 100 {
				key := fmt.Sprint("k", i)
				log := s.Requests(key)
				require.Len(t, log, 7)
				for n, r := range log {
					assert.Equal(t, n+1, r.Attempt)
					assert.Equal(t, fmt.Sprintf(`{"n":%d}`, i), string(r.Body))
				}
				require.Len(t, s.Effects(key), 1)
				assert.Equal(t, log[1].Seq, s.Effects(key)[0].Request)
			}
		})
	}
}

// Attempt 1 is held while attempt 2 runs; the server works in the order 2, 1.
func TestHoldAndRelease(t *testing.T) {
	for _, c := range []Config{{}, {HTTP2: true}} {
		c.Contract.Methods = []string{} // a server that ignores keys
		in(t, c, func(t *testing.T, s *Server, client *http.Client) {
			s.On("POST /orders").Then("hang@received", "hang@received", "pass")
			client.Timeout = time.Second
			for range 2 {
				require.ErrorIs(t, postOrder(t, client, s, "k", "{}").Err, context.DeadlineExceeded)
			}
			require.Equal(t, 201, postOrder(t, client, s, "k", "{}").Status)
			synctest.Wait()
			assert.Len(t, s.Effects("k"), 1)
			assert.Equal(t, 1, s.Release("k", 2))
			require.NoError(t, s.Await(t.Context(), "k", 2, Received))
			synctest.Wait()
			assert.Equal(t, 1, s.Release("k"))
			synctest.Wait()
			var order []int
			for _, e := range s.Effects("k") {
				order = append(order, s.Requests("")[e.Request-1].Attempt)
			}
			assert.Equal(t, []int{3, 2, 1}, order)
			for _, r := range s.Requests("k")[:2] {
				assert.True(t, r.Left, "the log has them although the client left")
				assert.Zero(t, r.Status)
				assert.Equal(t, time.Second, r.over.Sub(r.Start))
			}
			assert.ErrorContains(t, s.Verify(), "doubled: key \"k\" has effects from 3 requests: [1 2 3]")
		})
	}
}

func TestAwait(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		require.ErrorContains(t, s.Await(t.Context(), "k", 1, "nowhere"), `there is no point "nowhere"`)
		require.EqualError(t, s.Await(t.Context(), "k", 0, Received), "mockserver: Await: attempts are counted from 1, not 0")
		s.On("POST /orders").Then("hang@dial")
		got := make(chan seen, 1)
		go func() { got <- postOrder(t, c, s, "k", "{}") }()
		require.NoError(t, s.Await(t.Context(), "k", 1, Dial))
		assert.Empty(t, s.Requests(""), "nothing has arrived")
		assert.Equal(t, 1, s.Release("k"))
		require.NoError(t, s.Await(t.Context(), "k", 1, Body))
		assert.Equal(t, 201, (<-got).Status)
		assert.Equal(t, 1, s.Requests("k")[0].Attempt, "the dial and the request are one attempt")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Await(ctx, "k", 2, Received), context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { _ = s.Close() })
		require.EqualError(t, s.Await(t.Context(), "k", 2, Received),
			`mockserver: Await: attempt 2 of key "k" has not reached received: mockserver: the server is closed`)
	})
}

// A gateway in front: it answers by itself, forwards late, or sends twice.
func TestGateway(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		for f, wantStatus := range map[Fault]int{"504@received forward=late": 504, "reset@received forward=late": 0, "copy@received forward=late": 201} {
			in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
				s.On("POST /orders").Then(f)
				assert.Equal(t, wantStatus, postOrder(t, c, s, "k", "{}").Status)
				before := len(s.Effects("k"))
				assert.Equal(t, wantStatus/201%2, before, "not before it is released")
				time.Sleep(time.Second)
				require.Equal(t, 1, s.Release("k"), "after the call has returned")
				synctest.Wait()
				assert.Len(t, s.Effects("k"), 1)
				log := s.Requests("k")
				require.Len(t, log, 2)
				assert.True(t, log[1].Copy)
				assert.Equal(t, log[0].Print, log[1].Print)
				assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)
				assert.Len(t, s.Effects("k"), 1)
				require.NoError(t, s.Verify())
			})
		}
	})
	t.Run("now", func(t *testing.T) {
		in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("401@received forward=now")
			assert.Equal(t, 401, postOrder(t, c, s, "k", "{}").Status)
			assert.Len(t, s.Effects("k"), 1, "it lied")
			s.Believe("k", NotDone)
			assert.ErrorContains(t, s.Verify(), "phantom")
		})
	})
	t.Run("twice, without a key", func(t *testing.T) {
		in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("copy@received")
			assert.Equal(t, 201, postOrder(t, c, s, "", "{}").Status)
			assert.Len(t, s.Effects(""), 2)
		})
	})
}

// What arrives is drained whole before anything is broken, so that the error is
// always the same.
func TestDrained(t *testing.T) {
	for _, addr := range []string{"memory", "127.0.0.1:0"} {
		s := New(t, Config{Addr: addr})
		s.On("POST /orders").Always("drop@received")
		body := string(make([]byte, 4<<20))
		for range 5 {
			c := s.Client()
			got := postOrder(t, c, s, "", body)
			require.ErrorIs(t, got.Err, io.EOF)
		}
		for _, r := range s.Requests("") {
			assert.Len(t, r.Body, 4<<20)
		}
	}
}
