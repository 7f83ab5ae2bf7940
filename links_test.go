package idem_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tracked returns the files that git knows, with slashes. Outside of a clone, as in
// the module cache, there is no telling, and the test is skipped.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("not in a clone: git ls-files: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// pages returns the Markdown files by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, ".md") {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all[name] = string(text)
		}
	}
	require.GreaterOrEqual(t, len(all), 12)
	return all
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	linkTo    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// linksOf returns what a page links to, pictures included.
func linksOf(page string) (links []string) {
	for _, m := range linkTo.FindAllStringSubmatch(codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(page, ""), "`"), -1) {
		links = append(links, m[1])
	}
	return links
}

// Every link to a file here leads to one that git knows, and every anchor to a
// heading. Links to the web are https and well formed; they are logged, not asked.
func TestLinks(t *testing.T) {
	files := tracked(t)
	all := pages(t)
	var web []string
	for name, page := range all {
		for _, link := range linksOf(page) {
			u, err := url.Parse(link)
			if !assert.NoError(t, err, "%s links to %s", name, link) {
				continue
			}
			if u.Scheme != "" {
				assert.Equal(t, "https", u.Scheme, "%s links to %s", name, link)
				assert.Contains(t, u.Host, ".", "%s links to %s", name, link)
				web = append(web, link)
				continue
			}
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			known := slices.ContainsFunc(files, func(f string) bool { return f == target || strings.HasPrefix(f, target+"/") })
			assert.True(t, known, "%s links to %s, which is not in git", name, link)
			if u.Fragment != "" {
				assert.Contains(t, anchors(all[target]), u.Fragment, "%s links to %s, and there is no such heading", name, link)
			}
		}
	}
	slices.Sort(web)
	web = slices.Compact(web)
	require.NotEmpty(t, web)
	t.Logf("%d links to the web, not asked:\n%s", len(web), strings.Join(web, "\n"))
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) (all []string) {
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		a := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if n := seen[a]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", a, n))
		} else {
			all = append(all, a)
		}
		seen[a]++
	}
	return all
}

func TestAnchors(t *testing.T) {
	page := "# What is it, then?\n\n```sh\n# no heading\n```\n\n## A `code` a-b_c\n## A `code` a-b_c\n"
	assert.Equal(t, []string{"what-is-it-then", "a-code-a-b_c", "a-code-a-b_c-1"}, anchors(page))
}

// Every page is found: the README links to each of docs, and no page anywhere is
// left without a link.
func TestEveryPageIsLinked(t *testing.T) {
	all := pages(t)
	linked := map[string][]string{}
	for name, page := range all {
		for _, link := range linksOf(page) {
			if file, _, _ := strings.Cut(link, "#"); file != "" && !strings.Contains(file, ":") {
				linked[name] = append(linked[name], path.Join(path.Dir(name), file))
			}
		}
	}
	everywhere := slices.Concat(slices.Collect(maps.Values(linked))...)
	for name := range all {
		if strings.HasPrefix(name, "docs/") {
			assert.True(t, slices.Contains(linked["README.md"], name), "the README does not link to %s", name)
			assert.NotEmpty(t, linked[name], "%s leads nowhere", name)
		}
		if name != "README.md" {
			assert.True(t, slices.Contains(everywhere, name), "nobody links to %s", name)
		}
	}
}
