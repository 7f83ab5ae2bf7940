// Benchmarks puts idem and Go's other HTTP clients that retry side by side, at the
// same work in one run.
//
//	go run ./benchmarks          # from the repository's root: docs/performance.md and its plots
//	go run ./benchmarks -quick   # prints the tables only
//
// It measures in rounds: each round measures every client once, in a new order,
// and ratios are taken within a round, so that what disturbs the machine disturbs
// all alike.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

func main() {
	log.SetFlags(0)
	err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run is the program.
func run(ctx context.Context, args []string, in io.Reader, out, progress io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(progress)
	quick := flags.Bool("quick", false, "fewer rounds and orders, under two minutes; writes nothing unless -out says where")
	only := flags.String("only", "", "the parts to run, such as AC; prints their tables and writes nothing; empty: all")
	dir := flags.String("out", "", `the directory for performance.md and its plots; "-": nowhere (default "docs", or nowhere with -quick)`)
	serving := flags.Bool("serve", false, "be the server of part B: the program starts itself so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serving {
		return serve(ctx, in, out)
	}
	s := fullSizes()
	if *quick {
		s = quickSizes()
	}
	target, err := whereTo(*dir, *only, *quick)
	if err != nil {
		return err
	}
	r, failed := s.measure(ctx, strings.ToUpper(*only), progress)
	if _, err := io.WriteString(out, r.text()); failed != nil || err != nil || target == "" {
		return errors.Join(failed, err)
	}
	return r.write(target)
}

// whereTo returns the directory to write to; empty: none.
func whereTo(dir, only string, quick bool) (string, error) {
	switch {
	case dir == "-" || only != "" || quick && dir == "":
		return "", nil
	case dir == "":
		dir = "docs"
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no directory %s: run this from the repository's root, or give -out", dir)
	}
	return dir, nil
}

// measure runs the parts whose letters are in only, or all. With an error come
// the results so far.
func (s sizes) measure(ctx context.Context, only string, progress io.Writer) (*results, error) {
	var parts []part
	var sum time.Duration
	for _, p := range s.parts() {
		if only == "" || strings.Contains(only, p.letter) {
			parts = append(parts, p)
			sum += p.weight
		}
	}
	bar := progressbar.NewOptions64(sum.Milliseconds(),
		progressbar.OptionSetWriter(progress), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionSetElapsedTime(true))
	r := &results{sizes: s, machine: thisMachine()}
	for _, p := range parts {
		bar.Describe(fmt.Sprintf("%s: %s", p.letter, p.title))
		step := func(took time.Duration) { _ = bar.Add64(took.Milliseconds()) }
		if err := p.run(ctx, r, step); err != nil {
			return r, fmt.Errorf("part %s: %w", p.letter, err)
		}
	}
	_ = bar.Finish()
	r.machine.After = load()
	return r, nil
}
