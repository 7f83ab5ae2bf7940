package mockserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

// What each knob of a Kind shows to a client that sends a request, the same again
// and another under its key.
func TestKind(t *testing.T) {
	gone := "409 body=`" + `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"{id}"}}]}}` + "`"
	answered := func(s *Server, c *http.Client, t *testing.T, body string, headers ...string) seen {
		got := postOrder(t, c, s, "k", body, headers...)
		require.NoError(t, got.Err)
		return got
	}
	for name, row := range map[string]struct {
		kind          Kind
		again, other  int
		effects       int
		body, headers string // of the repeat, if they matter
	}{
		"none":                {Kind{}, 201, 422, 1, "", ""},
		"mismatch 417":        {Kind{Mismatch: "417"}, 201, 417, 1, "", ""},
		"mismatch 400":        {Kind{Mismatch: "400 body=`{\"code\":\"reused\"}`"}, 201, 400, 1, "", ""},
		"mismatch 409":        {Kind{Mismatch: "409 type=text/plain body=no"}, 201, 409, 1, "", ""},
		"executes again":      {Kind{PerRequest: true}, 201, 201, 2, "", ""},
		"first answer":        {Kind{Loose: true}, 201, 201, 1, "", ""},
		"200 for 201":         {Kind{Repeat: 200}, 200, 422, 1, `{"amount":1,"id":"1"}`, ""},
		"409 with the id":     {Kind{Again: gone}, 409, 422, 1, `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"1"}}]}}`, ""},
		"400 with a location": {Kind{Again: `400 header="Location: /jobs/{id}"`}, 400, 422, 1, "", "/jobs/1"},
		"semantic": {Kind{Print: func(_ *http.Request, body []byte) string {
			var v map[string]any
			_ = json.Unmarshal(body, &v)
			return fmt.Sprint(v["amount"])
		}}, 201, 422, 1, "", ""},
		"path only": {Kind{Print: func(r *http.Request, _ []byte) string { return r.URL.Path }}, 201, 201, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, Config{Kind: row.kind}, func(t *testing.T, s *Server, c *http.Client) {
				require.Equal(t, 201, answered(s, c, t, `{"amount":1}`).Status)
				again := answered(s, c, t, `{"amount":1}`)
				assert.Equal(t, row.again, again.Status)
				if row.body != "" {
					assert.JSONEq(t, row.body, again.Body)
					assert.Equal(t, "application/json", again.Header.Get("Content-Type"))
				}
				if row.headers != "" {
					assert.Equal(t, row.headers, again.Header.Get("Location"))
				}
				if name == "semantic" {
					assert.Equal(t, 201, answered(s, c, t, `{ "amount": 1.0 }`).Status, "the same, spelled otherwise")
				}
				assert.Equal(t, row.other, answered(s, c, t, `{"amount":2}`).Status)
				assert.Len(t, s.Effects("k"), row.effects)
				if row.effects > 1 {
					assert.ErrorContains(t, s.Verify(), "doubled", "the truth is not softened")
				}
			})
		})
	}
	t.Run("a stored failure is no success", func(t *testing.T) {
		in(t, Config{Kind: Kind{Repeat: 200}}, func(t *testing.T, s *Server, c *http.Client) {
			for range 2 {
				assert.Equal(t, 402, answered(s, c, t, `{"amount":100001}`).Status)
			}
		})
	})
	t.Run("the id is in the body", func(t *testing.T) {
		assert.Equal(t, "17", (&answer{body: []byte(`{"id":17}`)}).made())
		assert.Equal(t, "9007199254740993", (&answer{body: []byte(`{"id":9007199254740993}`)}).made())
		assert.Empty(t, (&answer{body: []byte(`[]`)}).made())
	})
}

// In progress, in every way that a server has.
func TestKindBusy(t *testing.T) {
	interchecks := contract.Interchecks()
	bare := contract.Contract{Answers: []contract.Match{{Status: 409, Means: contract.Mismatch}}}
	for name, row := range map[string]struct {
		rules      contract.Contract
		busy       string
		status     int
		retryAfter string
	}{
		"409":             {contract.Default(), "", 409, "1"},
		"409 but no wait": {contract.Default(), "409", 409, ""},
		"423":             {contract.Default(), "423", 423, ""},
		"429":             {contract.Default(), "429 retry-after=2", 429, "2"},
		"503":             {contract.Default(), "503 retry-after=1", 503, "1"},
		"422 with a code": {contract.Adyen(), "", 422, "1"},
		"its second code": {contract.Adyen(), "409 body=`{\"errorCode\":\"704\"}`", 409, ""},
		"200":             {contract.Default(), "200 body=`{\"errors\":[{\"code\":\"CONCURRENT\"}]}`", 200, ""},
		// Neither says how; a bare 409 would be the answer to another question.
		"409 is settled":  {interchecks, "", 503, "1"},
		"409 is mismatch": {bare, "", 503, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, Config{Contract: row.rules, Kind: Kind{Busy: row.busy}}, func(t *testing.T, s *Server, c *http.Client) {
				s.On("POST /orders").Then("crash@claimed")
				require.Error(t, postOrder(t, c, s, "k", "{}").Err)
				got := postOrder(t, c, s, "k", "{}")
				assert.Equal(t, row.status, got.Status)
				assert.Equal(t, row.retryAfter, got.Header.Get("Retry-After"))
				assert.Equal(t, Busy, s.Requests("k")[1].Answer)
				if row.busy == "" {
					means := row.rules.Classify(got.Status, got.Header, []byte(got.Body))
					assert.Contains(t, []contract.Meaning{contract.InProgress, contract.Unclassified}, means)
				}
			})
		})
	}
}

