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

// Every Go snippet of the README stands, but for its indentation, in a file that
// is compiled.
func TestReadmeSnippets(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var code strings.Builder
	add := func(path string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		code.WriteString(flush(string(text)))
	}
	require.NoError(t, filepath.WalkDir("examples", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			add(path)
		}
		return err
	}))
	add("example_test.go")
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.GreaterOrEqual(t, len(snippets), 3)
	for _, s := range snippets {
		if !strings.Contains(code.String(), flush(s[1])) {
			t.Errorf("this snippet is not compiled anywhere:\n%s", s[1])
		}
	}
}

// flush removes the indentation of every line.
func flush(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

// The two commands of the README are those that CI runs.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	ci, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(string(readme))
	require.NotNil(t, block)
	commands := strings.Split(strings.TrimSpace(block[1]), "\n")
	require.Len(t, commands, 2)
	for _, line := range commands {
		command, _, _ := strings.Cut(line, "#")
		assert.Contains(t, string(ci), "\n"+strings.TrimSpace(command))
	}
}

// Every link of the Markdown files to a file here leads somewhere.
func TestLinks(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]))
			assert.NoError(t, err, "%s links to %s", path, m[1])
		}
		return nil
	}))
}
