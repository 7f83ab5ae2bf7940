package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each mutant's text stands in its file once, within one function, so that the
// list is found to be out of date before anybody runs it.
func TestMutantsAreCurrent(t *testing.T) {
	require.GreaterOrEqual(t, len(all()), 40)
	seen := map[mutant]bool{}
	for _, m := range all() {
		source, err := os.ReadFile(filepath.Join("..", m.file))
		require.NoError(t, err)
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, m.file, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		_, err = concerned(set, tree, source, m)
		assert.NoError(t, err, "%s: %s: %q", m.file, m.rule, m.old)
		assert.NotEqual(t, m.old, m.new, m.rule)
		id := mutant{file: m.file, old: m.old, new: m.new}
		assert.False(t, seen[id], "%s: %s: it is there twice", m.file, m.rule)
		seen[id] = true
	}
}
