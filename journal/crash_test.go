package journal

import (
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process is killed at each step of an Intent's life; another goes on. There is
// one key, one effect and one settled outcome.
func TestKilled(t *testing.T) {
	steps := []struct {
		step  string
		fault mockserver.Fault // what holds the request at the server
	}{
		{"minted", ""},
		{"claimed", ""},
		{"bound", ""},
		{"sent", "hang@received"}, // and not worked on yet
		{"sent", "hang@stored"},   // worked on, and the answer lost
		{"answered", ""},
		{"before settle", ""},
	}
	stores(t, func(t *testing.T, s store) {
		for _, step := range steps {
			t.Run(step.step+" "+string(step.fault), func(t *testing.T) {
				t.Parallel()
				s := s.fresh(t)
				srv := serve(t)
				if step.fault != "" {
					srv.On("POST /charges").Then(step.fault)
				}
				j := s.journal(t, testConfig(s.dialect))

				first := s.start(t, step.step, srv.URL)
				first.await("at " + step.step)
				if step.fault != "" {
					held := mockserver.Received
					if step.fault == "hang@stored" {
						held = mockserver.Stored
					}
					r, err := j.Find(t.Context(), testRef(0))
					require.NoError(t, err)
					require.NoError(t, srv.Await(t.Context(), r.Key, 1, held))
				}
				first.kill()
				before, err := j.Find(t.Context(), testRef(0))
				require.NoError(t, err)

				second := s.start(t, "drain", srv.URL)
				second.await("at drain")
				if step.fault == "hang@received" {
					time.Sleep(testLease / 2)
					srv.Release(before.Key) // it arrives after its sender has died
				}
				after := settled(t, j, testRef(0))
				assert.Equal(t, before.Key, after.Key)
				assert.Equal(t, 201, after.Status)
				oneEffect(t, srv, before.Key)
			})
		}
	})
}

// A worker that is stopped past its lease and wakes up settles nothing: another
// has the Intent, and its outcome stays.
func TestPaused(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		srv := serve(t)
		srv.On("POST /charges").Then("hang@stored")
		j := s.journal(t, testConfig(s.dialect))
		first := s.start(t, "sent", srv.URL)
		first.await("at sent")
		r, err := j.Find(t.Context(), testRef(0))
		require.NoError(t, err)
		require.NoError(t, srv.Await(t.Context(), r.Key, 1, mockserver.Stored))
		first.signal(syscall.SIGSTOP)

		second := s.start(t, "drain", srv.URL)
		before := settled(t, j, testRef(0))
		assert.Equal(t, 201, before.Status)

		srv.Release(r.Key)
		first.signal(syscall.SIGCONT)
		// What it says is true: the answer it waited for, or that it does not know.
		assert.Regexp(t, `^got (201 answered|\d+ unknown)`, first.await("got"))
		after, err := j.Find(t.Context(), testRef(0))
		require.NoError(t, err)
		assert.Equal(t, before, after)
		oneEffect(t, srv, r.Key)
		second.kill()
	})
}

// serve starts a server on a real port.
func serve(t *testing.T) *mockserver.Server {
	srv := mockserver.New(t, mockserver.Config{Addr: "127.0.0.1:0", Contract: testContract(), MaxAttempts: 40})
	return srv
}

// oneEffect checks that everything that arrived had one key and one effect.
func oneEffect(t *testing.T, srv *mockserver.Server, key string) {
	t.Helper()
	assert.Len(t, srv.Effects(""), 1)
	assert.Len(t, srv.Effects(key), 1)
	for _, r := range srv.Requests("") {
		assert.Equal(t, key, r.Key)
	}
	srv.Believe(key, mockserver.Done)
	assert.NoError(t, srv.Verify())
}
