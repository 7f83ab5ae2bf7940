package otelidem_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem/journal"
	"github.com/idem-go/idem/otelidem"
	_ "modernc.org/sqlite"
)

// openJournal returns a journal in memory with one Intent that nobody has sent.
func openJournal(ctx context.Context) (*journal.Journal, *sql.DB) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	j, err := journal.New(db, journal.Config{})
	if err != nil {
		panic(err)
	}
	if err := j.Migrate(ctx); err != nil {
		panic(err)
	}
	if err := j.Mint(ctx, db, journal.Ref{Scope: "shop/charge", ID: "order-17"}); err != nil {
		panic(err)
	}
	return j, db
}

// What the journal holds is asked for each time that metrics are collected.
func ExampleObserveJournal() {
	j, db := openJournal(context.Background())
	defer db.Close()
	meters, handler, err := metrics()
	if err != nil {
		panic(err)
	}
	observed, err := otelidem.ObserveJournal(otelidem.Config{MeterProvider: meters},
		func(ctx context.Context) (otelidem.JournalStats, error) {
			s, err := j.Stats(ctx) // j is a *journal.Journal
			return otelidem.JournalStats(s), err
		})
	if err != nil {
		panic(err)
	}
	defer func() { _ = observed.Unregister() }()

	scrape := httptest.NewRecorder()
	handler.ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if name, value, ok := strings.Cut(line, "} "); ok && strings.HasPrefix(line, "idem_intents{") {
			_, state, _ := strings.Cut(name, "idem_state=")
			state, _, _ = strings.Cut(state, ",")
			fmt.Print(state, " ", value)
		}
	}
	// Output:
	// "minted" 1
	// "stuck" 0
	// "unknown" 0
}