func TestKindScope(t *testing.T) {
	region := func(r *http.Request) string { return r.Header.Get("Region") }
	in(t, Config{Kind: Kind{Scope: region}}, func(t *testing.T, s *Server, c *http.Client) {
		first := postOrder(t, c, s, "k", "{}", "Region: eu", "X-Api-Key: a")
		assert.Equal(t, first.Body, postOrder(t, c, s, "k", "{}", "Region: eu", "X-Api-Key: b").Body, "of another caller")
		assert.NotEqual(t, first.Body, postOrder(t, c, s, "k", "{}", "Region: us", "X-Api-Key: a").Body, "failed over")
		assert.ErrorContains(t, s.Verify(), "doubled")
		s.On("POST /orders").Then("crash@claimed")
		c.CloseIdleConnections()
		require.Error(t, postOrder(t, c, s, "dead", "{}", "Region: eu").Err)
		assert.ErrorContains(t, s.Verify(), `unfinished: key "dead"`)
	})
}

// A failure that poisons its key: the claim stays, though no work is under way.
func TestKindPoison(t *testing.T) {
	in(t, Config{Contract: contract.Contract{Lease: 24 * time.Hour}, Kind: Kind{Poison: 500}}, func(t *testing.T, s *Server, c *http.Client) {
		s.On("POST /orders").Then("500@worked")
		assert.Equal(t, 500, postOrder(t, c, s, "k", "{}").Status)
		for range 2 {
			assert.Equal(t, 409, postOrder(t, c, s, "k", "{}").Status)
			s.Advance(23 * time.Hour)
		}
		assert.ErrorContains(t, s.Verify(), "unfinished")
		assert.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status, "a day later")
	})
}

func TestKindHints(t *testing.T) {
	body := contract.Contract{Hints: []contract.Hint{{Path: "error.retryable", Retry: "yes", Stop: "no"}}}
	silent := contract.Contract{Hints: []contract.Hint{{Header: "X-Should-Retry", Retry: "true", SilenceStops: true}}}
	for name, row := range map[string]struct {
		rules                contract.Contract
		busy, mismatch, fail string
	}{
		"header": {contract.Stripe(), "true", "false", "false"},
		"body":   {body, "yes", "no", "no"},
		"silent": {silent, "true", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hint := func(got seen) string {
				header := got.Header.Get("Stripe-Should-Retry") + got.Header.Get("X-Should-Retry")
				if _, value, ok := strings.Cut(got.Body, `"retryable":"`); ok {
					value, _, _ = strings.Cut(value, `"`)
					return header + value
				}
				return header
			}
			in(t, Config{Contract: row.rules, Kind: Kind{Hints: true}}, func(t *testing.T, s *Server, c *http.Client) {
				s.On("POST /orders").Key("k").Then("crash@claimed")
				require.Error(t, postOrder(t, c, s, "k", "{}").Err)
				assert.Equal(t, row.busy, hint(postOrder(t, c, s, "k", "{}")))
				assert.Equal(t, row.mismatch, hint(postOrder(t, c, s, "k", "{ }")))
				assert.Empty(t, hint(postOrder(t, c, s, "f", `{"amount":100001}`)), "the handler's own answer")
				assert.Equal(t, row.fail, hint(postOrder(t, c, s, "f", `{"amount":100001}`)))
			})
		})
	}
}

func TestKindIsChecked(t *testing.T) {
	for kind, want := range map[*Kind]string{
		{Busy: "99"}:            `mockserver: Kind.Busy: mockserver: fault "99@head ": 99 is not a status from 200 to 599`,
		{Mismatch: "pass"}:      `Kind.Mismatch`,
		{Again: "409 send=1"}:   `Kind.Again: "409 send=1" is no answer`,
		{Busy: "409 body=`x"}:   `the quotes`,
		{Busy: "409 retry=1"}:   `has no option "retry=1"`,
		{Busy: "409; 410@head"}: `Kind.Busy`,
		{Repeat: 20}:            `mockserver: Kind.Repeat: 20 is not a status from 200 to 599`,
		{Poison: 5}:             `Kind.Poison: 5`,
	} {
		_, err := Start(Config{Kind: *kind})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "\n")
	}
}
