package ask_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/trouble"
	ask "github.com/idem-go/idem/examples/openai"
	"github.com/idem-go/idem/mockserver"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers is the part of the API that the example uses.
func answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) {
		mockserver.Did(r.Context(), "answer", nil)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"resp_1","object":"response","status":"completed","output":[
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"42"}]}]}`)
	})
	return mux
}

// run gives f a server, over TLS, and a Transport to it, in virtual time.
func run(t *testing.T, f func(t *testing.T, server *mockserver.Server, transport *idem.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: answers(), TLS: true, MaxAttempts: 3 * trouble.Attempts})
		f(t, server, trouble.Transport(server))
	})
}

func TestAsk(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		trouble.Meets(server, "POST /v1/responses")
		client, question := ask.New("sk-1", server.URL+"/v1", transport), idem.Open()
		text, err := ask.Ask(t.Context(), client, question, "model-1", "6*7?")
		require.NoError(t, err)
		assert.Equal(t, "42", text)
		trouble.Check(t, server, question)
	})
}

// A key that is given as an option must be the Intent's.
func TestKeyOption(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/responses").Then("reset@stored")
		client, question := ask.New("sk-1", server.URL+"/v1", transport), idem.Open()
		ctx, params := idem.WithIntent(t.Context(), question), responses.ResponseNewParams{}
		_, err := client.New(ctx, params, option.WithHeader("Idempotency-Key", "another"))
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		assert.Empty(t, server.Requests(""))
		_, err = client.New(ctx, params, option.WithHeader("Idempotency-Key", question.Key()))
		require.NoError(t, err)
		assert.Len(t, server.Requests(question.Key()), 2)
		assert.Len(t, server.Effects(""), 1)
	})
}

// Without an Intent a request that may have been worked on is sent once.
func TestForgotten(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		server.On("POST /v1/responses").Then("503@received")
		client := ask.New("sk-1", server.URL+"/v1", transport)
		_, err := client.New(t.Context(), responses.ResponseNewParams{})
		var answer *responses.Error
		require.ErrorAs(t, err, &answer)
		assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		keyed, unkeyed := trouble.Writes(server)
		assert.Equal(t, [2]int{0, 1}, [2]int{keyed, unkeyed})
	})
}

// With the SDK's own retries left on every call is made three times over. It is
// still one key and one effect, and Attempt.Call shows it.
func TestOwnRetriesMultiply(t *testing.T) {
	for _, fault := range []mockserver.Fault{"503@received", "409@received", "drop@received"} {
		t.Run(string(fault), func(t *testing.T) {
			run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
				server.On("POST /v1/responses").Always(fault)
				client, question := ask.New("sk-1", server.URL+"/v1", transport), idem.Open()
				_, err := client.New(idem.WithIntent(t.Context(), question), responses.ResponseNewParams{}, option.WithMaxRetries(2))
				assert.Error(t, err)
				calls := map[int]int{}
				for _, a := range question.Attempts() {
					calls[a.Call]++
				}
				assert.Equal(t, map[int]int{1: trouble.Attempts, 2: trouble.Attempts, 3: trouble.Attempts}, calls)
				assert.Len(t, server.Requests(question.Key()), len(server.Requests("")), "one key")
				assert.Equal(t, idem.OutcomeUnknown, question.Outcome())
			})
		})
	}
}

// asks counts how often the SDK asks, and keeps what it is told.
type asks struct {
	http.RoundTripper
	told []string
}

func (a *asks) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	a.told = append(a.told, fmt.Sprint(err))
	return resp, err
}

// A refusal is asked for as often. It is given in the same words each time, and
// nothing is sent; the number of the next call shows that somebody asked.
func TestOwnRetriesOfARefusal(t *testing.T) {
	run(t, func(t *testing.T, server *mockserver.Server, transport *idem.Transport) {
		a := &asks{RoundTripper: transport}
		client := responses.NewResponseService(option.WithAPIKey("sk-1"), option.WithBaseURL(server.URL+"/v1"), option.WithHTTPClient(&http.Client{Transport: a}))
		question := idem.Open()
		ctx := idem.WithIntent(t.Context(), question)
		_, err := client.New(ctx, responses.ResponseNewParams{}, option.WithHeader("Idempotency-Key", "another"))
		assert.ErrorIs(t, err, idem.ErrKeyConflict)
		require.Len(t, a.told, 3)
		assert.Equal(t, []string{a.told[0], a.told[0], a.told[0]}, a.told)
		assert.Empty(t, server.Requests(""))

		_, err = client.New(ctx, responses.ResponseNewParams{})
		require.NoError(t, err)
		require.Len(t, question.Attempts(), 1)
		assert.Equal(t, 4, question.Attempts()[0].Call)
	})
}
