// Package generated checks that code is what its generator makes today.
package generated

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Current runs go generate over the file generate, in a copy of its directory
// and of what it needs, and compares everything that this makes with what is
// there. Paths are relative to the examples directory, which is the parent of the
// test's. If tool (path@version) cannot be had, the test is skipped.
func Current(t *testing.T, tool, generate string, needs ...string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	run := func(in string, args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), "go", args...) //nolint:gosec // the command is go
		c.Dir, c.Env = in, append(os.Environ(), "GOBIN="+bin, "GOWORK=off", "GOFLAGS=")
		return c.CombinedOutput()
	}
	if out, err := run(dir, "install", tool); err != nil {
		t.Skipf("%s cannot be had: %s", tool, out)
	}
	inputs := map[string]bool{}
	for _, name := range append(needs, generate) {
		data, err := os.ReadFile(filepath.Join("..", name)) //nolint:gosec // called by tests alone
		require.NoError(t, err)
		inputs[filepath.Join(dir, name)] = true
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600)) //nolint:gosec // as above
	}
	out, err := run(filepath.Join(dir, filepath.Dir(generate)), "generate", filepath.Base(generate))
	require.NoError(t, err, "%s", out)
	made, err := filepath.Glob(filepath.Join(dir, filepath.Dir(generate), "*"))
	require.NoError(t, err)
	compared := 0
	for _, path := range made {
		if inputs[path] {
			continue
		}
		want, err := os.ReadFile(path) //nolint:gosec // as above
		require.NoError(t, err)
		name := filepath.Join("..", filepath.Dir(generate), filepath.Base(path))
		got, err := os.ReadFile(name) //nolint:gosec // as above
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s is not current: run go generate", name)
		compared++
	}
	assert.Positive(t, compared)
}
