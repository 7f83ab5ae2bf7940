package idem_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every exported type has an example whose output is checked, in the packages that
// users meet, and every example has an output.
func TestEveryTypeHasAnExample(t *testing.T) {
	for _, dir := range []string{".", "contract", "mockserver", "journal", "otelidem"} {
		checked := map[string]bool{}
		for _, e := range examplesOf(t, dir) {
			assert.True(t, e.Output != "" || e.EmptyOutput, "%s: Example%s ends without // Output:", dir, e.Name)
			of, _, _ := strings.Cut(e.Name, "_") // a method's is its type's too
			checked[of] = true
		}
		types := 0
		for _, line := range surface(t, dir) {
			_, decl, _ := strings.Cut(line, ", type ")
			name, rest, _ := strings.Cut(decl, " ")
			if name == "" || strings.HasPrefix(rest, "struct,") { // not a type, or a field of one
				continue
			}
			types++
			assert.True(t, checked[name], "%s.%s has no example with an output", dir, name)
		}
		assert.NotZero(t, types, dir)
	}
}

// One example shows how not to do it: the mistake that looks right.
func TestOneExampleIsIncorrect(t *testing.T) {
	var names []string
	for _, e := range examplesOf(t, ".") {
		if strings.HasSuffix(e.Name, "_incorrect") {
			names = append(names, e.Name)
		}
	}
	assert.Equal(t, []string{"Open_incorrect"}, names)
}

// examplesOf returns the examples of the package in dir.
func examplesOf(t *testing.T, dir string) []*doc.Example {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	return doc.Examples(files...)
}
