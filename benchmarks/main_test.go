package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test start itself as the server of part B, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

func tinySizes() sizes {
	return sizes{
		rounds: 2, each: time.Millisecond, body: 2 * mib, slow: 1, looks: 1, waiting: 100, wait: time.Second, orders: 80,
		levels: []int{1, 10}, calls: 100, opened: 1000, requests: 100,
	}
}

// A whole run, as small as it can be.
func TestRun(t *testing.T) {
	var progress bytes.Buffer
	r, err := tinySizes().measure(t.Context(), "", &progress)
	require.NoError(t, err)
	assert.NotEmpty(t, progress.String())
	t.Run("page", func(t *testing.T) { testPage(t, r) })
	t.Run("goals", func(t *testing.T) { testGoals(t, r) })
}

// The page has every table, every client and every picture, and no hole.
func testPage(t *testing.T, r *results) {
	dir := t.TempDir()
	require.NoError(t, r.write(dir))
	text, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	require.NoError(t, err)
	page := string(text)

	assert.Len(t, r.tables(), 12)
	for _, table := range r.tables() {
		assert.Contains(t, page, "**"+table.Title+"**")
		assert.NotEmpty(t, table.Rows, table.Title)
		for _, row := range table.Rows {
			assert.Len(t, row, len(table.Columns), table.Title)
		}
	}
	for _, p := range peers.All() {
		assert.Contains(t, page, "| "+p.Name+" ")
	}
	for _, wrong := range []string{"NaN", "Inf", "<no value>", "%!"} {
		assert.NotContains(t, page, wrong)
		assert.NotContains(t, r.text(), wrong)
	}
	pictures := 0
	for line := range strings.Lines(page) {
		if _, file, ok := strings.Cut(strings.TrimSuffix(line, ")\n"), "]("); ok && strings.HasPrefix(line, "![") {
			pictures++
			assertPicture(t, filepath.Join(dir, file))
		}
	}
	assert.Len(t, r.plots(), pictures, "each plot is shown")
}

func assertPicture(t *testing.T, file string) {
	t.Helper()
	svg, err := os.Open(file)
	require.NoError(t, err)
	defer svg.Close()
	for dec := xml.NewDecoder(svg); ; {
		if _, err = dec.Token(); err != nil {
			break
		}
	}
	assert.ErrorIs(t, err, io.EOF, "not well formed")
}

// Every goal is there, in order; those that do not depend on the machine and on
// the root's tuning are met even here.
func testGoals(t *testing.T, r *results) {
	var numbers strings.Builder
	for _, g := range r.goals() {
		numbers.WriteString(g.number)
		assert.NotEmpty(t, g.measured, g.wanted)
		if strings.HasPrefix(g.wanted, "F: 0 doubled") || g.number == "4" {
			assert.True(t, g.met, "%s: %s", g.wanted, g.measured)
		}
	}
	assert.Equal(t, "111112222223344445556666777", numbers.String())
}

// One part gives its tables and no goals.
func TestOnly(t *testing.T) {
	r, err := tinySizes().measure(t.Context(), "C", io.Discard)
	require.NoError(t, err)
	require.Len(t, r.tables(), 1)
	assert.Nil(t, r.goals())
	text := r.text()
	assert.True(t, strings.HasPrefix(text, "C. One 503"))
	assert.NotContains(t, text, "Goals")
}

func TestWhereTo(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := whereTo("", "", false)
	assert.ErrorContains(t, err, "there is no directory docs")
	require.NoError(t, os.Mkdir("docs", 0o755))
	require.NoError(t, os.Mkdir("other", 0o755))
	for _, c := range []struct {
		dir, only string
		quick     bool
		want      string
	}{
		{"", "", false, "docs"}, {"", "", true, ""}, {"other", "", true, "other"}, {"other", "", false, "other"},
		{"-", "", false, ""}, {"other", "A", false, ""},
	} {
		got, err := whereTo(c.dir, c.only, c.quick)
		assert.NoError(t, err)
		assert.Equal(t, c.want, got, "%+v", c)
	}
}

func TestHelp(t *testing.T) {
	var help bytes.Buffer
	err := run(t.Context(), []string{"-help"}, nil, io.Discard, &help)
	assert.True(t, errors.Is(err, flag.ErrHelp))
	for _, name := range []string{"-quick", "-only", "-out", "-serve"} {
		assert.Contains(t, help.String(), name)
	}
}
