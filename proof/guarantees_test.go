package proof_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testNames returns the tests of the module, of all its packages.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	return names
}

// Each test that docs/guarantees.md names exists, each promise there names one,
// and each rule is listed with the tests that hold it.
func TestGuaranteesNameTests(t *testing.T) {
	text, err := os.ReadFile("../docs/guarantees.md")
	require.NoError(t, err)
	names := testNames(t)
	name := regexp.MustCompile(`\b(?:Test|Fuzz|Example)[A-Z][A-Za-z0-9_]*`)
	for _, n := range name.FindAllString(string(text), -1) {
		assert.Contains(t, names, n)
	}
	for section := range strings.SplitSeq(string(text), "\n### ") {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, "#") {
			assert.Regexp(t, name, body, "the promise %q names no test", title)
		}
	}
	for rule, tests := range rules() {
		line := regexp.MustCompile("(?m)^\\| " + rule + " \\|.*$").FindString(string(text))
		require.NotEmpty(t, line, rule)
		for _, test := range tests {
			assert.Contains(t, line, test, rule)
		}
	}
}
