// Lostanswer loses the answer to a charge and lets the client ask again: one client
// without an Intent, and one with. It prints what they met and what the server did,
// and draws it.
//
//	go run ./examples/lostanswer -o docs/lost-answer.svg
//
// Both runs are real, over the loopback interface. The picture shows the order of
// what happened and no times, so that it is the same each time, byte for byte.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
)

func main() {
	file := flag.String("o", "", "where to write the picture; empty: only the words are printed")
	flag.Parse()
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout, *file); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, file string) error {
	stories, err := both(ctx)
	if err != nil {
		return err
	}
	for _, s := range stories {
		_, _ = fmt.Fprintln(out, s.title)
		for _, e := range s.exchanges {
			_, _ = fmt.Fprintf(out, "  %-23s server: %-18s client: %s\n", e.asked(), e.did(), e.met())
		}
		_, _ = fmt.Fprintf(out, "  %s\n", s.verdict())
	}
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(draw(stories)), 0o600)
}
