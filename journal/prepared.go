package journal

import (
	"context"
	"database/sql"
	"sync"
)

// prepared is a Querier that prepares each statement once: SQLite parses as long
// as it works. The statements end with the *sql.DB. PostgreSQL's drivers do the
// same by themselves, and know what a connection pooler in between allows.
type prepared struct {
	db *sql.DB

	mu  sync.Mutex
	all map[string]*sql.Stmt
}

func (p *prepared) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	s := p.all[query]
	p.mu.Unlock()
	if s != nil {
		return s, nil
	}
	// Not under the lock: it waits for a connection.
	s, err := p.db.PrepareContext(ctx, query) //nolint:gosec // our own statements
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.all[query]; first != nil {
		_ = s.Close() //nolint:sqlclosecheck // the other is kept
		return first, nil
	}
	p.all[query] = s
	return s, nil
}

func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.statement(ctx, query) //nolint:sqlclosecheck // it is kept
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}
