package contract_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem/contract"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestAdvice(t *testing.T) {
	transient := []contract.Hint{{Header: "Transient-Error", Retry: "true", Stop: "false", SilenceStops: true}}
	member := []contract.Hint{{Path: "error.retryable", Retry: "true", Stop: "false"}}
	two := []contract.Hint{
		{Header: "First", Retry: "yes", Stop: "no", SilenceStops: true},
		{Header: "Second", Retry: "yes", Stop: "no"},
	}
	for _, tt := range []struct {
		name   string
		hints  []contract.Hint
		status int
		header http.Header
		body   string
		want   contract.Advice
	}{
		{"default: silence", nil, 500, header(), ``, contract.NoAdvice},
		{"default: no header at all", nil, 500, nil, ``, contract.NoAdvice},
		{"default: retry", nil, 400, header("X-Should-Retry", "true"), ``, contract.AdviseRetry},
		{"default: stop", nil, 500, header("x-should-retry", "false"), ``, contract.AdviseStop},
		{"default: Stripe's", nil, 500, header("Stripe-Should-Retry", "FALSE"), ``, contract.AdviseStop},
		{"default: another word", nil, 500, header("X-Should-Retry", "maybe"), ``, contract.NoAdvice},
		{"default: the first speaks before the second", nil, 500, header("Stripe-Should-Retry", "false", "X-Should-Retry", "true"), ``, contract.AdviseRetry},
		{"default: another word leaves the second to speak", nil, 500, header("Stripe-Should-Retry", "false", "X-Should-Retry", "maybe"), ``, contract.AdviseStop},
		{"not on 2xx", nil, 200, header("X-Should-Retry", "true"), ``, contract.NoAdvice},
		{"on 3xx", nil, 300, header("X-Should-Retry", "false"), ``, contract.AdviseStop},
		{"none", []contract.Hint{}, 500, header("X-Should-Retry", "true"), ``, contract.NoAdvice},

		{"silence stops on JSON", transient, 500, header("Content-Type", "application/json"), `{}`, contract.AdviseStop},
		{"silence stops on problem+json", transient, 500, header("Content-Type", "Application/Problem+JSON; charset=utf-8"), `{}`, contract.AdviseStop},
		{"silence of a gateway's page says nothing", transient, 502, header("Content-Type", "text/html"), `<html>`, contract.NoAdvice},
		{"silence without a type says nothing", transient, 502, header(), ``, contract.NoAdvice},
		{"silence on 2xx says nothing", transient, 200, header("Content-Type", "application/json"), `{}`, contract.NoAdvice},
		{"a word that is neither is no silence", transient, 500, header("Content-Type", "application/json", "Transient-Error", "perhaps"), `{}`, contract.NoAdvice},
		{"the word before the silence", transient, 500, header("Content-Type", "application/json", "Transient-Error", "true"), `{}`, contract.AdviseRetry},
		{"a later word before an earlier silence", two, 500, header("Content-Type", "application/json", "Second", "yes"), `{}`, contract.AdviseRetry},
		{"silence of all", two, 500, header("Content-Type", "application/json"), `{}`, contract.AdviseStop},

		{"silence gives way to a 409", transient, 409, header("Content-Type", "application/json"), `{}`, contract.NoAdvice},
		{"silence does not give way to a 422", transient, 422, header("Content-Type", "application/json"), `{}`, contract.AdviseStop},
		{"a word does not give way", transient, 409, header("Content-Type", "application/json", "Transient-Error", "false"), `{}`, contract.AdviseStop},

		{"member: true", member, 503, header(), `{"error":{"retryable":true}}`, contract.AdviseRetry},
		{"member: false", member, 503, header(), `{"error":{"retryable":false}}`, contract.AdviseStop},
		{"member: as a string", member, 503, header(), `{"error":{"retryable":"true"}}`, contract.AdviseRetry},
		{"member: null", member, 503, header(), `{"error":{"retryable":null}}`, contract.NoAdvice},
		{"member: an object", member, 503, header(), `{"error":{"retryable":{}}}`, contract.NoAdvice},
		{"member: the first of several", member, 503, header(), `{"error":[{},{"retryable":false},{"retryable":true}]}`, contract.AdviseStop},
		{"member: cut", member, 503, header(), `{"error":{"retryable":tr`, contract.NoAdvice},

		{"only stop: an empty value is not the missing retry", []contract.Hint{{Header: "No-Retry", Stop: "1"}}, 500, header("No-Retry", ""), ``, contract.NoAdvice},
		{"only stop", []contract.Hint{{Header: "No-Retry", Stop: "1"}}, 500, header("No-Retry", "1"), ``, contract.AdviseStop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := contract.Contract{Hints: tt.hints}
			assert.Equal(t, tt.want, c.Advice(tt.status, tt.header, []byte(tt.body)))
		})
	}
}

func TestIsJSON(t *testing.T) {
	for value, want := range map[string]bool{
		"application/json": true, "APPLICATION/JSON ; charset=utf-8": true, "text/json": true,
		"application/problem+json": true, "application/vnd.api+json;v=1": true,
		"": false, "text/html": false, "application/jsonp": false, "application/json-seq": false, "json": false,
	} {
		assert.Equal(t, want, contract.IsJSON(header("Content-Type", value)), "%q", value)
	}
	assert.False(t, contract.IsJSON(nil))
}
