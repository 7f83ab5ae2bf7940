package journal

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

// store is one database of a test.
type store struct {
	name    string
	dialect Dialect
	driver  string
	dsn     string
}

func (s store) open(t testing.TB, conns int) *sql.DB {
	db, err := sql.Open(s.driver, s.dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (s store) journal(t testing.TB, cfg Config) *Journal {
	cfg.Dialect = s.dialect
	j, err := New(s.open(t, 8), cfg)
	require.NoError(t, err)
	return j
}

// stores runs a test on SQLite and on PostgreSQL, each with a fresh table.
func stores(t *testing.T, test func(*testing.T, store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteStore(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgresStore(t)) })
}

func sqliteStore(t testing.TB) store {
	dsn := "file:" + filepath.Join(t.TempDir(), "journal.db") +
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	s := store{"SQLite", SQLite, "sqlite", dsn}
	require.NoError(t, s.journal(t, Config{}).Migrate(t.Context()))
	return s
}

// fresh returns another table of the same kind.
func (s store) fresh(t testing.TB) store {
	if s.dialect == SQLite {
		return sqliteStore(t)
	}
	return postgresStore(t)
}

// postgresDSN is where the tests find a server.
func postgresDSN() string {
	if dsn := os.Getenv("IDEM_POSTGRES"); dsn != "" {
		return dsn
	}
	return "postgres://root@127.0.0.1:5432/test?sslmode=disable"
}

// postgresStore makes a schema of its own, so that tests do not meet.
func postgresStore(t testing.TB) store {
	dsn := postgresDSN()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no PostgreSQL server: %v", err)
		}
		t.Skipf("no PostgreSQL server can be reached (IDEM_POSTGRES names another): %v", err)
	}
	schema := fmt.Sprintf("idem_%d_%d", os.Getpid(), time.Now().UnixNano())
	_, err = db.ExecContext(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		db, err := sql.Open("pgx", dsn)
		if err == nil {
			_, _ = db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
			_ = db.Close()
		}
	})
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	s := store{"PostgreSQL", Postgres, "pgx", dsn + sep + "search_path=" + schema + "&application_name=" + schema}
	require.NoError(t, s.journal(t, Config{}).Migrate(t.Context()))
	return s
}

func client(t testing.TB, url string, base http.RoundTripper) *idem.Client {
	c, err := idem.NewClient(idem.Config{BaseURL: url, Transport: &idem.Transport{
		Base: base, Backoff: idem.Exponential(time.Millisecond, 5*time.Millisecond),
	}})
	require.NoError(t, err)
	return c
}
