// Package page holds the outputs in examples/README.md against what the examples
// print today.
package page

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shows checks that the section of an example shows this output, but for times,
// durations, ports, keys and what differs matches: of each match the first group
// is compared alone. It is called by the example's own test.
func Shows(t *testing.T, example, output string, differs ...*regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## "+example+"\n")
	require.True(t, found, "examples/README.md has no section %q", example)
	section, _, _ = strings.Cut(section, "\n## ")
	block := regexp.MustCompile("(?s)```text\n(.*?)```").FindStringSubmatch(section)
	require.NotNil(t, block, "examples/README.md shows no output of %s", example)
	assert.Equal(t, plain(output, differs), plain(block[1], differs), "examples/README.md shows another output of %s than it has", example)
}

// plain takes out what differs from run to run.
func plain(text string, differs []*regexp.Regexp) string {
	for _, d := range differs {
		text = d.ReplaceAllString(text, "$1")
	}
	for _, p := range []struct{ what, with string }{
		{`\b[0-9a-f]{8}…`, "KEY…"},
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`\b\d+(\.\d+)?m?s\b`, "TIME"},
		{` +`, " "},
		{`(?m) $`, ""},
	} {
		text = regexp.MustCompile(p.what).ReplaceAllString(text, p.with)
	}
	return strings.TrimSpace(text)
}
