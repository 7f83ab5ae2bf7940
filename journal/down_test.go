package journal

import (
	"context"
	"database/sql"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outage is a database that can go away: PostgreSQL behind a proxy that cuts its
// connections, SQLite under somebody else's lock.
func outage(t *testing.T, s store) (_ store, down, up func()) {
	if s.dialect == SQLite {
		lock := s.open(t, 1)
		s.dsn = strings.Replace(s.dsn, "busy_timeout(10000)", "busy_timeout(20)", 1)
		var tx *sql.Tx
		return s, func() {
				var err error
				tx, err = lock.BeginTx(context.Background(), nil)
				require.NoError(t, err)
			}, func() {
				require.NoError(t, tx.Rollback())
			}
	}
	u, err := url.Parse(s.dsn)
	require.NoError(t, err)
	p := &proxy{to: u.Host}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.listener.Close(); p.down() })
	go p.serve()
	u.Host = p.listener.Addr().String()
	s.dsn = u.String()
	return s, p.down, p.up
}

type proxy struct {
	to       string
	listener net.Listener
	mu       sync.Mutex
	isDown   bool
	conns    []net.Conn
}

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		p.mu.Lock()
		if p.isDown || err != nil {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
		} else {
			p.conns = append(p.conns, in, out)
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
		p.mu.Unlock()
	}
}

func (p *proxy) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isDown = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) up() { p.mu.Lock(); p.isDown = false; p.mu.Unlock() }

// Without the database nothing is sent; when it is back, the rest happens by
// itself.
func TestDatabaseDown(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		s, down, up := outage(t, s)
		cfg := soon(contract.Contract{})
		cfg.Timeout = 300 * time.Millisecond
		var told atomic.Int32
		cfg.OnError = func(_ context.Context, _ Ref, err error) { told.Add(1) }
		j := s.journal(t, cfg)
		srv := mockserver.New(t, mockserver.Config{})
		c := client(t, srv.URL, srv.Transport())

		in := claimed(t, j, testRef(1))
		down()
		res, err := charge(t.Context(), c, in, testRef(1))
		require.Error(t, err)
		assert.Contains(t, err.Error(), "bind", "it says what could not be done")
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, idem.NotExecuted, res.Outcome, "the lease holds: nobody has sent it")
		time.Sleep(cfg.Lease)
		res, err = charge(t.Context(), c, in, testRef(1))
		require.Error(t, err)
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome, "the lease is over, for all that is known here")
		assert.Error(t, j.Mint(t.Context(), j.db, testRef(2)))
		_, err = j.Claim(t.Context(), testRef(1))
		oneLine(t, err, "claim")
		assert.Empty(t, srv.Requests(""))

		running(t, j, Dispatcher{Handle: calls(c)})
		require.Eventually(t, func() bool { return told.Load() > 0 }, 10*time.Second, 10*time.Millisecond)
		up()
		assert.Equal(t, 201, settled(t, j, testRef(1)).Status)
		assert.Len(t, srv.Effects(""), 1)
	})
}

// The database goes away while the answer is on its way: the caller gets it, and
// the row is settled later, by the server's stored answer.
func TestDatabaseDownBeforeSettle(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		s, down, up := outage(t, s)
		cfg := soon(contract.Contract{})
		cfg.Timeout = 300 * time.Millisecond
		var told atomic.Int32
		cfg.OnError = func(_ context.Context, ref Ref, err error) { told.Add(1) }
		j := s.journal(t, cfg)
		srv := mockserver.New(t, mockserver.Config{})
		var once sync.Once
		healthy := srv.Transport()
		c := client(t, srv.URL, roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := healthy.RoundTrip(r)
			once.Do(down)
			return resp, err
		}))
		in := claimed(t, j, testRef(1))
		res, err := charge(t.Context(), c, in, testRef(1))
		require.NoError(t, err)
		assert.Equal(t, 201, res.Status)
		assert.Positive(t, told.Load())
		up()
		assert.Equal(t, Unknown, find(t, j, testRef(1)).State)
		running(t, j, Dispatcher{Handle: calls(c)})
		assert.Equal(t, 201, settled(t, j, testRef(1)).Status)
		assert.Len(t, srv.Requests(""), 2)
		assert.Len(t, srv.Effects(""), 1)
	})
}
