package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two processes with 50 goroutines each mint the same 200 references.
func TestMintOnce(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		one, two := s.start(t, "mint", ""), s.start(t, "mint", "")
		require.NoError(t, one.cmd.Wait())
		require.NoError(t, two.cmd.Wait())
		count := func() (rows, keys int) {
			require.NoError(t, j.db.QueryRow("SELECT count(*), count(DISTINCT key) FROM idem_intents").Scan(&rows, &keys))
			return rows, keys
		}
		rows, keys := count()
		assert.Equal(t, 200, rows)
		assert.Equal(t, 200, keys)
		before, err := j.Find(t.Context(), testRef(7))
		require.NoError(t, err)
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(7)))
		after, err := j.Find(t.Context(), testRef(7))
		require.NoError(t, err)
		assert.Equal(t, before.Key, after.Key)
	})
}

func TestMintInTransaction(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		ctx := t.Context()
		tx, err := j.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, j.Mint(ctx, tx, testRef(1)))
		require.NoError(t, j.Mint(ctx, tx, testRef(1)), "again in the same transaction")
		require.NoError(t, j.Mint(ctx, tx, testRef(2)), "which is not poisoned by it")
		if s.dialect == Postgres {
			_, err = j.Claim(ctx, testRef(1))
			require.ErrorIs(t, err, ErrNotMinted, "nothing can be sent before the commit")
		}
		require.NoError(t, tx.Commit())
		_, err = j.Claim(ctx, testRef(1))
		require.NoError(t, err)

		tx, err = j.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, j.Mint(ctx, tx, testRef(3)))
		require.NoError(t, tx.Rollback())
		_, err = j.Claim(ctx, testRef(3))
		require.ErrorIs(t, err, ErrNotMinted)

		conn, err := j.db.Conn(ctx)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		require.NoError(t, j.Mint(ctx, conn, testRef(4)))
		require.Error(t, j.Mint(ctx, conn, Ref{"", "x"}))
		require.Error(t, j.Mint(ctx, conn, Ref{"x", ""}))
	})
}

// A transaction that mints waits for another that has minted the same reference.
func TestMintWaits(t *testing.T) {
	s := postgresStore(t)
	j := s.journal(t, Config{})
	ctx := t.Context()
	for _, commit := range []bool{true, false} {
		ref := Ref{"wait", fmt.Sprint(commit)}
		tx, err := j.db.BeginTx(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, j.Mint(ctx, tx, ref))
		first, err := j.read(ctx, tx, ref)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- j.Mint(ctx, j.db, ref) }()
		select {
		case <-done:
			t.Fatal("it did not wait")
		case <-time.After(100 * time.Millisecond):
		}
		if commit {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
		}
		require.NoError(t, <-done)
		r, err := j.Find(ctx, ref)
		require.NoError(t, err)
		assert.Equal(t, commit, r.Key == first.key)
	}
}

