package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// weave builds all mutants of one file into it: of each function that an edit
// concerns there is a copy for each edit, and the function itself only chooses
// among them by a number. So all mutants are compiled once.
//
// A copy is called "mutant_7.go" in what the compiler says of it.
func weave(dir, file string, mutants map[int]mutant) error {
	path := filepath.Join(dir, filepath.FromSlash(file))
	source, err := os.ReadFile(path) //nolint:gosec // of our own copy
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	edits := map[*ast.FuncDecl][]int{}
	var faults []error
	for n, m := range mutants {
		f, err := concerned(set, tree, source, m)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", m.file, m.rule, err))
			continue
		}
		edits[f] = append(edits[f], n)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	var out, copies bytes.Buffer
	last := 0
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || len(edits[f]) == 0 {
			continue
		}
		numbers := edits[f]
		sort.Ints(numbers)
		from, to := set.Position(f.Pos()).Offset, set.Position(f.End()).Offset
		text := string(source[from:to])
		out.Write(source[last:from])
		out.WriteString(chooser(set, source, f, numbers))
		last = to
		fmt.Fprintf(&copies, "\n%s\n", renamed(text, f.Name.Name, 0))
		for _, n := range numbers {
			edited := strings.Replace(text, mutants[n].old, mutants[n].new, 1)
			fmt.Fprintf(&copies, "\n//line mutant_%d.go:1\n%s\n", n, renamed(edited, f.Name.Name, n))
		}
	}
	out.Write(source[last:])
	out.Write(copies.Bytes())
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// concerned returns the function that m edits.
func concerned(set *token.FileSet, tree *ast.File, source []byte, m mutant) (*ast.FuncDecl, error) {
	if n := bytes.Count(source, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("its text stands %d times in the file", n)
	}
	from := bytes.Index(source, []byte(m.old))
	to := from + len(m.old)
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && set.Position(f.Pos()).Offset <= from && to <= set.Position(f.End()).Offset+1 { // a last line end may be part of it
			return f, nil
		}
	}
	return nil, errors.New("its text is not within one function")
}

// renamed is the source of a function under the name of its copy.
func renamed(text, name string, n int) string {
	return strings.Replace(text, name+"(", fmt.Sprintf("mutant%d_%s(", n, name), 1)
}

// chooser is the function that calls the copy of the number that is set.
func chooser(set *token.FileSet, source []byte, f *ast.FuncDecl, numbers []int) string {
	at := func(from, to token.Pos) string {
		return string(source[set.Position(from).Offset:set.Position(to).Offset])
	}
	receiver, object := "", ""
	if f.Recv != nil {
		field := f.Recv.List[0]
		object = "receiver"
		if len(field.Names) > 0 && field.Names[0].Name != "_" {
			object = field.Names[0].Name
		}
		receiver = "(" + object + " " + at(field.Type.Pos(), field.Type.End()) + ") "
		object += "."
	}
	var parameters, arguments []string
	asTheyAre := true
	for i, field := range f.Type.Params.List {
		kind := at(field.Type.Pos(), field.Type.End())
		names := field.Names
		if len(names) == 0 {
			names = []*ast.Ident{{Name: "_"}}
		}
		for j, ident := range names {
			name := ident.Name
			if name == "_" {
				asTheyAre = false
				name = fmt.Sprintf("argument%d_%d", i, j)
			}
			parameters = append(parameters, name+" "+kind)
			if strings.HasPrefix(kind, "...") {
				name += "..."
			}
			arguments = append(arguments, name)
		}
	}
	list := "(" + strings.Join(parameters, ", ") + ")"
	if asTheyAre {
		list = at(f.Type.Params.Pos(), f.Type.Params.End())
	}
	results, call := "", "%[1]smutant%[3]d_%[2]s(%[4]s); return"
	if f.Type.Results != nil {
		results, call = at(f.Type.Results.Pos(), f.Type.Results.End()), "return %[1]smutant%[3]d_%[2]s(%[4]s)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "func %s%s%s %s {\n\tswitch mutantNumber {\n", receiver, f.Name.Name, list, results)
	for _, n := range append(numbers, 0) {
		label := fmt.Sprintf("case %d:", n)
		if n == 0 {
			label = "default:"
		}
		b.WriteString("\t" + label + "\n\t\t" + fmt.Sprintf(call, object, f.Name.Name, n, strings.Join(arguments, ", ")) + "\n")
	}
	b.WriteString("\t}\n}")
	return b.String()
}

// number is the file that tells the mutants of a package which one is meant.
func number(dir, name string) error {
	text := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutantNumber, _ = strconv.Atoi(os.Getenv(%q))\n", name, variable)
	return os.WriteFile(filepath.Join(dir, "mutant_number.go"), []byte(text), 0o600)
}

const variable = "MUTANT"
