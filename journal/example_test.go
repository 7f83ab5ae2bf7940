package journal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/journal"
	"github.com/idem-go/idem/mockserver"
	_ "modernc.org/sqlite"
)

// shop is a database with an empty table of Intents, and a server that is charged
// through client. A real database is a file: see the package documentation.
type shop struct {
	db     *sql.DB
	j      *journal.Journal
	server *mockserver.Server
	client *idem.Client
}

func openShop(cfg journal.Config, faults ...mockserver.Fault) shop {
	db, err := sql.Open("sqlite", "file::memory:?_txlock=immediate")
	must(err)
	db.SetMaxOpenConns(1)
	j, err := journal.New(db, cfg)
	must(err)
	must(j.Migrate(context.Background()))
	server, err := mockserver.Start(mockserver.Config{Addr: "memory"})
	must(err)
	if len(faults) > 0 {
		server.On("POST /charges").Then(faults...)
	}
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{
		Base: server.Transport(), MaxAttempts: 1,
	}})
	must(err)
	return shop{db, j, server, client}
}

func (s shop) Close() {
	_ = s.server.Close()
	_ = s.db.Close()
}

// charge mints an Intent, claims it and makes the call, once.
func (s shop) charge(ref journal.Ref) {
	ctx := context.Background()
	must(s.j.Mint(ctx, s.db, ref))
	in, err := s.j.Claim(ctx, ref)
	must(err)
	_, _ = s.client.Call(ctx, in, "POST", "/charges", map[string]int{"amount": 500}, nil)
}

