package contract_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem/contract"
)

func TestClassifyByDefault(t *testing.T) {
	for _, c := range []contract.Contract{{}, contract.Default(), contract.IETF()} {
		for status := 100; status < 600; status++ {
			want := contract.Unclassified
			switch status {
			case 409:
				want = contract.InProgress
			case 422:
				want = contract.Mismatch
			}
			assert.Equal(t, want, c.Classify(status, nil, nil), "%d", status)
			assert.False(t, c.Peeks(status), "%d", status)
		}
	}
}

func TestClassify(t *testing.T) {
	code := func(status int, path, value string, means contract.Meaning) contract.Match {
		return contract.Match{Status: status, Path: path, Value: value, Means: means}
	}
	one := func(m contract.Match) []contract.Match { return []contract.Match{m} }
	for _, tt := range []struct {
		name    string
		answers []contract.Match
		status  int
		body    string
		want    contract.Meaning
	}{
		{"none: empty list", []contract.Match{}, 409, ``, contract.Unclassified},
		{"status", one(code(423, "", "", contract.InProgress)), 423, ``, contract.InProgress},
		{"another status", one(code(423, "", "", contract.InProgress)), 409, ``, contract.Unclassified},

		{"order: the code comes first", []contract.Match{code(409, "code", "mismatch", contract.Mismatch), code(409, "", "", contract.InProgress)}, 409, `{"code":"mismatch"}`, contract.Mismatch},
		{"order: another code falls through", []contract.Match{code(409, "code", "mismatch", contract.Mismatch), code(409, "", "", contract.InProgress)}, 409, `{"code":"other"}`, contract.InProgress},
		{"order: the status comes first", []contract.Match{code(409, "", "", contract.InProgress), code(409, "code", "mismatch", contract.Mismatch)}, 409, `{"code":"mismatch"}`, contract.InProgress},
		{"order: of the list, not of the body", []contract.Match{code(409, "code", "b", contract.Done), code(409, "code", "a", contract.Mismatch)}, 409, `{"code":"a","x":1,"code":"b"}`, contract.Done},
		{"order: paths that alternate", []contract.Match{code(409, "a", "1", contract.Done), code(409, "b", "1", contract.Final), code(409, "a", "2", contract.Mismatch)}, 409, `{"a":2,"b":2}`, contract.Mismatch},

		{"status 0: any failure", one(code(0, "", "", contract.Final)), 404, ``, contract.Final},
		{"status 0: not 200", one(code(0, "", "", contract.Final)), 200, ``, contract.Unclassified},
		{"status 0: not 299", one(code(0, "", "", contract.Final)), 299, ``, contract.Unclassified},
		{"status 0: 300", one(code(0, "", "", contract.Final)), 300, ``, contract.Final},
		{"status 0: with a code", one(code(0, "code", "x", contract.Final)), 503, `{"code":"x"}`, contract.Final},
		{"status 0: a code does not reach 2xx", one(code(0, "code", "x", contract.Final)), 201, `{"code":"x"}`, contract.Unclassified},
		{"2xx by its status and a code", one(code(200, "code", "x", contract.InProgress)), 200, `{"code":"x"}`, contract.InProgress},

		{"422 is not in progress by status", one(code(422, "", "", contract.InProgress)), 422, ``, contract.Unclassified},
		{"422 is not transient by status", one(code(422, "", "", contract.Transient)), 422, ``, contract.Unclassified},
		{"422 is not transient by status 0", one(code(0, "", "", contract.Transient)), 422, ``, contract.Unclassified},
		{"422 is not in progress because a member is there", one(code(422, "code", "", contract.InProgress)), 422, `{"code":"x"}`, contract.Unclassified},
		{"422 is in progress by its code", one(code(422, "code", "704", contract.InProgress)), 422, `{"code":"704"}`, contract.InProgress},
		{"422 is in progress by a code under status 0", one(code(0, "code", "704", contract.InProgress)), 422, `{"code":"704"}`, contract.InProgress},
		{"422 may be final by status 0", one(code(0, "", "", contract.Final)), 422, ``, contract.Final},
		{"422: the guard passes on to the next", []contract.Match{code(422, "", "", contract.InProgress), code(422, "", "", contract.Mismatch)}, 422, ``, contract.Mismatch},

		{"path", one(code(400, "error.code", "x", contract.Done)), 400, `{"a":{"code":"x"},"error":{"b":1,"code":"x"}}`, contract.Done},
		{"path: at another depth", one(code(400, "error.code", "x", contract.Done)), 400, `{"code":"x","error":{"inner":{"code":"x"}}}`, contract.Unclassified},
		{"path: case counts", one(code(400, "code", "x", contract.Done)), 400, `{"Code":"x"}`, contract.Unclassified},
		{"value: case counts", one(code(400, "code", "x", contract.Done)), 400, `{"code":"X"}`, contract.Unclassified},
		{"path: through a scalar", one(code(400, "code.sub", "x", contract.Done)), 400, `{"code":"x"}`, contract.Unclassified},
		{"path: an escaped name and value", one(code(400, "code", "x", contract.Done)), 400, `{"c\u006fde":"\u0078"}`, contract.Done},
		{"array: second element", one(code(400, "errors.reason", "x", contract.Done)), 400, `{"errors":[{"reason":"y"},{"reason":"x"}]}`, contract.Done},
		{"array: at the top", one(code(400, "code", "x", contract.Done)), 400, `[1,{"code":"x"}]`, contract.Done},
		{"array: of arrays", one(code(400, "a.b", "x", contract.Done)), 400, `{"a":[[],[[{"b":["y",["x"]]}]]]}`, contract.Done},
		{"array: of scalars", one(code(400, "codes", "x", contract.Done)), 400, `{"codes":["y","x"]}`, contract.Done},
		{"array: broken inside", one(code(400, "codes", "x", contract.Done)), 400, `{"codes":["y",}`, contract.Unclassified},
		{"array: closed by a brace", one(code(400, "code", "x", contract.Done)), 400, `{"code":["y"},"code":"x"}`, contract.Unclassified},

		{"presence: string", one(code(400, "code", "", contract.Done)), 400, `{"code":"anything"}`, contract.Done},
		{"presence: empty string", one(code(400, "code", "", contract.Done)), 400, `{"code":""}`, contract.Done},
		{"presence: false", one(code(400, "code", "", contract.Done)), 400, `{"code":false}`, contract.Done},
		{"presence: object", one(code(400, "code", "", contract.Done)), 400, `{"code":{}}`, contract.Done},
		{"presence: null is absent", one(code(400, "code", "", contract.Done)), 400, `{"code":null}`, contract.Unclassified},
		{"presence: empty array is absent", one(code(400, "code", "", contract.Done)), 400, `{"code":[]}`, contract.Unclassified},
		{"presence: absent", one(code(400, "code", "", contract.Done)), 400, `{}`, contract.Unclassified},

		{"number", one(code(400, "code", "704", contract.Done)), 400, `{"code":704}`, contract.Done},
		{"number: as it is written", one(code(400, "code", "704", contract.Done)), 400, `{"code":704.0}`, contract.Unclassified},
		{"true", one(code(400, "retry", "true", contract.Transient)), 400, `{"retry":true}`, contract.Transient},
		{"false", one(code(400, "retry", "false", contract.Final)), 400, `{"retry":false}`, contract.Final},
		{"null is no word", one(code(400, "code", "null", contract.Done)), 400, `{"code":null}`, contract.Unclassified},

		{"duplicates: the first", one(code(400, "code", "x", contract.Done)), 400, `{"code":"x","code":"y"}`, contract.Done},
		{"duplicates: the last", one(code(400, "code", "x", contract.Done)), 400, `{"code":"y","code":"x"}`, contract.Done},

		{"cut: after the member", one(code(400, "code", "x", contract.Done)), 400, `{"code":"x","mess`, contract.Done},
		{"cut: before the member", one(code(400, "code", "x", contract.Done)), 400, `{"message":"abc`, contract.Unclassified},
		{"cut: inside the name", one(code(400, "code", "x", contract.Done)), 400, `{"co`, contract.Unclassified},
		{"cut: inside the string", one(code(400, "code", "x", contract.Done)), 400, `{"code":"x`, contract.Unclassified},
		{"cut: inside the number", one(code(400, "code", "70", contract.Done)), 400, `{"code":70`, contract.Unclassified},
		{"cut: inside the word", one(code(400, "code", "true", contract.Done)), 400, `{"code":tru`, contract.Unclassified},
		{"cut: before the end", one(code(400, "code", "x", contract.Done)), 400, `{"code":"x"`, contract.Done},
		{"broken before the member", one(code(400, "code", "x", contract.Done)), 400, `{"a":oops,"code":"x"}`, contract.Unclassified},
		{"broken after the member", one(code(400, "code", "x", contract.Done)), 400, `{"code":"x",oops`, contract.Done},
		{"broken: a name that is no string", one(code(400, "code", "x", contract.Done)), 400, `{1:2,"code":"x"}`, contract.Unclassified},
		{"skipped values of all kinds", one(code(400, "code", "x", contract.Done)), 400, ` {"a":{"b":[1,{"code":"y"}]},"c":null,"d":[],"e":true,"code" : "x"}`, contract.Done},

		{"no body", one(code(400, "code", "x", contract.Done)), 400, ``, contract.Unclassified},
		{"no JSON", one(code(400, "code", "x", contract.Done)), 400, `<html>code x</html>`, contract.Unclassified},
		{"a bare string", one(code(400, "code", "x", contract.Done)), 400, `"x"`, contract.Unclassified},

		{"type: the whole URI", one(code(409, "type", "https://api.example/p/in-use", contract.InProgress)), 409, `{"type":"https://api.example/p/in-use"}`, contract.InProgress},
		{"type: the last segment", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"https://api.example/p/in-use"}`, contract.InProgress},
		{"type: the fragment", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"https://api.example/p#in-use"}`, contract.InProgress},
		{"type: of a URN", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"urn:example:in-use"}`, contract.InProgress},
		{"type: alone", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"in-use"}`, contract.InProgress},
		{"type: not a part of a segment", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"https://api.example/p/not-in-use"}`, contract.Unclassified},
		{"type: not in the middle", one(code(409, "type", "in-use", contract.InProgress)), 409, `{"type":"https://api.example/in-use/p"}`, contract.Unclassified},
		{"type: only at the top", one(code(409, "error.type", "in-use", contract.InProgress)), 409, `{"error":{"type":"https://api.example/in-use"}}`, contract.Unclassified},

		{"nesting: 60 levels are walked", one(code(400, "code", "x", contract.Done)), 400, strings.Repeat("[", 60) + `{"code":"x"}`, contract.Done},
		{"nesting: 100,000 levels are not", one(code(400, "code", "x", contract.Done)), 400, strings.Repeat("[", 100_000) + `{"code":"x"}`, contract.Unclassified},
		{"nesting: beside the path, any depth is skipped", one(code(400, "code", "x", contract.Done)), 400, `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"code":"x"}`, contract.Done},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := contract.Contract{Answers: tt.answers}
			assert.Equal(t, tt.want, c.Classify(tt.status, http.Header{}, []byte(tt.body)))
		})
	}
}

// What a cut prefix says, the whole body says as well, for a list of one match:
// cutting can hide a code but never invent one.
func TestClassifyNeverInventsACode(t *testing.T) {
	body := `{"type":"https://e.example/p/b","n":12345,"ok":true,"errors":[{"code":"abc"},{"code":"ab"}],"code":"x"}`
	assert.True(t, json.Valid([]byte(body)))
	for _, m := range []contract.Match{
		{Path: "type", Value: "p"}, {Path: "type", Value: "b"}, {Path: "n", Value: "123"}, {Path: "n", Value: "12345"},
		{Path: "ok", Value: "true"}, {Path: "errors.code", Value: "a"}, {Path: "errors.code", Value: "ab"}, {Path: "code", Value: "x"},
	} {
		m.Means = contract.Done
		c := contract.Contract{Answers: []contract.Match{m}}
		whole := c.Classify(400, nil, []byte(body))
		for n := range len(body) {
			if c.Classify(400, nil, []byte(body[:n])) == contract.Done {
				assert.Equal(t, contract.Done, whole, "%+v is read in %q", m, body[:n])
			}
		}
	}
}

func TestPeeks(t *testing.T) {
	c := contract.Contract{Answers: []contract.Match{
		{Status: 409, Path: "code", Value: "x", Means: contract.Done},
		{Status: 422, Means: contract.Mismatch},
	}}
	assert.True(t, c.Peeks(409))
	assert.False(t, c.Peeks(422), "a status alone needs no body")
	assert.False(t, c.Peeks(500))

	c = contract.Contract{Answers: []contract.Match{{Path: "code", Value: "x", Means: contract.Done}}}
	assert.True(t, c.Peeks(500))
	assert.False(t, c.Peeks(200))

	c = contract.Contract{Answers: []contract.Match{{Status: 200, Path: "code", Value: "x", Means: contract.InProgress}}}
	assert.True(t, c.Peeks(200))

	c = contract.Contract{Hints: []contract.Hint{{Header: "X-Should-Retry", Stop: "false"}}}
	assert.False(t, c.Peeks(500))
	c.Hints = append(c.Hints, contract.Hint{Path: "retryable", Retry: "true"})
	assert.True(t, c.Peeks(500))
	assert.False(t, c.Peeks(201), "hints are read on failures only")
}

func TestMeaningString(t *testing.T) {
	var got []string
	for m := contract.Unclassified; m <= contract.Transient+1; m++ {
		got = append(got, m.String())
	}
	assert.Equal(t, []string{
		"Unclassified", "InProgress", "Mismatch", "Done", "KeyRefused", "Final", "Settled", "Transient", "Meaning(8)",
	}, got)
	assert.Equal(t, "AdviseStop", contract.AdviseStop.String())
	assert.Equal(t, "InBody", contract.InBody.String())
	assert.Equal(t, "StoredAll", contract.StoredAll.String())
	assert.Equal(t, "FormatHex", contract.FormatHex.String())
}
