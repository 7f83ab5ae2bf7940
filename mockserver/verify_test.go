package mockserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

// breaches returns what Verify found: the kinds, each once, in their order.
func breaches(t *testing.T, err error) (kinds []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	last := ""
	for _, e := range joined.Unwrap() {
		var b *Breach
		require.ErrorAs(t, e, &b)
		assert.Equal(t, "mockserver: "+b.Kind+": "+b.Text, e.Error())
		assert.NotContains(t, e.Error(), "\n", "one line each")
		if b.Kind != last {
			kinds = append(kinds, b.Kind)
		}
		last = b.Kind
	}
	return kinds
}

func TestVerify(t *testing.T) {
	ignored := Config{Contract: contract.Contract{Methods: []string{}}}
	for _, row := range []struct {
		name   string
		config Config
		want   string // kinds, then what the text says
		do     func(t *testing.T, s *Server, c *http.Client)
	}{
		{"nothing happened", Config{}, "", func(*testing.T, *Server, *http.Client) {}},
		{"a patient client", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("reset@stored", "503@received retry-after=3")
			for range 3 {
				postOrder(t, c, s, "k", "{}")
				time.Sleep(3 * time.Second)
			}
			s.Believe("k", Done)
		}},
		{"doubled", ignored, `doubled: key "k" has effects from 2 requests: [1 2]`, func(t *testing.T, s *Server, c *http.Client) {
			postOrder(t, c, s, "k", "{}")
			postOrder(t, c, s, "k", "{}")
		}},
		{"doubled without a key", Config{}, `doubled: POST /orders without a key has effects from 2 requests: [1 2]`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("drop@stored")
			postOrder(t, c, s, "", "{}")
			postOrder(t, c, s, "", "{}")
		}},
		{"two orders without a key, both answered", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			postOrder(t, c, s, "", "{}")
			postOrder(t, c, s, "", "{}")
		}},
		{"lost", Config{}, `lost: key "k" is believed done, but there is no effect`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received")
			postOrder(t, c, s, "k", "{}")
			s.Believe("k", Done)
		}},
		{"phantom", Config{}, `phantom: key "k" is believed not done, yet there are effects: 1`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@stored")
			postOrder(t, c, s, "k", "{}")
			s.Believe("k", NotDone)
		}},
		{"unsure fits any ledger", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			postOrder(t, c, s, "k", "{}")
			s.Believe("k", NotDone)
			s.Believe("k", Unsure)
			s.Believe("never sent", NotDone)
			s.Believe("never known", Unsure)
		}},
		{"altered", Config{}, `altered: key "k" came with POST /orders in request 1 and with another request in 2`, func(t *testing.T, s *Server, c *http.Client) {
			postOrder(t, c, s, "k", "{}")
			postOrder(t, c, s, "k", `{"a":1}`)
		}},
		{"rekeyed", Config{}, `rekeyed: request 2 under key "k2" repeats request 1 under key "k1", whose outcome was unknown`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Key("k1").Then("reset@stored")
			postOrder(t, c, s, "k1", "{}")
			time.Sleep(time.Second)
			postOrder(t, c, s, "k2", "{}")
		}},
		{"the same order again, on purpose", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Key("k1").Then("reset@stored")
			postOrder(t, c, s, "k1", "{}")
			time.Sleep(time.Second)
			postOrder(t, c, s, "k1", "{}")
			postOrder(t, c, s, "k2", "{}")
		}},
		{"the same order of another caller", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Key("k1").Then("reset@stored")
			postOrder(t, c, s, "k1", "{}", "Authorization: Bearer a")
			postOrder(t, c, s, "k2", "{}", "Authorization: Bearer b")
		}},
		{"early", Config{}, `early: attempt 2 of key "k" came after 2s, the server had asked for 3s`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received retry-after=3")
			postOrder(t, c, s, "k", "{}")
			time.Sleep(2 * time.Second)
			postOrder(t, c, s, "k", "{}")
		}},
		{"early by a fraction", Config{}, `early: attempt 2 of key "k" came after 1s, the server had asked for 1.5s`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received retry-after=1.5")
			postOrder(t, c, s, "k", "{}")
			time.Sleep(time.Second)
			postOrder(t, c, s, "k", "{}")
		}},
		{"early by more than a duration holds", Config{}, `early: attempt 2 of key "k" came after 1s, the server had asked for 2562047h47m16.854775807s`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received retry-after=9223372037")
			postOrder(t, c, s, "k", "{}")
			time.Sleep(time.Second)
			postOrder(t, c, s, "k", "{}")
		}},
		{"asked for nothing that can be read", Config{}, "", func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received retry-after=soon", "503@received retry-after=-5", "503@received retry-after=1e9", "503@received retry-after=1.2.3")
			for range 5 {
				postOrder(t, c, s, "k", "{}")
				time.Sleep(time.Second)
			}
		}},
		{"early by a date", Config{}, `early: attempt 2 of key "k" came after 2s, the server had asked for 1m0s`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then(Fault(fmt.Sprintf("429@received retry-after=%q", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))))
			postOrder(t, c, s, "k", "{}")
			time.Sleep(2 * time.Second)
			postOrder(t, c, s, "k", "{}")
		}},
		{"early by the contract", Config{Contract: contract.Contract{Gap: 30 * time.Second}}, `early: attempt 2 of key "k" came 2s after the last, the contract's gap is 30s`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received")
			postOrder(t, c, s, "k", "{}")
			time.Sleep(2 * time.Second)
			postOrder(t, c, s, "k", "{}")
		}},
		{"hurried", Config{}, `hurried: attempt 2 of key "k" came after 0s, without backoff`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received")
			postOrder(t, c, s, "k", "{}")
			postOrder(t, c, s, "k", "{}")
		}},
		{"hurried by all alike", Config{}, `hurried: 6 keys waited 1s to 1s after attempt 1, without jitter`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("503@received")
			for i := range 6 {
				body := fmt.Sprint(`{"n":`, i, "}")
				postOrder(t, c, s, fmt.Sprint("k", i), body)
				time.Sleep(time.Second)
				postOrder(t, c, s, fmt.Sprint("k", i), body)
			}
		}},
		{"storm", Config{MaxAttempts: 3}, `storm: key "k" came in 4 attempts`, func(t *testing.T, s *Server, c *http.Client) {
			for range 4 {
				postOrder(t, c, s, "k", "{}")
				time.Sleep(time.Second)
			}
		}},
		{"storm of sends", Config{HTTP2: true}, `storm: an attempt of key "k" was sent 40 times`, func(t *testing.T, s *Server, c *http.Client) {
			var f []string
			for i := range 39 {
				f = append(f, fmt.Sprintf("abort@received code=1 send=%d", i+1))
			}
			s.On("POST /orders").Then(Fault(strings.Join(f, ";")))
			require.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status, "net/http sends again without limit")
		}},
		{"unfinished", Config{}, `unfinished: key "k" is claimed and its work has not ended`, func(t *testing.T, s *Server, c *http.Client) {
			s.On("POST /orders").Then("crash@claimed")
			postOrder(t, c, s, "k", "{}")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in(t, row.config, func(t *testing.T, s *Server, c *http.Client) {
				row.do(t, s, c)
				kind, _, _ := strings.Cut(row.want, ":")
				err := s.Verify()
				if row.want == "" {
					require.NoError(t, err)
					return
				}
				assert.Equal(t, []string{kind}, breaches(t, err))
				assert.ErrorContains(t, err, "mockserver: "+row.want)
			})
		})
	}
}

// Verify waits for what is under way, but not for what is held.
func TestVerifyWaits(t *testing.T) {
	in(t, Config{}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("POST /orders").Then("drop@claimed; delay@claimed for=500ms")
		require.Error(t, postOrder(t, c, s, "k", "{}").Err)
		require.NoError(t, s.Verify(), "the work is not unfinished, it is at work")
		assert.Len(t, s.Effects("k"), 1)

		s.On("POST /orders").Key("held").Then("hang@claimed")
		go postOrder(t, c, s, "held", `{"n":2}`)
		synctest.Wait()
		begin := time.Now()
		assert.Equal(t, []string{"unfinished"}, breaches(t, s.Verify()))
		assert.Zero(t, time.Since(begin))
	})
}
