package issue_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-github/v89/github"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	issue "github.com/idem-go/idem/examples/github"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tracker is the part of GitHub that the example uses.
func tracker() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /repos/{owner}/{repo}/issues", func(w http.ResponseWriter, r *http.Request) {
		mockserver.Did(r.Context(), "issue", nil)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"number":1}`)
	})
	mux.HandleFunc("GET /repos/{owner}/{repo}/issues/{n}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"number":1}`)
	})
	return mux
}

// run gives f a server that knows no keys and a client of it, in virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, client *github.Client)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: tracker(), Contract: contract.Contract{Methods: []string{}}})
		transport := issue.Transport()
		transport.Base = server.Transport()
		client, err := issue.New("token", server.URL+"/", transport)
		require.NoError(t, err)
		f(t, server, client)
	})
}

func TestReadIsRepeated(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *github.Client) {
		server.On("GET /").Then("drop@received", "503@received retry-after=1", "reset@head")
		got, _, err := client.Issues.Get(t.Context(), "o", "r", 1)
		require.NoError(t, err)
		assert.Equal(t, 1, got.GetNumber())
		assert.NoError(t, server.Verify())
	})
}

func TestCreate(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *github.Client) {
		made, err := issue.Create(t.Context(), client, "o", "r", "title")
		require.NoError(t, err)
		assert.Equal(t, 1, made.GetNumber())
		keyed, unkeyed := trouble.Writes(server)
		assert.Equal(t, [2]int{0, 1}, [2]int{keyed, unkeyed})
	})
}

// Whatever happens to it, a write is sent once, with or without an Intent, and
// what is not known is not made up.
func TestWriteIsSentOnce(t *testing.T) {
	for fault, effects := range map[mockserver.Fault]int{
		"drop@received": 0, "503@received": 0, "409@received": 0, "reset@stored": 1, "503@worked": 1,
	} {
		t.Run(string(fault), func(t *testing.T) {
			run(t, func(t *testing.T, server *mockserver.Server, client *github.Client) {
				server.On("POST /").Then(fault)
				ctx := idem.WithIntent(t.Context(), idem.Open())
				_, err := issue.Create(ctx, client, "o", "r", "title")
				require.Error(t, err)
				if fault != "409@received" { // that is GitHub's answer
					assert.ErrorIs(t, err, issue.ErrUnknown)
				}
				keyed, unkeyed := trouble.Writes(server)
				assert.Equal(t, [2]int{0, 1}, [2]int{keyed, unkeyed})
				assert.Len(t, server.Effects(""), effects)
			})
		})
	}
}

// What has not left this machine is not unknown.
func TestRefusedConnection(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, client *github.Client) {
		server.On("POST /").Always("refuse@dial")
		_, err := issue.Create(t.Context(), client, "o", "r", "title")
		require.Error(t, err)
		assert.NotErrorIs(t, err, issue.ErrUnknown)
		assert.Empty(t, server.Effects(""))
	})
}
