package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The stories of docs/other-languages.md, word for word.
func TestOtherLanguages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "other-languages.md"))
	require.NoError(t, err)
	c := start(t, "-quiet")
	for language, story := range map[string]struct{ program, file, ends string }{
		"python": {"python3", "story.py", "charged once"},
		"js":     {"node", "story.mjs", "held, refused, replayed, forgotten"},
		"sh":     {"sh", "story.sh", `{"breaches":[],"ok":true}`},
	} {
		t.Run(language, func(t *testing.T) {
			program, err := exec.LookPath(story.program)
			if err == nil && language == "sh" {
				_, err = exec.LookPath("curl")
			}
			if err != nil {
				t.Skipf("%v", err)
			}
			_, rest, found := strings.Cut(string(page), "\n```"+language+"\n")
			require.True(t, found)
			code, _, _ := strings.Cut(rest, "\n```\n")
			file := filepath.Join(t.TempDir(), story.file)
			require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
			cmd := exec.CommandContext(t.Context(), program, file)
			cmd.Env = append(os.Environ(), "MOCK_API="+c.api, "MOCK_CONTROL="+c.control)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.True(t, strings.HasSuffix(strings.TrimSpace(string(out)), story.ends), "%s", out)
		})
	}
}
