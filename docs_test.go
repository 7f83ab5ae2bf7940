package idem_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A block is one block of code of a page.
type block struct{ page, language, text string }

// blocks returns the code of every page.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	code := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	for name, page := range pages(t) {
		fences := strings.Count("\n"+page, "\n```")
		found := code.FindAllStringSubmatch(page, -1)
		assert.Equal(t, fences, 2*len(found), "%s: a block of code is not closed", name)
		for _, m := range found {
			all = append(all, block{name, m[1], m[2]})
		}
	}
	return all
}

// Every block of Go on every page stands, but for its indentation, in a file that
// is compiled: all Go files here are, by go vet of each module.
func TestSnippets(t *testing.T) {
	var code []string
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if !strings.HasPrefix(string(text), "//go:build ignore") {
			code = append(code, flush(string(text)))
		}
	}
	n := 0
	for _, b := range blocks(t) {
		assert.Contains(t, []string{"", "go", "sh", "text", "http", "python", "js"}, b.language, "%s: nobody checks this language", b.page)
		if b.language != "go" {
			continue
		}
		n++
		compiled := slices.ContainsFunc(code, func(file string) bool { return strings.Contains(file, flush(b.text)) })
		assert.True(t, compiled, "this block of %s is compiled nowhere:\n%s", b.page, b.text)
	}
	assert.GreaterOrEqual(t, n, 35)
}

// flush removes the indentation of every line.
func flush(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

// Every command of Go's that a page names, in a block or in a line, runs something
// that is there: the directory, the flags of the program, the tests.
func TestCommands(t *testing.T) {
	files := tracked(t)
	span := regexp.MustCompile("`(go (?:run|test) [^`]+)`")
	n := 0
	check := func(page, dir, command string) {
		n++
		c := commandOf(command)
		target := path.Join(dir, strings.TrimPrefix(c.target, "github.com/idem-go/idem/"))
		if c.target == "work" {
			target = "."
		}
		var code strings.Builder
		for _, name := range files {
			if path.Dir(name) == target && strings.HasSuffix(name, ".go") {
				text, err := os.ReadFile(name)
				require.NoError(t, err)
				code.Write(text)
			}
		}
		assert.NotZero(t, code.Len(), "%s: %q runs nothing that is in git", page, command)
		for _, flag := range c.flags {
			declared := regexp.MustCompile(`\.[A-Z]\w+\((?:&?[\w.]+, )?"` + flag + `", `)
			assert.True(t, declared.MatchString(code.String()), "%s: %q: the program has no flag -%s", page, command, flag)
		}
		for _, test := range c.tests {
			declared := regexp.MustCompile(`(?m)^func \w*` + test)
			assert.True(t, declared.MatchString(code.String()), "%s: %q: there is no such test", page, command)
		}
	}
	for _, b := range blocks(t) {
		if b.language != "sh" && b.language != "text" && b.language != "" {
			continue
		}
		dir := "."
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			switch {
			case strings.HasPrefix(line, "cd "):
				dir = path.Join(dir, strings.TrimSpace(line[3:]))
			case regexp.MustCompile(`^([A-Z_]+=\S+ )*go (run|test) `).MatchString(line):
				check(b.page, dir, line)
			}
		}
	}
	for name, page := range pages(t) {
		for _, m := range span.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
			check(name, ".", strings.TrimSuffix(strings.Join(strings.Fields(m[1]), " "), "…"))
		}
	}
	assert.GreaterOrEqual(t, n, 25)
}

// A command is what a line asks the go command to run.
type command struct {
	target string   // a directory or a package
	flags  []string // of the program that is run
	tests  []string // of -run, -fuzz and -bench, but for those that name all or none
}

