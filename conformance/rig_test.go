package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// A rig is a server and a client that keep one contract, in a bubble.
type rig struct {
	contract.Contract

	t      *testing.T
	kind   mockserver.Kind
	srv    *mockserver.Server
	in     *idem.Intent
	runs   atomic.Int32 // of the handler
	breach bool         // the test lets somebody break the rules: do not Verify
}

// each runs f for every contract, in a bubble of its own.
func each(t *testing.T, f func(*rig)) {
	t.Helper()
	for _, s := range servers() {
		t.Run(s.Name, func(t *testing.T) { in(t, s, f) })
	}
}

// in runs f against one server.
func in(t *testing.T, s server, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Contract: s.Contract.WithDefaults(), t: t, kind: s.kind, in: idem.Open()}
		r.srv = mockserver.New(t, mockserver.Config{Handler: http.HandlerFunc(r.work), Contract: s.Contract, Kind: s.kind})
		f(r)
		if !r.breach {
			assert.NoError(t, r.srv.Verify())
		}
	})
}

// work is the API: the body's member "answers" says what the first runs answer,
// later ones answer 201. What is created is an effect.
func (r *rig) work(w http.ResponseWriter, req *http.Request) {
	var body struct {
		Answers []int `json:"answers"`
	}
	_ = json.NewDecoder(req.Body).Decode(&body)
	status := http.StatusCreated
	if n := int(r.runs.Add(1)); n <= len(body.Answers) {
		status = body.Answers[n-1]
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Refuses(status) {
		w.Header().Set("Content-Type", "text/plain") // of something in front of the API
	}
	w.WriteHeader(status)
	if status == http.StatusCreated {
		mockserver.Did(req.Context(), "created", nil)
	}
	_, _ = io.WriteString(w, `{"id":"ch_1"}`)
}

// transport returns a Transport of the contract, with waits of 100 to 200 ms.
func (r *rig) transport() *idem.Transport {
	return &idem.Transport{Base: r.srv.Transport(), Contract: r.Contract, Backoff: idem.Exponential(200*time.Millisecond, 200*time.Millisecond)}
}

// client returns a client with r's transport, changed by with.
func (r *rig) client(with ...func(*idem.Transport)) *idem.Client {
	transport := r.transport()
	for _, f := range with {
		f(transport)
	}
	c, err := idem.NewClient(idem.Config{BaseURL: r.srv.URL, Transport: transport})
	require.NoError(r.t, err)
	return c
}

func attempts(n int) func(*idem.Transport) { return func(t *idem.Transport) { t.MaxAttempts = n } }

// charge is the body of a request; the key is in it where the contract asks.
func (r *rig) charge(amount int, answers ...int) map[string]any {
	body := map[string]any{"amount": amount, "answers": answers}
	if r.Place == contract.InBody {
		r.put(body, r.wire())
	}
	return body
}

// put writes the key into the body.
func (r *rig) put(body map[string]any, key string) {
	path := strings.Split(r.Header, ".")
	for ; len(path) > 1; path = path[1:] {
		inner := map[string]any{}
		body[path[0]] = inner
		body = inner
	}
	body[path[0]] = key
}

// wire is the key as it must be on the wire.
func (r *rig) wire() string {
	wire, err := r.Wire(r.in.Key())
	require.NoError(r.t, err)
	return wire
}

// post makes a call with r's Intent.
func (r *rig) post(c *idem.Client, body any) (idem.Result, error) {
	return c.Call(r.t.Context(), r.in, http.MethodPost, "/charges", body, nil)
}

// other sends a request as another process would that has the key in its wire
// form and knows nothing of idem. It returns the status; 0: none.
func (r *rig) other(method, wire string, body any) int {
	data := marshal(r.t, body)
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.srv.URL+"/charges", bytes.NewReader(data))
	require.NoError(r.t, err)
	req.Header.Set("Content-Type", "application/json")
	if r.Place == contract.InHeader && wire != "" {
		req.Header.Set(r.Header, wire)
	}
	if r.FirstSentHeader != "" {
		req.Header.Set(r.FirstSentHeader, time.Now().UTC().Format(http.TimeFormat))
	}
	resp, err := r.srv.Client().Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode
}

// adopt makes r's Intent one whose key another process has sent as well.
func (r *rig) adopt() {
	in, err := idem.Adopt(r.in.Key(), time.Now())
	require.NoError(r.t, err)
	r.in = in
}

// want is what a situation has come to.
type want struct {
	hits, runs int
	status     int
	outcome    idem.Outcome
	replay     idem.Replay
	is         []error // what errors.Is finds
	fails      bool    // there is an error; implied by is
	asked      time.Duration
}

// check compares the end of the last call, and what the server has seen.
func (r *rig) check(res idem.Result, err error, w want) {
	r.t.Helper()
	hits := r.srv.Requests("")
	assert.Len(r.t, hits, w.hits, "hits")
	assert.Equal(r.t, w.runs, int(r.runs.Load()), "runs")
	assert.Equal(r.t, w.status, res.Status, "status")
	assert.Equal(r.t, w.outcome, res.Outcome, "outcome")
	assert.Equal(r.t, w.replay, res.Replay, "replay")
	assert.Equal(r.t, w.fails || w.is != nil, err != nil, "error: %v", err)
	for _, e := range w.is {
		assert.ErrorIs(r.t, err, e)
	}
	r.oneKey(hits)
	r.waits(w.asked)
	belief := mockserver.Unsure
	switch {
	case res.Outcome == idem.NotExecuted:
		belief = mockserver.NotDone
	case res.Outcome == idem.Answered && err == nil:
		belief = mockserver.Done
	}
	for _, h := range hits {
		r.srv.Believe(h.Key, belief)
	}
}

// oneKey checks that every request had the one key in its wire form.
func (r *rig) oneKey(hits []mockserver.Request) {
	r.t.Helper()
	for _, h := range hits {
		if r.Place == contract.InBody {
			key, err := r.FromBody(h.Body)
			assert.NoError(r.t, err)
			assert.Equal(r.t, r.wire(), key, "the key in the body")
			continue
		}
		assert.Equal(r.t, []string{r.wire()}, h.Header.Values(r.Header), "the key header")
	}
}

// waits checks the waits of the Intent's attempts, where asked is the wait that
// the server asked for, and that they were kept.
func (r *rig) waits(asked time.Duration) {
	r.t.Helper()
	least, most := r.wait(asked)
	list := r.in.Attempts()
	for i, a := range list {
		if !a.Retry {
			continue
		}
		assert.True(r.t, a.Wait >= least && a.Wait <= most, "wait of %v, not %v to %v", a.Wait, least, most)
		if i+1 < len(list) {
			assert.Equal(r.t, a.Wait, list[i+1].Start.Sub(a.Start.Add(a.Duration)), "waited")
		}
	}
}

// wait returns the bounds of a wait.
func (r *rig) wait(asked time.Duration) (least, most time.Duration) {
	least, most = 100*time.Millisecond, 200*time.Millisecond
	if asked = max(asked, r.Gap); asked > 0 {
		least, most = asked, asked+min(asked/10, time.Second)
	}
	return least, most
}
