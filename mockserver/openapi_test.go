package mockserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The description of the API says what there is: every call, and every member.
func TestOpenAPI(t *testing.T) {
	var doc struct {
		Paths      map[string]map[string]map[string]any `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			} `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal([]byte(openAPI), &doc))
	var there, described []string
	for _, r := range (*Server)(nil).routes() {
		there = append(there, strings.NewReplacer("{$}", "", "...}", "}").Replace(r.pattern))
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	assert.ElementsMatch(t, there, described)
	for name, v := range map[string]any{
		"Server": serverDoc{}, "Script": scriptDoc{}, "Key": keyDoc{}, "Reply": replyDoc{}, "Request": requestDoc{}, "Effect": effectDoc{}, "Breach": breachDoc{},
	} {
		var members []string
		always := map[string]bool{}
		for field := range reflect.TypeOf(v).Fields() {
			member, option, _ := strings.Cut(field.Tag.Get("json"), ",")
			members, always[member] = append(members, member), option == ""
		}
		schema := doc.Components.Schemas[name]
		assert.ElementsMatch(t, members, slices.Collect(maps.Keys(schema.Properties)), name)
		for _, member := range schema.Required {
			assert.True(t, always[member], "%s.%s is not always there", name, member)
		}
	}
	s := New(t, Config{})
	for _, path := range []string{"/", "/openapi.json"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.Control().ServeHTTP(w, r)
		assert.Equal(t, 200, w.Code)
		assert.NotContains(t, w.Body.String(), "src=\"http", "nothing from elsewhere")
	}
}