func commandOf(line string) (c command) {
	words := strings.Fields(line)
	words = words[slices.Index(words, "go")+1:]
	c.target = "."
	for i := 1; i < len(words); i++ {
		word := words[i]
		isFlag := strings.HasPrefix(word, "-")
		switch {
		case isFlag && words[0] == "test" && (word == "-run" || word == "-fuzz" || word == "-bench"):
			i++
			if name := strings.Trim(words[i], "'^$"); name != "" && name != "." {
				c.tests = append(c.tests, name)
			}
		case isFlag && words[0] == "test" && slices.Contains([]string{"-timeout", "-fuzztime", "-benchtime"}, word):
			i++
		case isFlag && words[0] == "test" && slices.Contains([]string{"-race", "-v", "-shuffle=on"}, word):
		case isFlag:
			c.flags = append(c.flags, strings.TrimLeft(word, "-"))
		case c.target == "." && (word == "work" || strings.Contains(word, "/")):
			c.target = word
		}
	}
	return c
}

func TestCommandOf(t *testing.T) {
	assert.Equal(t, command{"./a/b", []string{"o", "n"}, nil}, commandOf("go run ./a/b -o docs/x.svg -n 7"))
	assert.Equal(t, command{"./p", []string{"full"}, []string{"Exhaustive"}}, commandOf("X=1 go test -run Exhaustive ./p -full"))
	assert.Equal(t, command{".", nil, []string{"FuzzA"}}, commandOf("go test -run '^$' -fuzz FuzzA -fuzztime 10m ."))
}

// The number of APIs is that of the catalogue.
func TestNumberOfContracts(t *testing.T) {
	all := pages(t)
	says := fmt.Sprintf(" %d APIs", len(contract.All())-2) // but for Default and IETF
	assert.Contains(t, all["README.md"], says)
	assert.Contains(t, all["CHANGELOG.md"], says)
}

// What the pages say of other clients is said of the versions that are tested.
func TestPeerVersions(t *testing.T) {
	all := pages(t)
	for page, peer := range map[string]struct{ module, require, says string }{
		"docs/coming-from-retryablehttp.md": {"go.mod", `hashicorp/go-retryablehttp (v\S+)`, "true of %"},
		"docs/coming-from-stripe-go.md":     {"examples/stripe/go.mod", `stripe/stripe-go/(v\d+) `, "stripe-go % against"},
	} {
		text, err := os.ReadFile(peer.module)
		require.NoError(t, err)
		version := regexp.MustCompile(peer.require).FindStringSubmatch(string(text))
		require.NotNil(t, version, page)
		says := strings.ReplaceAll(peer.says, "%", version[1])
		assert.Contains(t, strings.Join(strings.Fields(all[page]), " "), says, "%s: read it again against this version", page)
	}
}

// Every example has its place: those for other clients in the table of
// docs/clients.md, all of them in the index.
func TestExamplesAreListed(t *testing.T) {
	all := pages(t)
	for _, name := range []string{"sdk", "oapi", "ogen", "stripe", "openai", "connect", "github"} {
		assert.Contains(t, all["docs/clients.md"], "(../examples/"+name+") |")
	}
	index := all["examples/README.md"]
	seen := map[string]bool{}
	for _, file := range tracked(t) {
		parts := strings.Split(file, "/")
		if len(parts) < 3 || parts[0] != "examples" || parts[1] == "internal" || seen[parts[1]] {
			continue
		}
		seen[parts[1]] = true
		own := strings.Contains(index, "\n## "+parts[1]+"\n") || strings.Contains(index, "["+parts[1]+"]("+parts[1]+") |")
		assert.True(t, own, "examples/README.md says nothing of %s", parts[1])
	}
	assert.GreaterOrEqual(t, len(seen), 15)
}

// What the index shows of stagedoor is what its own page shows, which its own test
// holds.
func TestIndexShowsStagedoor(t *testing.T) {
	all := pages(t)
	_, section, found := strings.Cut(all["examples/README.md"], "\n## stagedoor\n")
	require.True(t, found)
	shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindStringSubmatch(section)
	require.NotNil(t, shown)
	assert.Contains(t, all["examples/stagedoor/README.md"], shown[1])
}
