package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The night ends well on both databases, with the lock and without, and the README
// shows what it prints.
func TestNight(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```text\n(.*?)```\n").FindSubmatch(readme)
	require.NotNil(t, shown)
	for _, name := range []string{"no lock", "a lock"} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s *Store) {
				var lock *Lock
				if name == "a lock" {
					_, lock = newRedis(t)
				}
				var out bytes.Buffer
				require.NoError(t, play(t.Context(), &out, s, lock), out.String())
				assert.Equal(t, string(shown[1]), trimmed(out.String()))
			})
		})
	}
}

// trimmed is a text without blanks at the ends of its lines.
func trimmed(text string) string {
	return regexp.MustCompile(`[ ]+\n`).ReplaceAllString(text, "\n")
}

// A number that is not what it must be is marked, and is an error.
func TestTallyIsWrong(t *testing.T) {
	onFresh(t, "", func(s *Store) {
		h := newHouse(t, s, Config{})
		var out bytes.Buffer
		n := &night{out: &out, shop: h.Shop, provider: h.provider, front: h.provider.Server}
		assert.ErrorContains(t, n.tally(t.Context()), "twice, or not at all")
		assert.Regexp(t, `clicks of buyers +69 +0 +WRONG`, out.String())
		assert.Regexp(t, `orders not decided +0 +0 *\n`, out.String())
	})
}

// The README tells of every file, and the program is short.
func TestFiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*")
	require.NoError(t, err)
	lines := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "go.") || name == "README.md" {
			continue
		}
		assert.Contains(t, string(readme), "["+name+"]("+name+")")
		if text, err := os.ReadFile(name); strings.HasSuffix(name, ".go") {
			require.NoError(t, err)
			n := bytes.Count(text, []byte("\n"))
			assert.LessOrEqual(t, n, 250, name)
			lines += n
		}
	}
	assert.LessOrEqual(t, lines, 1500)
	t.Logf("%d lines of Go", lines)
}

// A dsn that cannot be reached is an error and leaves nothing behind.
func TestNoDatabase(t *testing.T) {
	start := time.Now()
	err := onStore(t.Context(), "postgres://root@127.0.0.1:1/none?connect_timeout=5", func(*Store) error {
		t.Error("there is no such server")
		return nil
	})
	assert.Error(t, err)
	assert.Less(t, time.Since(start), 20*time.Second)
}
