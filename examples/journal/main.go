// Journal shows an Intent that survives its process: one is killed between the
// send and the answer, another goes on, and there is one effect.
//
//	go run ./examples/journal
//
// The server runs here, the processes are this program started again, and the
// database is a SQLite file in a temporary directory. It exits with 1 unless the
// order was charged exactly once. charge.go is the code to copy.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
	"github.com/idem-go/idem/mockserver"
	_ "modernc.org/sqlite"
)

func main() {
	role := flag.String("role", "", "what a child does: buy or resume")
	file := flag.String("db", "", "the SQLite file of a child")
	url := flag.String("url", "", "the server of a child")
	flag.Parse()
	log.SetFlags(0)
	var err error
	if *role == "" {
		err = show(context.Background(), os.Stdout)
	} else {
		err = work(context.Background(), *role, *file, *url)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// show starts a server, lets a process buy, kills it when the server has charged
// and before it has answered, and lets another process go on.
func show(ctx context.Context, out io.Writer) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	dir, err := os.MkdirTemp("", "idem-journal-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "shop.db")
	server, err := mockserver.Start(mockserver.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	server.On("POST /charges").Then("hang@stored") // it charges, and does not answer
	db, j, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()

	first, err := start(ctx, "buy", file, server.URL)
	if err != nil {
		return err
	}
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	key, err := keyOf(ctx, j, ref)
	if err == nil {
		err = server.Await(ctx, key, 1, mockserver.Stored)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if err != nil {
		return err
	}
	say("A process buys order-17. The server has charged; before its answer the process is killed.")
	row, err := j.Find(ctx, ref)
	if err != nil {
		return err
	}
	say("Its row says: %s, sent %d time.", row.State, row.Attempts)

	second, err := start(ctx, "resume", file, server.URL)
	if err != nil {
		return err
	}
	defer func() { _ = second.Process.Kill(); _ = second.Wait() }()
	for row.State != journal.Settled {
		time.Sleep(50 * time.Millisecond)
		if row, err = j.Find(ctx, ref); err != nil {
			return err
		}
	}
	say("Another process waits for the lease to end and asks again with the same key.")
	say("Its row says: %s, status %d, sent %d times.", row.State, row.Status, row.Attempts)
	for _, r := range server.Requests("") {
		say("  server: request %d, key %.8s…, answer %q", r.Seq, r.Key, r.Answer)
	}
	n := len(server.Effects(""))
	say("Charged: %d time.", n)
	if n != 1 {
		return errors.New("journal: the order was not charged exactly once")
	}
	return nil
}

// work is what a child does.
func work(ctx context.Context, role, file, url string) error {
	db, j, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	client, err := idem.NewClient(idem.Config{BaseURL: url})
	if err != nil {
		return err
	}
	if role == "resume" {
		return resume(ctx, db, j, client)
	}
	return buy(ctx, db, j, client, Order{ID: "order-17", Amount: 500})
}

// open opens the database, with the pragmas that keep what was promised, and
// makes the tables if there are none.
func open(ctx context.Context, file string) (*sql.DB, *journal.Journal, error) {
	db, err := sql.Open("sqlite", "file:"+file+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.New(db, journal.Config{Lease: 2 * time.Second}) // zero is 30 s; this is short, to be seen
	if err == nil {
		err = j.Migrate(ctx)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
	}
	return db, j, err
}

// start runs this program again as a child.
func start(ctx context.Context, role, file, url string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, "-role", role, "-db", file, "-url", url) //nolint:gosec // ourselves
	child.Stderr = os.Stderr
	return child, child.Start()
}

// keyOf waits until the Intent is minted.
func keyOf(ctx context.Context, j *journal.Journal, ref journal.Ref) (string, error) {
	for range 200 {
		row, err := j.Find(ctx, ref)
		if err == nil {
			return row.Key, nil
		}
		if !errors.Is(err, journal.ErrNotMinted) {
			return "", err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", errors.New("journal: the child did not buy")
}