// What the databases say to callers who hold their transactions wrongly, and what
// the errors tell them to do.
func TestAdvicePostgres(t *testing.T) {
	s := postgresStore(t)
	j := s.journal(t, Config{})
	ctx := t.Context()
	begin := func(level sql.IsolationLevel) *sql.Tx {
		tx, err := j.db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	state := func(err error) string {
		var s interface{ SQLState() string }
		require.ErrorAs(t, err, &s)
		return s.SQLState()
	}

	tx := begin(sql.LevelDefault)
	_, err := tx.Exec("SELECT 1/0")
	require.Error(t, err)
	err = j.Mint(ctx, tx, testRef(1))
	assert.Equal(t, "25P02", state(err))
	oneLine(t, err, "roll back")

	tx = begin(sql.LevelRepeatableRead)
	_, err = tx.Exec("SELECT count(*) FROM idem_intents")
	require.NoError(t, err)
	require.NoError(t, j.Mint(ctx, j.db, testRef(2)))
	err = j.Mint(ctx, tx, testRef(2))
	assert.Equal(t, "40001", state(err))
	require.ErrorIs(t, err, ErrRetryTx)
	oneLine(t, err, "run the whole transaction again")

	a, b := begin(sql.LevelDefault), begin(sql.LevelDefault)
	require.NoError(t, j.Mint(ctx, a, testRef(3)))
	require.NoError(t, j.Mint(ctx, b, testRef(4)))
	failed := make(chan error, 2)
	go func() { err := j.Mint(ctx, a, testRef(4)); _ = a.Rollback(); failed <- err }()
	go func() { err := j.Mint(ctx, b, testRef(3)); _ = b.Rollback(); failed <- err }()
	err = errors.Join(<-failed, <-failed) // one of them is undone
	assert.Equal(t, "40P01", state(err))
	require.ErrorIs(t, err, ErrRetryTx)
	oneLine(t, err, "in sorted order")

	_, err = j.db.Exec("DROP TABLE idem_intents")
	require.NoError(t, err)
	_, err = j.Claim(ctx, testRef(1))
	oneLine(t, err, "apply Schema or call Migrate")
}

func TestAdviceSQLite(t *testing.T) {
	s := sqliteStore(t)
	j := s.journal(t, Config{})
	ctx := t.Context()
	deferred := s
	deferred.dsn = strings.Replace(s.dsn, "_txlock=immediate", "_txlock=deferred", 1)
	tx, err := deferred.open(t, 1).BeginTx(ctx, nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM idem_intents").Scan(&n))
	require.NoError(t, j.Mint(ctx, j.db, testRef(1)))
	start := time.Now()
	err = j.Mint(ctx, tx, testRef(2))
	assert.Less(t, time.Since(start), 5*time.Second, "no busy timeout helps")
	assert.Equal(t, 517, sqliteCode(err))
	require.ErrorIs(t, err, ErrRetryTx)
	oneLine(t, err, "BEGIN IMMEDIATE")
	require.NoError(t, tx.Rollback())

	hasty := s
	hasty.dsn = strings.Replace(s.dsn, "busy_timeout(10000)", "busy_timeout(10)", 1)
	held, err := j.db.BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, j.Mint(ctx, held, testRef(3)))
	h := hasty.journal(t, Config{})
	_, err = h.Claim(ctx, testRef(1))
	assert.Equal(t, 5, sqliteCode(err))
	oneLine(t, err, "set a busy timeout")
	require.NoError(t, held.Rollback())

	// Claiming on the only connection while a transaction is open on it.
	db := s.open(t, 1)
	one, err := New(db, Config{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	held, err = db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = one.Claim(ctx, testRef(1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	oneLine(t, err, "is a transaction still open")
	require.NoError(t, held.Rollback())

	_, err = j.db.Exec("DROP TABLE idem_intents")
	require.NoError(t, err)
	_, err = j.Find(ctx, testRef(1))
	oneLine(t, err, "apply Schema or call Migrate")
}

// oneLine checks an error's form and what it advises.
func oneLine(t *testing.T, err error, advice string) {
	t.Helper()
	require.Error(t, err)
	assert.True(t, strings.HasPrefix(err.Error(), "journal: "), err.Error())
	assert.NotContains(t, err.Error(), "\n")
	assert.Equal(t, 1, strings.Count(err.Error(), advice), err.Error())
	assert.Equal(t, 1, strings.Count(err.Error(), "journal:"), err.Error())
}

func TestMintRequest(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{MaxBody: 100})
		ctx := t.Context()
		request := func(body string) *http.Request {
			r, err := http.NewRequest("POST", "http://api.test/charges", strings.NewReader(body))
			require.NoError(t, err)
			return r
		}
		require.NoError(t, j.MintRequest(ctx, j.db, testRef(1), request(`{"amount":5}`)))
		require.NoError(t, j.MintRequest(ctx, j.db, testRef(1), request(`{"amount":5}`)))
		require.NoError(t, j.Mint(ctx, j.db, testRef(1)))
		err := j.MintRequest(ctx, j.db, testRef(1), request(`{"amount":6}`))
		require.ErrorIs(t, err, idem.ErrIntentReused)
		oneLine(t, err, "order-1")
		err = j.MintRequest(ctx, j.db, testRef(2), request(strings.Repeat("x", 101)))
		require.ErrorIs(t, err, idem.ErrNotRepeatable)
		oneLine(t, err, "MaxBody")

		name := filepath.Join(t.TempDir(), "order.json")
		require.NoError(t, os.WriteFile(name, []byte(`??{"amount":7}`), 0o600))
		file, err := os.Open(name)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		_, err = file.Seek(2, io.SeekStart) // where the body begins
		require.NoError(t, err)
		r, err := http.NewRequest("POST", "http://api.test/charges", file)
		require.NoError(t, err)
		require.NoError(t, j.MintRequest(ctx, j.db, testRef(3), r))
		data, err := j.requestOf(ctx, testRef(3))
		require.NoError(t, err)
		assert.True(t, strings.HasSuffix(string(data), "\n"+`{"amount":7}`), "%q", data)
		require.NoError(t, j.MintRequest(ctx, j.db, testRef(3), request(`{"amount":7}`)), "the same request")
	})
}

func TestCancel(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{Lease: 50 * time.Millisecond})
		ctx := t.Context()
		require.ErrorIs(t, j.Cancel(ctx, j.db, testRef(1)), ErrNotMinted)
		require.NoError(t, j.Mint(ctx, j.db, testRef(1)))
		in, err := j.Claim(ctx, testRef(1))
		require.NoError(t, err)
		require.ErrorIs(t, j.Cancel(ctx, j.db, testRef(1)), ErrLeased)
		time.Sleep(60 * time.Millisecond)
		require.NoError(t, j.Cancel(ctx, j.db, testRef(1)))
		require.NoError(t, j.Cancel(ctx, j.db, testRef(1)))
		require.NoError(t, j.Mint(ctx, j.db, testRef(1)))
		_, err = j.Claim(ctx, testRef(1))
		require.ErrorIs(t, err, ErrCancelled)

		// Whoever held it cannot send any more.
		sent := 0
		c := client(t, "http://api.test", roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errors.New("sent") }))
		res, err := charge(ctx, c, in, testRef(1))
		require.ErrorIs(t, err, ErrCancelled)
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
		assert.Zero(t, sent)
	})
}

