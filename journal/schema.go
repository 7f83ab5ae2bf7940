package journal

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
)

// Dialect is the kind of database.
type Dialect uint8

const (
	SQLite   Dialect = iota // SQLite 3.42 or newer, through any driver
	Postgres                // PostgreSQL 12 or newer, through pgx or lib/pq
)

// version is that of the newest schema.
const version = 1

//go:embed schema/*.sql
var schemas embed.FS

// Schema returns the statements that make the table, for the caller's own
// migrations. Each version of the schema is a file of its own, so that a later
// one will be a step that follows this text; Migrate takes the same steps.
// An unknown dialect has none.
func Schema(d Dialect) string { return step(d, version) }

// step returns the statements that lead from one version less to v.
func step(d Dialect, v int) string {
	name := map[Dialect]string{SQLite: "sqlite", Postgres: "postgres"}[d]
	text, err := schemas.ReadFile(fmt.Sprintf("schema/%s-%d.sql", name, v))
	if err != nil {
		return ""
	}
	return string(text)
}

// Migrate brings the database to the schema of this package: it makes the table
// if there is none and remembers the version in the table idem_schema. It does
// nothing if there is nothing to do, and may be called by many processes at once.
// Nothing else calls it. A database of a newer version is an error.
//
// Use it, or Schema with migrations of your own, but not both.
func (j *Journal) Migrate(ctx context.Context) error {
	conn, err := j.db.Conn(ctx)
	if err != nil {
		return explain("migrate", Ref{}, err)
	}
	defer func() { _ = conn.Close() }()
	begin := "BEGIN IMMEDIATE" // the write lock, before anything is read
	if j.dialect == Postgres {
		begin = "BEGIN; SELECT pg_advisory_xact_lock(7235395)"
	}
	_, err = conn.ExecContext(ctx, begin)
	if err == nil {
		err = j.migrate(ctx, conn)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil { // of whichever step: the connection goes back to the pool
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return explain("migrate", Ref{}, err)
}

func (j *Journal) migrate(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS idem_schema (version integer NOT NULL)"); err != nil {
		return err
	}
	var at int
	if err := conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM idem_schema").Scan(&at); err != nil {
		return err
	}
	if at > version {
		return errors.New("journal: the database's schema is newer than this package")
	}
	for v := at + 1; v <= version; v++ {
		if _, err := conn.ExecContext(ctx, step(j.dialect, v)); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("INSERT INTO idem_schema (version) VALUES (%d)", v)); err != nil {
			return err
		}
	}
	return nil
}
