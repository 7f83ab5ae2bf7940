package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/idem-go/idem/journal"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

//go:embed schema.sql
var schema string

// A Store is the shop's database, SQLite or PostgreSQL. Both get the same
// statements, with one word of our own: {now} is the database's time in
// milliseconds, so that all processes agree on when a claim is stale.
type Store struct {
	conn

	db      *sql.DB
	dsn     string
	dialect journal.Dialect
}

// connect opens the database at dsn: the URL of a PostgreSQL server, or the name
// of an SQLite file.
func connect(dsn string) (*Store, error) {
	s := &Store{dsn: dsn, dialect: journal.Postgres}
	driver, source, conns := "pgx", dsn, 16
	// Not clock_timestamp(), which no index could be asked about.
	s.words = strings.NewReplacer("{now}", "(extract(epoch from statement_timestamp()) * 1000)::bigint")
	if !isPostgres(dsn) {
		s.dialect = journal.SQLite
		s.words = strings.NewReplacer("{now}", "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)", "$", "?")
		driver, source = "sqlite", "file:"+dsn+
			"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
		// There is one writer at a time anyway. Whoever waits for the one connection
		// is woken at once; whoever waits for SQLite's lock sleeps and looks again.
		conns = 1
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	s.db, s.queryer = db, db
	return s, nil
}

func isPostgres(dsn string) bool { return strings.HasPrefix(dsn, "postgres") }

// onStore does something on an empty store, and removes that afterwards. It is a
// schema of its own in the PostgreSQL database at dsn, or a file if dsn is empty.
func onStore(ctx context.Context, dsn string, do func(*Store) error) (err error) {
	remove := func() error { return nil }
	defer func() { err = errors.Join(err, remove()) }()
	switch {
	case isPostgres(dsn):
		server, err := connect(dsn)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("stagedoor_%d_%d", os.Getpid(), time.Now().UnixNano())
		remove = func() error {
			_, err := server.exec(context.WithoutCancel(ctx), "DROP SCHEMA IF EXISTS "+name+" CASCADE")
			return errors.Join(err, server.db.Close())
		}
		if _, err := server.exec(ctx, "CREATE SCHEMA "+name); err != nil {
			return err
		}
		mark := "?"
		if strings.Contains(dsn, "?") {
			mark = "&"
		}
		dsn += mark + "search_path=" + name
	case dsn != "":
		return errors.New("stagedoor: -db is the postgres:// URL of a database, or empty")
	default:
		dir, err := os.MkdirTemp("", "stagedoor-")
		if err != nil {
			return err
		}
		remove = func() error { return os.RemoveAll(dir) }
		dsn = filepath.Join(dir, "shop.db")
	}
	store, err := connect(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.db.Close()) }()
	return do(store)
}

// inTx runs work in one transaction. An error rolls it back.
func (s *Store) inTx(ctx context.Context, work func(tx conn) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := work(conn{tx, s.words}); err != nil {
		return err
	}
	return tx.Commit()
}

// A conn runs statements, in a transaction or each by itself.
type conn struct {
	queryer

	words *strings.Replacer
}

// A queryer is a *sql.DB or a *sql.Tx.
type queryer interface {
	journal.Querier
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// exec returns how many rows the statement has met.
func (c conn) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	res, err := c.ExecContext(ctx, c.words.Replace(statement), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// find reads one row into what into points to, and reports whether there is one.
func (c conn) find(ctx context.Context, into []any, statement string, args ...any) (bool, error) {
	err := c.QueryRowContext(ctx, c.words.Replace(statement), args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
