package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// databases are what every test of the shop runs on. IDEM_POSTGRES names a server,
// else it is the one of this machine.
func databases() map[string]string {
	dsn := os.Getenv("IDEM_POSTGRES")
	if dsn == "" {
		dsn = "postgres://root@127.0.0.1:5432/test?sslmode=disable"
	}
	return map[string]string{"SQLite": "", "PostgreSQL": dsn}
}

// onStores runs a test on a fresh store of each database, both at the same time.
func onStores(t *testing.T, test func(*testing.T, *Store)) {
	for name, dsn := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onFresh(t, dsn, func(s *Store) { test(t, s) })
		})
	}
}

func onFresh(t *testing.T, dsn string, test func(*Store)) {
	if isPostgres(dsn) {
		needPostgres(t, dsn)
	}
	require.NoError(t, onStore(t.Context(), dsn, func(s *Store) error {
		test(s)
		return nil
	}))
}

// needPostgres skips a test on a machine without a server, except where CI is set.
func needPostgres(t *testing.T, dsn string) {
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		missing(t, "no PostgreSQL server can be reached (IDEM_POSTGRES names another): "+err.Error())
	}
}

// missing skips a test that wants something of the machine; CI has everything.
func missing(t *testing.T, what string) {
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// house is a shop with its provider, served on a port.
type house struct {
	*Shop

	t        *testing.T
	provider *Provider
	url      string
}

func newHouse(t *testing.T, store *Store, cfg Config) *house {
	provider, err := startProvider()
	require.NoError(t, err)
	t.Cleanup(func() { _ = provider.Close() })
	cfg.Provider, cfg.Base = provider.URL, provider.Transport()
	shop, err := openShop(t.Context(), store, cfg, 20)
	require.NoError(t, err)
	h := &house{Shop: shop, t: t, provider: provider}
	server := httptest.NewServer(h.Handler())
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// reply is what a buyer gets.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// kind is the last part of the problem's type.
func (r reply) kind() string {
	var p struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(r.body), &p)
	return p.Type[strings.LastIndex(p.Type, "/")+1:]
}

// order asks for a seat.
func (h *house) order(buyer, key, body string) reply {
	h.t.Helper()
	return send(h.t, http.MethodPost, h.url+"/orders", buyer, body, key)
}

func send(t *testing.T, method, url, buyer, body string, keys ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	if buyer != "" {
		r.Header.Set("Authorization", "Bearer "+buyer)
	}
	if len(keys) > 0 {
		r.Header["Idempotency-Key"] = keys
	}
	got, err := roundTrip(r)
	require.NoError(t, err)
	return got
}

func roundTrip(r *http.Request) (reply, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b)}, err
}

func want(seat, card string) string { return `{"seat":"` + seat + `","card":"` + card + `"}` }

// count runs a query that gives a number.
func count(t *testing.T, s *Store, query string) int {
	t.Helper()
	var n int
	_, err := s.find(t.Context(), []any{&n}, query)
	require.NoError(t, err)
	return n
}

// one checks that there is one of everything that an order is.
func (h *house) one() {
	h.t.Helper()
	assert.Equal(h.t, 1, count(h.t, h.store, "SELECT count(*) FROM claims"), "claims")
	assert.Equal(h.t, 1, count(h.t, h.store, "SELECT count(*) FROM orders"), "orders")
	assert.Equal(h.t, 1, count(h.t, h.store, "SELECT count(*) FROM holds"), "seats")
	assert.Equal(h.t, 1, count(h.t, h.store, "SELECT count(*) FROM idem_intents"), "Intents")
	assert.Len(h.t, h.provider.Effects(""), 1, "charges")
}

// stale makes every open claim stale, as 30 s do.
func (h *house) stale() {
	h.t.Helper()
	_, err := h.store.exec(h.t.Context(), "UPDATE claims SET held_until = 0 WHERE status IS NULL")
	require.NoError(h.t, err)
}

// pause is a step at which the first to come waits until it is released.
type pause struct {
	step    string
	reached chan struct{}
	release chan struct{}
	first   chan struct{}
}

func newPause(step string) *pause {
	p := &pause{step, make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)}
	p.first <- struct{}{}
	return p
}

func (p *pause) at(step string) {
	if step != p.step {
		return
	}
	select {
	case <-p.first:
		close(p.reached)
		<-p.release
	default:
	}
}

// wait waits for the step to be reached.
func (p *pause) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.reached:
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody came to %q", p.step)
	}
}
