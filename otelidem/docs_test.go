package otelidem_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every Go snippet of docs/observing.md stands, but for its indentation, in an
// example here, and every metric and label that it names is exported.
func TestObservingPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "observing.md"))
	require.NoError(t, err)
	files, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.WriteString(flush(string(text)))
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, snippets, 5)
	for _, s := range snippets {
		assert.Contains(t, code.String(), flush(s[1]), "this snippet is compiled nowhere")
	}

	samples := exported(t)
	known := map[string]bool{}
	for sample, labels := range samples {
		known[sample], known[suffix.ReplaceAllString(sample, "")] = true, true
		maps.Copy(known, labels)
	}
	named := regexp.MustCompile(`\b(idem_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	for _, sel := range named {
		assert.True(t, known[sel[1]], "%s is not exported", sel[1])
		for _, label := range labelNames(sel[2]) {
			assert.True(t, samples[sel[1]][label], "%s has no label %s", sel[1], label)
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
