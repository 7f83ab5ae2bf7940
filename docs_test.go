package idem_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every Go snippet of docs/clients.md stands, but for its indentation, in an
// example that is compiled, and every example with a module of its own for a
// client is in its table.
func TestClientSnippets(t *testing.T) {
	text, err := os.ReadFile("docs/clients.md")
	require.NoError(t, err)
	var examples []string
	require.NoError(t, filepath.WalkDir("examples", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			var code []byte
			code, err = os.ReadFile(path)
			examples = append(examples, flush(string(code)))
		}
		return err
	}))
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(snippets), 10)
	for _, s := range snippets {
		found := false
		for _, code := range examples {
			found = found || strings.Contains(code, flush(s[1]))
		}
		assert.True(t, found, "this snippet is compiled nowhere:\n%s", s[1])
	}
	for _, name := range []string{"sdk", "oapi", "ogen", "stripe", "openai", "connect", "github"} {
		if _, err := os.Stat(filepath.Join("examples", name)); err == nil {
			assert.Contains(t, string(text), "(../examples/"+name+") |")
		}
	}
}
