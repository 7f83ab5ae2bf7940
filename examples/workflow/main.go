// Command workflow does one thing in three steps, each of which is a write of its
// own: it reserves the goods, charges the card and ships. Kill it whenever you
// like and start it again with the same file: each step is done once.
//
//	go run ./mockserver/cmd/idem-mock   # an API to try it with, in another terminal
//	go run ./examples/workflow -api http://127.0.0.1:8080 -file order.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"

	"github.com/idem-go/idem"
)

func main() {
	api := flag.String("api", "http://127.0.0.1:8080", "base URL of the API; the default is where idem-mock serves one")
	file := flag.String("file", "order.json", "where the progress is kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *file, idem.Config{BaseURL: *api})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// progress is what must outlive the process: the Intent, what each step sends,
// and how far we are.
type progress struct {
	Intent *idem.Intent      `json:"intent"`
	Amount int               `json:"amount"`
	Done   map[string]string `json:"done"` // what each step that is done has come to
}

func run(ctx context.Context, out io.Writer, file string, api idem.Config) error {
	client, err := idem.NewClient(api)
	if err != nil {
		return err
	}
	p, err := load(file)
	if errors.Is(err, fs.ErrNotExist) {
		// The decision: from here on there is one Intent, whoever does the work.
		p, err = &progress{Intent: idem.Open(), Amount: 4200, Done: map[string]string{}}, nil
		_, _ = fmt.Fprintln(out, "begun")
	}
	if err != nil {
		return err
	}
	// Written down before the first send, so that a crash loses no key.
	if err := p.save(file); err != nil {
		return err
	}
	for _, step := range []string{"reservations", "charges", "shipments"} {
		if id := p.Done[step]; id != "" {
			_, _ = fmt.Fprintf(out, "%s: %s already\n", step, id)
			continue
		}
		// The step's key follows from the Intent's: after a crash it is the same.
		// So must the body be: it is made of what is in the file alone.
		var made struct{ ID string }
		body := map[string]any{"order": p.Intent.Key(), "amount": p.Amount}
		res, err := client.Call(ctx, p.Intent.Child(step), http.MethodPost, "/"+step, body, &made)
		switch {
		case err == nil:
		case errors.Is(err, idem.ErrExpired):
			return fmt.Errorf("%s: this was too long ago to ask again, look it up: %w", step, err)
		default:
			return fmt.Errorf("%s: start me again with the same file: %w", step, err)
		}
		p.Done[step] = made.ID
		if err := p.save(file); err != nil {
			return err
		}
		stored := ""
		if res.Replay == idem.Replayed {
			stored = " (replayed)"
		}
		_, _ = fmt.Fprintf(out, "%s: %s%s\n", step, made.ID, stored)
	}
	return nil
}

func load(file string) (*progress, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	p := new(progress)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, err
	}
	if p.Intent == nil || p.Done == nil {
		return nil, errors.New("workflow: " + file + " is not the file of an order")
	}
	return p, nil
}

// save writes the file whole or not at all, and onto the disk: a key that is lost
// after it was sent is a second charge.
func (p *progress) save(file string) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	next, err := os.OpenFile(file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // as in load
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
