package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// breaches takes apart what Verify returns.
func breaches(err error) []*mockserver.Breach {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var found []*mockserver.Breach
		for _, err := range all.Unwrap() {
			found = append(found, breaches(err)...)
		}
		return found
	}
	if b, ok := errors.AsType[*mockserver.Breach](err); ok {
		return []*mockserver.Breach{b}
	}
	return nil
}

// Intents through a fleet of four processes, while processes and the server are
// killed at random and the network breaks: each has one effect, none is expired.
func TestFleet(t *testing.T) {
	n := 150
	if long() {
		n = 1000
	}
	stores(t, func(t *testing.T, s store) {
		seed := uint64(time.Now().UnixNano()) //nolint:gosec // any
		t.Logf("seed %d", seed)
		chance := rand.New(rand.NewPCG(seed, 0))
		srv := mockserver.New(t, mockserver.Config{Addr: "127.0.0.1:0", Contract: testContract(), MaxAttempts: 200})
		srv.On("POST /charges").Sometimes(0.3, seed,
			"reset@received", "reset@stored", "drop@claimed", "503@received", "503@stored", "429@received", "cut@body", "delay@claimed for=50ms", "delay@received for=30ms")
		j := s.journal(t, testConfig(s.dialect))
		tx, err := j.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, j.mint(t.Context(), tx, testRef(i), "", nil, 0))
		}
		require.NoError(t, tx.Commit())

		fleet := make([]*process, 4)
		for i := range fleet {
			fleet[i] = s.start(t, "drain", srv.URL)
		}
		count := func(state State) (rows int) {
			require.NoError(t, j.db.QueryRow(fmt.Sprintf("SELECT count(*) FROM idem_intents WHERE state = '%s'", state)).Scan(&rows))
			return rows
		}
		kills, restarts, cuts, end := 0, 0, 0, time.Now().Add(4*time.Minute)
		for count(Settled) < n {
			require.True(t, time.Now().Before(end), "%d of %d are settled", count(Settled), n)
			time.Sleep(time.Duration(50+chance.IntN(250)) * time.Millisecond)
			if chance.IntN(4) == 0 {
				require.NoError(t, srv.Restart())
				restarts++
				continue
			}
			if s.dialect == Postgres && chance.IntN(4) == 0 { // whatever statement is under way
				_, err := j.db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()")
				require.NoError(t, err)
				cuts++
				continue
			}
			i := chance.IntN(len(fleet))
			fleet[i].kill()
			fleet[i] = s.start(t, "drain", srv.URL)
			kills++
		}
		for _, p := range fleet {
			p.kill()
		}
		t.Logf("%d Intents, %d requests, %d processes and %d servers killed, the database cut off %d times", n, len(srv.Requests("")), kills, restarts, cuts)
		assert.Zero(t, count(Expired))
		for i := range n {
			r := find(t, j, testRef(i))
			assert.Equal(t, 201, r.Status)
			assert.Len(t, srv.Effects(r.Key), 1, r.Key)
			srv.Believe(r.Key, mockserver.Done)
		}
		assert.Len(t, srv.Effects(""), n)
		for _, b := range breaches(srv.Verify()) {
			switch b.Kind {
			case "hurried": // net/http sends again without waiting
			case "early": // who knew how long to wait was killed
			default:
				assert.Fail(t, b.Text)
			}
		}
	})
}