// dispatch runs d until the Intent of ref is in the state that is wanted.
func (s shop) dispatch(d journal.Dispatcher, ref journal.Ref, want journal.State) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	d.Poll = 10 * time.Millisecond
	done := make(chan error)
	go func() { done <- s.j.Run(ctx, d) }()
	for ctx.Err() == nil {
		if row, err := s.j.Find(ctx, ref); err == nil && row.State == want {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	must(<-done)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The promise is written in the transaction that decides, and sent after it. Who
// comes again, in any process, gets the answer from the row.
func ExampleJournal() {
	s := openShop(journal.Config{})
	defer s.Close()
	ctx := context.Background()

	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	tx, err := s.db.BeginTx(ctx, nil)
	must(err)
	must(s.j.Mint(ctx, tx, ref)) // beside the order itself
	must(tx.Commit())

	for range 2 {
		charge, err := s.j.Claim(ctx, ref)
		must(err)
		var receipt struct{ ID string }
		res, err := s.client.Call(ctx, charge, "POST", "/charges", map[string]int{"amount": 500}, &receipt)
		fmt.Println(receipt.ID, res.Outcome, err, "requests:", len(s.server.Requests("")))
	}
	// Output:
	// 1 answered <nil> requests: 1
	// 1 answered <nil> requests: 1
}

// What was not minted, or whose transaction has not committed, cannot be claimed,
// and so cannot be sent.
func ExampleJournal_Claim_notMinted() {
	s := openShop(journal.Config{})
	defer s.Close()
	_, err := s.j.Claim(context.Background(), journal.Ref{Scope: "shop/charge", ID: "order-17"})
	fmt.Println(errors.Is(err, journal.ErrNotMinted))
	// Output: true
}

// Keys that are derived come out the same if a row is lost with its database.
func ExampleConfig() {
	born := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	cfg := journal.Config{Key: func(ref journal.Ref) string {
		in, err := idem.Derive(ref.Scope, ref.ID, born)
		must(err)
		return in.Key()
	}}
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	var keys []string
	for range 2 { // two databases that know nothing of each other
		s := openShop(cfg)
		must(s.j.Mint(context.Background(), s.db, ref))
		row, err := s.j.Find(context.Background(), ref)
		must(err)
		keys = append(keys, row.Key)
		s.Close()
	}
	fmt.Println(keys[0] == keys[1])
	// Output: true
}

// Each dialect has a schema of its own, for the caller's own migrations.
func ExampleDialect() {
	for _, d := range []journal.Dialect{journal.SQLite, journal.Postgres} {
		fmt.Println(strings.Contains(journal.Schema(d), "idem_intents"))
	}
	// Output:
	// true
	// true
}

// A dispatcher goes on with what was left behind: here with a charge whose answer
// was lost. The stored bytes are sent again, with the same key.
func ExampleDispatcher() {
	s := openShop(journal.Config{Backoff: idem.Exponential(time.Millisecond, time.Millisecond)}, "reset@stored")
	defer s.Close()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	s.charge(ref) // its answer is lost
	row, _ := s.j.Find(context.Background(), ref)
	fmt.Println("left behind:", row.State)

	s.dispatch(journal.Dispatcher{Handle: s.j.Resend(s.client)}, ref, journal.Settled)
	row, _ = s.j.Find(context.Background(), ref)
	fmt.Println("afterwards:", row.State, row.Status, "effects:", len(s.server.Effects("")))
	// Output:
	// left behind: unknown
	// afterwards: settled 201 effects: 1
}

// A Handler makes the call of an Intent as its first caller would have.
func ExampleHandler() {
	s := openShop(journal.Config{Lease: time.Millisecond}) // nobody comes back for it
	defer s.Close()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	must(s.j.Mint(context.Background(), s.db, ref))

	handle := func(ctx context.Context, ref journal.Ref, charge *idem.Intent) error {
		amounts := map[string]int{"order-17": 500} // from the caller's own tables
		_, err := s.client.Call(ctx, charge, "POST", "/charges", map[string]int{"amount": amounts[ref.ID]}, nil)
		return err
	}
	s.dispatch(journal.Dispatcher{Handle: handle}, ref, journal.Settled)
	fmt.Println("effects:", len(s.server.Effects("")))
	// Output: effects: 1
}

// Reconcile asks the server another way, such as by a list of charges, before an
// Intent of unknown outcome is sent again. What it finds settles the Intent.
func ExampleFinding() {
	s := openShop(journal.Config{Backoff: idem.Exponential(time.Millisecond, time.Millisecond)}, "reset@stored")
	defer s.Close()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	s.charge(ref) // its answer is lost

	s.dispatch(journal.Dispatcher{
		Handle: s.j.Resend(s.client),
		Reconcile: func(ctx context.Context, _ journal.Record) (journal.Finding, error) {
			var charges struct{ Data []struct{ ID string } }
			if _, err := s.client.Call(ctx, nil, "GET", "/charges", nil, &charges); err != nil || len(charges.Data) == 0 {
				return journal.Finding{}, err // not known
			}
			return journal.Finding{Outcome: idem.Answered, Status: http.StatusCreated, Body: []byte(`{"id":"1"}`)}, nil
		},
	}, ref, journal.Settled)
	row, _ := s.j.Find(context.Background(), ref)
	fmt.Println(row.State, row.Status, "charges sent:", len(s.server.Requests(row.Key)))
	// Output: settled 201 charges sent: 1
}

// A *sql.Tx, a *sql.Conn and a *sql.DB are Queriers: Mint writes where the caller
// writes. What is rolled back was never promised.
func ExampleQuerier() {
	s := openShop(journal.Config{})
	defer s.Close()
	ctx := context.Background()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	tx, err := s.db.BeginTx(ctx, nil)
	must(err)
	must(s.j.Mint(ctx, tx, ref))
	must(tx.Rollback())
	_, err = s.j.Find(ctx, ref)
	fmt.Println(errors.Is(err, journal.ErrNotMinted))
	// Output: true
}

// A Record is safe to print and to log: the key is cut short.
func ExampleRecord() {
	s := openShop(journal.Config{Key: func(journal.Ref) string { return "3f2504e0-4f89-41d3-9a0c-0305e82c3301" }})
	defer s.Close()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	s.charge(ref)
	row, err := s.j.Find(context.Background(), ref)
	must(err)
	fmt.Println(row)
	// Output: journal.Record("shop/charge" "order-17" settled, key 3f2504e0…)
}

// One operation of one order has one key, however often it is minted. Another
// operation of the same order has another.
func ExampleRef() {
	s := openShop(journal.Config{})
	defer s.Close()
	ctx := context.Background()
	var keys []string
	for _, ref := range []journal.Ref{
		{Scope: "shop/charge", ID: "order-17"},
		{Scope: "shop/charge", ID: "order-17"},
		{Scope: "shop/refund", ID: "order-17"},
	} {
		must(s.j.Mint(ctx, s.db, ref))
		row, err := s.j.Find(ctx, ref)
		must(err)
		keys = append(keys, row.Key)
	}
	fmt.Println(keys[0] == keys[1], keys[0] == keys[2])
	// Output: true false
}

// rot13 stands for a cipher. A real one is an AEAD with a key from a vault, and
// with ref as its additional data.
type rot13 struct{}

func (rot13) Seal(_ context.Context, _ journal.Ref, plain []byte) ([]byte, error) {
	sealed := slices.Clone(plain)
	for i, b := range sealed {
		sealed[i] = b + 13
	}
	return sealed, nil
}

func (rot13) Open(_ context.Context, _ journal.Ref, sealed []byte) ([]byte, error) {
	plain := slices.Clone(sealed)
	for i, b := range plain {
		plain[i] = b - 13
	}
	return plain, nil
}

// What is stored of a request and of its answer goes through the Sealer.
func ExampleSealer() {
	s := openShop(journal.Config{Seal: rot13{}})
	defer s.Close()
	s.charge(journal.Ref{Scope: "shop/charge", ID: "order-17"})
	var stored []byte
	must(s.db.QueryRow("SELECT outcome FROM idem_intents").Scan(&stored))
	fmt.Println("stored:", len(stored) > 0, "readable:", strings.Contains(string(stored), "amount"))
	// Output: stored: true readable: false
}

// An Intent that nothing was sent of can be withdrawn; it stays withdrawn.
func ExampleState() {
	s := openShop(journal.Config{})
	defer s.Close()
	ctx := context.Background()
	ref := journal.Ref{Scope: "shop/charge", ID: "order-17"}
	must(s.j.Mint(ctx, s.db, ref))
	must(s.j.Cancel(ctx, s.db, ref))
	row, err := s.j.Find(ctx, ref)
	must(err)
	_, err = s.j.Claim(ctx, ref)
	fmt.Println(row.State, errors.Is(err, journal.ErrCancelled))
	// Output: cancelled true
}

// What to watch is read in one query: how much is unresolved, and for how long.
func ExampleStats() {
	s := openShop(journal.Config{}, "reset@stored")
	defer s.Close()
	ctx := context.Background()
	must(s.j.Mint(ctx, s.db, journal.Ref{Scope: "shop/charge", ID: "order-16"})) // and nobody sends it
	s.charge(journal.Ref{Scope: "shop/charge", ID: "order-17"})                  // its answer is lost

	stats, err := s.j.Stats(ctx)
	must(err)
	fmt.Println("minted:", stats.Minted, "unknown:", stats.Unknown, "window runs:", stats.Window > 23*time.Hour)
	// Output: minted: 1 unknown: 1 window runs: true
}
