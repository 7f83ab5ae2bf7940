package idem_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The two commands of the README are those that CI runs.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	ci, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(string(readme))
	require.NotNil(t, block)
	commands := strings.Split(strings.TrimSpace(block[1]), "\n")
	require.Len(t, commands, 2)
	for _, line := range commands {
		command, _, _ := strings.Cut(line, "#")
		assert.Contains(t, string(ci), "\n"+strings.TrimSpace(command))
	}
}

// The first screen is one sentence, the two commands, the figure and the code; and
// the whole stays a page.
func TestReadmeFirstScreen(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(readme)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 165)
	first, _, _ := strings.Cut(text, "\n## ")
	assert.LessOrEqual(t, strings.Count(first, "\n"), 45)
	order := regexp.MustCompile("(?s)^# idem\n\n[^#`]+```sh\n[^`]+```\n\n!\\[[^\\]]+\\]\\(docs/lost-answer\\.svg\\)\n\n```go\n")
	assert.Regexp(t, order, first)
}
