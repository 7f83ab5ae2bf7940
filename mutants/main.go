// Mutants breaks the rules of this module one at a time, in a copy of it, and
// asks whether a test notices. It exits with 1 if one of them goes unnoticed.
//
//	go run ./mutants                    all of them
//	go run ./mutants -only retryafter   those whose file or rule has the word
//	go run ./mutants -list              what they are
//
// A mutant is an edit: a text within one function, which must stand in its file
// exactly once, and what comes in its place. One whose text is no longer found is
// an error, as is one that does not compile, so that the list stays current.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"
)

// A mutant is one rule broken.
type mutant struct {
	file string
	old  string
	new  string
	rule string // what does not hold any more
}

func main() {
	only := flag.String("only", "", "only mutants whose file or rule contains this")
	from := flag.Int("from", 1, "begin with the mutant of this number")
	list := flag.Bool("list", false, "print the mutants and stop")
	jobs := flag.Int("jobs", 4, "how many are tried at the same time")
	limit := flag.Duration("timeout", time.Minute, "the most that the tests of one package may take")
	flag.Parse()
	log.SetFlags(0)
	mutants := all()
	var chosen []int
	for i, m := range mutants {
		if i+1 < *from || !strings.Contains(m.file, *only) && !strings.Contains(m.rule, *only) {
			continue
		}
		chosen = append(chosen, i+1)
		if *list {
			fmt.Printf("%3d %-16s %s\n", i+1, m.file, m.rule)
		}
	}
	if *list {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, mutants, chosen, max(*jobs, 1), *limit)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// all returns every mutant.
func all() []mutant {
	var list []mutant
	for _, part := range [][]mutant{decisions(), waits(), keys(), outcomes(), bodies()} {
		list = append(list, part...)
	}
	return list
}

// run tries the mutants, jobs at a time, and returns an error if one survives or
// is not current.
func run(ctx context.Context, mutants []mutant, chosen []int, jobs int, limit time.Duration) error {
	began := time.Now()
	b, err := newBench(ctx, ".", mutants, limit)
	if err != nil {
		return err
	}
	defer b.close()
	if killer := b.try(ctx, 0, mutant{}); killer != "" {
		return fmt.Errorf("mutants: %s fails without any mutant", killer)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	done := 0
	var survivors []string
	next := make(chan int)
	for range jobs {
		wg.Go(func() {
			for n := range next {
				m := mutants[n-1]
				killer := b.try(ctx, n, m)
				mu.Lock()
				done++
				mark := "killed by " + killer
				if killer == "" {
					mark = "SURVIVED"
					survivors = append(survivors, fmt.Sprintf("%d %s: %s", n, m.file, m.rule))
				}
				fmt.Printf("%3d/%d %5.0fs  %3d %-15s %-66s %s\n", done, len(chosen), time.Since(began).Seconds(), n, m.file, m.rule, mark)
				mu.Unlock()
			}
		})
	}
	for _, n := range chosen {
		if ctx.Err() == nil {
			next <- n
		}
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("\n%d mutants, %d killed, in %v\n", len(chosen), len(chosen)-len(survivors), time.Since(began).Round(time.Second))
	if len(survivors) > 0 {
		return fmt.Errorf("survived:\n  %s", strings.Join(survivors, "\n  "))
	}
	return nil
}
