package idem_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// caseFamilies are the public bug reports that are turned into tests: row n of a
// family is TestCase_<family>_<n>, with n from 1 to the number given here. Each
// test names the report that it comes from.
var caseFamilies = []struct {
	name string
	rows int
}{
	{"KEY", 12},   // keys missing, regenerated, overwritten, colliding
	{"LIFE", 13},  // restart, expiry, payload, scope, length, quoting
	{"CONF", 11},  // 409, 422 and other 4xx
	{"RA", 12},    // Retry-After
	{"BO", 12},    // backoff and attempt counts
	{"CTX", 13},   // cancels, deadlines, timeouts
	{"BODY", 13},  // request bodies
	{"RESP", 12},  // answers
	{"CONN", 11},  // connections, HTTP/1.1 and HTTP/2
	{"REDIR", 6},  // redirects
	{"CLS", 10},   // sorting of errors
	{"RACE", 9},   // data races
	{"SEC", 6},    // what leaks
	{"LOAD", 6},   // storms, budgets, layers of retries
	{"MOCK", 9},   // servers that tests are written against
	{"REPLAY", 7}, // replayed answers
}

// Each row has its test, and no test names a row that is not there.
func TestCaseIndex(t *testing.T) {
	wanted := map[string]bool{}
	for _, f := range caseFamilies {
		for n := range f.rows {
			wanted[fmt.Sprintf("TestCase_%s_%d", f.name, n+1)] = true
		}
	}
	require.Len(t, wanted, 162)
	found := testNames(t, ".")
	var missing []string
	for name := range wanted {
		if found[name] == "" {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	assert.Empty(t, missing, "rows without a test")
	for name, file := range found {
		if row := rowOf(name); row != "" {
			assert.True(t, wanted[row], "%s in %s names no row", name, file)
		}
	}
}

// rowOf returns the row that a test belongs to, which may have more than one:
// TestCase_CTX_11_Waiting is of TestCase_CTX_11.
func rowOf(name string) string {
	parts := strings.SplitN(name, "_", 4)
	if len(parts) < 3 || parts[0] != "TestCase" {
		return ""
	}
	return strings.Join(parts[:3], "_")
}

// testNames returns the functions of every test file of the module under root,
// with their files.
func testNames(t *testing.T, root string) map[string]string {
	t.Helper()
	names := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, other := os.Stat(filepath.Join(path, "go.mod"))
			if d.Name() == "testdata" || path != root && (other == nil || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
				names[f.Name.Name] = path
			}
		}
		return nil
	})
	require.NoError(t, err)
	return names
}
