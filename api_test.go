package idem_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files anew")

// The exported surface is held in testdata/api.txt, one declaration a line: a
// change to it is seen in review, and needs a reason. To write it anew:
//
//	go test -run TestExportedSurface -update .
func TestExportedSurface(t *testing.T) {
	var lines []string
	for _, dir := range []string{".", "contract", "mockserver", "journal", "otelidem"} {
		lines = append(lines, surface(t, dir)...)
	}
	golden(t, filepath.Join("testdata", "api.txt"), strings.Join(lines, "\n")+"\n")
}

// golden compares got with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s is not current; -update writes it", file)
}

// surface lists the exported declarations of the package in dir.
func surface(t *testing.T, dir string) (lines []string) {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil
	}
	pkg, err := doc.NewFromFiles(fset, files, "github.com/idem-go/idem/"+dir)
	require.NoError(t, err)
	add := func(format string, args ...any) {
		lines = append(lines, "pkg "+pkg.Name+", "+fmt.Sprintf(format, args...))
	}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, name := range v.Names {
				if token.IsExported(name) {
					add("%s %s", v.Decl.Tok, name)
				}
			}
		}
	}
	funcs := func(fs []*doc.Func) {
		for _, f := range fs {
			f.Decl.Body, f.Decl.Doc = nil, nil
			add("%s", oneLine(t, fset, f.Decl))
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs)
	for _, typ := range pkg.Types {
		spec := typ.Decl.Specs[0].(*ast.TypeSpec)
		switch def := spec.Type.(type) {
		case *ast.StructType:
			add("type %s struct", typ.Name)
			for _, field := range def.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						add("type %s struct, %s %s", typ.Name, name.Name, oneLine(t, fset, field.Type))
					}
				}
				if len(field.Names) == 0 {
					if name := oneLine(t, fset, field.Type); ast.IsExported(strings.TrimPrefix(name, "*")) {
						add("type %s struct, embeds %s", typ.Name, name)
					}
				}
			}
		default:
			add("type %s %s", typ.Name, oneLine(t, fset, def))
		}
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	slices.Sort(lines)
	return lines
}

// oneLine prints a node in one line.
func oneLine(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, printer.Fprint(&b, fset, node))
	return strings.Join(strings.Fields(b.String()), " ")
}

// The budget of the root package: 26 types and functions, with constants, errors
// and methods beside them.
func TestSurfaceBudget(t *testing.T) {
	n := 0
	for _, line := range surface(t, ".") {
		decl := strings.TrimPrefix(line, "pkg idem, ")
		if strings.HasPrefix(decl, "func ") && !strings.HasPrefix(decl, "func (") ||
			strings.HasPrefix(decl, "type ") && !strings.Contains(decl, "struct, ") {
			n++
			t.Log(decl)
		}
	}
	require.LessOrEqual(t, n, 26)
}