// A key may follow from the reference, so that a lost row is minted as it was.
func TestKeyOfReference(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{Key: func(r Ref) string {
			in, err := idem.Derive(r.Scope, r.ID, time.Now())
			require.NoError(t, err)
			return in.Key()
		}})
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		before, err := j.Find(t.Context(), testRef(1))
		require.NoError(t, err)
		_, err = j.db.Exec("DELETE FROM idem_intents")
		require.NoError(t, err)
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		after, err := j.Find(t.Context(), testRef(1))
		require.NoError(t, err)
		assert.Equal(t, before.Key, after.Key)
	})
}

// A key that the API does not take is refused where it is promised: later it could
// only be refused at every send.
func TestKeyThatTheContractRefuses(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{Contract: contract.Square(), Key: func(r Ref) string { return strings.Repeat("k", 46) }})
	err := j.Mint(t.Context(), j.db, testRef(1))
	require.ErrorIs(t, err, idem.ErrInvalidKey)
	oneLine(t, err, "the key has 46 bytes, square takes 1 to 45")
	_, err = j.Find(t.Context(), testRef(1))
	require.ErrorIs(t, err, ErrNotMinted)
}

func TestNew(t *testing.T) {
	_, err := New(nil, Config{Dialect: 7, Lease: -1, Headers: []string{"authorization", "Set-Cookie", "X-Api-Key"}})
	require.Error(t, err)
	for _, fault := range []string{"*sql.DB is nil", "Dialect 7", "Config.Lease", "Authorization", "Set-Cookie", "X-Api-Key"} {
		assert.Contains(t, err.Error(), fault)
	}
}

func TestMigrate(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		require.NoError(t, j.Migrate(t.Context()), "again")
		done := make(chan error)
		for range 8 {
			go func() { done <- s.journal(t, Config{}).Migrate(context.Background()) }()
		}
		for range 8 {
			require.NoError(t, <-done)
		}
		_, err := j.db.Exec("INSERT INTO idem_schema (version) VALUES (99)")
		require.NoError(t, err)
		oneLine(t, j.Migrate(t.Context()), "newer")
		assert.Contains(t, Schema(s.dialect), "CREATE TABLE idem_intents")
		assert.Empty(t, Schema(9))
	})
}

// A migration that cannot commit leaves no transaction open in the pool.
func TestMigrateUndone(t *testing.T) {
	s := store{"SQLite", SQLite, "sqlite", "file:" + filepath.Join(t.TempDir(), "journal.db") + "?_pragma=journal_mode(DELETE)"}
	j, reader := s.journal(t, Config{}), s.open(t, 1)
	_, err := reader.ExecContext(t.Context(), "CREATE TABLE orders (id TEXT)")
	require.NoError(t, err)
	tx, err := reader.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n)) // without a WAL nobody commits while another reads
	require.Error(t, j.Migrate(t.Context()))
	require.NoError(t, tx.Rollback())
	_, err = reader.ExecContext(t.Context(), "INSERT INTO orders VALUES ('1')")
	require.NoError(t, err, "nobody holds a lock")
	require.NoError(t, j.Migrate(t.Context()))
}
