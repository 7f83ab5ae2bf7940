package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A bench is a copy of the module with all mutants in it, and the tests of its
// packages built.
type bench struct {
	dir   string
	limit time.Duration
}

// first are the tests that are pure and fast, and fail for most mutants. They run
// before all others.
const first = "Decide|RetryAfter|Exponential|Jitter|Budget|Retriable|Idempotent|Ledger|Wire|Format"

// newBench copies the module at root and builds it with the mutants, which are
// numbered from 1.
func newBench(ctx context.Context, root string, mutants []mutant, limit time.Duration) (*bench, error) {
	if _, err := os.Stat(filepath.Join(root, "decide.go")); err != nil {
		return nil, errors.New("mutants: run it from the root of the module")
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, limit: limit}
	if err := b.prepare(ctx, root, mutants); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

func (b *bench) prepare(ctx context.Context, root string, mutants []mutant) error {
	if err := copyTree(root, b.dir); err != nil {
		return err
	}
	files := map[string]map[int]mutant{}
	for i, m := range mutants {
		if files[m.file] == nil {
			files[m.file] = map[int]mutant{}
		}
		files[m.file][i+1] = m
	}
	var faults []error
	for file, of := range files {
		faults = append(faults, weave(b.dir, file, of))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, p := range packages {
		dir := filepath.Join(b.dir, p.dir)
		if err := number(dir, p.name); err != nil {
			return err
		}
	}
	for _, p := range packages {
		// Without optimisation and symbols it builds in half of the time.
		build := exec.CommandContext(ctx, "go", "test", "-c", "-gcflags=-N -l -e", "-ldflags=-s -w", "-o", p.name+".mutant", "./"+p.dir) //nolint:gosec // our own arguments
		build.Dir = b.dir
		build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("mutants: some do not compile (mutant_7.go is number 7): %w\n%s", err, out)
		}
	}
	return nil
}

// packages are those whose tests are run.
var packages = []struct{ dir, name string }{{"contract", "contract"}, {".", "idem"}}

// copyTree copies the module without its history and what was built.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.Name() == ".git" || strings.HasSuffix(d.Name(), ".test") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o750)
		}
		data, err := os.ReadFile(path) //nolint:gosec // of this repository
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600) //nolint:gosec // below our own directory
	})
}

// try runs the tests with the mutant of this number and returns the test that
// failed, or "" if none did. Number 0 is the module as it is.
func (b *bench) try(ctx context.Context, n int, m mutant) (killer string) {
	for _, p := range packages {
		if p.name == "contract" && n != 0 && !strings.HasPrefix(m.file, "contract/") {
			continue
		}
		for _, which := range []string{"-test.run", "-test.skip"} {
			run := exec.CommandContext(ctx, filepath.Join(b.dir, p.name+".mutant"), //nolint:gosec // our own arguments
				which, first, "-test.short", "-test.failfast", "-test.timeout", b.limit.String())
			run.Dir = filepath.Join(b.dir, p.dir)
			run.Env = append(os.Environ(), variable+"="+strconv.Itoa(n))
			if out, err := run.CombinedOutput(); err != nil {
				return nameOf(out)
			}
		}
	}
	return ""
}

var (
	failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	running = regexp.MustCompile(`(?m)^\t+(Test\S+) \(`)
)

// nameOf finds the test that failed first in what a test binary has printed.
func nameOf(out []byte) string {
	text := string(out)
	name := "a test"
	if all := failure.FindAllStringSubmatch(text, -1); all != nil {
		name = all[0][1]
		for _, m := range all {
			if strings.HasPrefix(m[1], name+"/") {
				name = m[1]
			}
		}
	}
	switch {
	case strings.Contains(text, "panic: test timed out"):
		if m := running.FindStringSubmatch(text); m != nil {
			name = m[1]
		}
		name += " (timeout)"
	case strings.Contains(text, "panic: "), strings.Contains(text, "fatal error: "):
		name += " (panic)"
	}
	return name
}
