package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/idem-go/idem/contract"
)

// Whatever the body: FromBody does not panic, and of a JSON object it finds the
// member that encoding/json finds, unless the body has two of that name.
func FuzzFromBody(f *testing.F) {
	for _, body := range []string{
		"", "null", "{}", `{"key":"k"}`, `{"key":"k","key":"k"}`, `{"key":"a","key":"b"}`, `{"key":""}`, `{"key":null}`,
		`{"key":12}`, `{"key":["a"]}`, `{"key":{"key":"k"}}`, `{"a":{"key":"no"},"key":"yes"}`, `{"Key":"no"}`,
		`{"\u006bey":"k"}`, `{"key":"\u00e9\"\\"}`, `[{"key":"k"}]`, `{"key":"k"`, `{"key":"k"} {"key":"l"}`, "\xef\xbb\xbf{\"key\":\"k\"}",
		strings.Repeat("[", 1000), `{"key":"` + strings.Repeat("k", 300) + `"}`,
	} {
		f.Add([]byte(body), "key")
		f.Add([]byte(body), "a.key")
	}
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		c := contract.Contract{Place: contract.InBody, Header: path}
		got, err := c.FromBody(body)
		if err != nil && got != "" {
			t.Fatalf("both %q and %v", got, err)
		}
		if err != nil || strings.ContainsAny(path, ".") || path == "" {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil || members == nil {
			return
		}
		var want string
		switch raw, there := members[path]; {
		case !there && got != "":
			t.Fatalf("%q has no member %q, and its key is %q", body, path, got)
		case there && json.Unmarshal(raw, &want) == nil && want != "" && got != want:
			t.Fatalf("the key of %q is %q, not %q", body, got, want)
		}
	})
}
