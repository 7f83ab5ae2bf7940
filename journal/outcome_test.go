package journal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
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

// claimed mints and claims a reference.
func claimed(t *testing.T, j *Journal, ref Ref) *idem.Intent {
	t.Helper()
	require.NoError(t, j.Mint(t.Context(), j.db, ref))
	in, err := j.Claim(t.Context(), ref)
	require.NoError(t, err)
	return in
}

func find(t *testing.T, j *Journal, ref Ref) Record {
	t.Helper()
	r, err := j.Find(t.Context(), ref)
	require.NoError(t, err)
	return r
}

// What one call comes to, what the caller is told, and what the row says.
func TestOutcomes(t *testing.T) {
	tests := []struct {
		name    string
		faults  []mockserver.Fault // one attempt each: MaxAttempts is their number
		outcome idem.Outcome
		state   State
		unsent  bool // the row says that the key was never sent
		key     contract.Contract
	}{
		{name: "201", faults: []mockserver.Fault{"pass"}, outcome: idem.Answered, state: Settled},
		{name: "declined", faults: []mockserver.Fault{"402@received"}, outcome: idem.Answered, state: Settled},
		{name: "declined after a lost answer", faults: []mockserver.Fault{"reset@received", "402@received"}, outcome: idem.OutcomeUnknown, state: Unknown},
		{name: "declined after a refusal", faults: []mockserver.Fault{"429@received", "402@received"}, outcome: idem.Answered, state: Settled},
		{name: "lost", faults: []mockserver.Fault{"reset@stored"}, outcome: idem.OutcomeUnknown, state: Unknown},
		{name: "found again", faults: []mockserver.Fault{"reset@stored", "pass"}, outcome: idem.Answered, state: Settled},
		{name: "no connection", faults: []mockserver.Fault{"refuse@dial"}, outcome: idem.NotExecuted, state: Minted, unsent: true},
		{name: "refused", faults: []mockserver.Fault{"429@received"}, outcome: idem.NotExecuted, state: Minted},
		{name: "in progress", faults: []mockserver.Fault{"409@received"}, outcome: idem.OutcomeUnknown, state: Unknown},
		{name: "unavailable", faults: []mockserver.Fault{"503@received"}, outcome: idem.OutcomeUnknown, state: Unknown},
		{name: "a stored failure", faults: []mockserver.Fault{`500@received header="Idempotent-Replayed: true"`}, outcome: idem.OutcomeUnknown, state: Stuck},
		{name: "mismatch after a lost answer", faults: []mockserver.Fault{"reset@received", "422@received"}, outcome: idem.OutcomeUnknown, state: Stuck},
		{name: "failures are stored", faults: []mockserver.Fault{"500@received"}, outcome: idem.OutcomeUnknown, state: Stuck, key: contract.Contract{Stored: contract.StoredAll}},
	}
	stores(t, func(t *testing.T, s store) {
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				srv := mockserver.New(t, mockserver.Config{Contract: tt.key})
				srv.On("POST /charges").Then(tt.faults...)
				j := s.journal(t, Config{Contract: tt.key})
				c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{
					Base: srv.Transport(), Contract: tt.key, MaxAttempts: len(tt.faults), Backoff: idem.Exponential(1, 1),
				}})
				require.NoError(t, err)
				in := claimed(t, j, testRef(i))
				res, err := charge(t.Context(), c, in, testRef(i))
				assert.Equal(t, tt.outcome, res.Outcome, "%v", err)
				assert.Equal(t, tt.outcome, in.Outcome())
				r := find(t, j, testRef(i))
				assert.Equal(t, tt.state, r.State)
				assert.Equal(t, tt.unsent, r.FirstSent.IsZero())
				assert.Equal(t, tt.unsent, r.KeyDeadline.IsZero())
				assert.Equal(t, 1, r.Attempts)
				assert.Equal(t, tt.state != Settled, r.LastError != "", r.LastError)
				if tt.state != Settled {
					return
				}
				// From then on the row answers, here and after another claim.
				again, err := j.Claim(t.Context(), testRef(i))
				require.NoError(t, err)
				sent := len(srv.Requests(""))
				for _, in := range []*idem.Intent{in, again} {
					stored, err := charge(t.Context(), c, in, testRef(i))
					assert.Equal(t, res.Status, stored.Status, "%v", err)
					assert.Equal(t, idem.Answered, stored.Outcome)
					assert.Equal(t, idem.Replayed, stored.Replay)
					assert.Zero(t, stored.Attempts)
				}
				assert.Len(t, srv.Requests(""), sent)
				_, err = c.Call(t.Context(), again, "POST", "/charges", "another", nil)
				require.ErrorIs(t, err, idem.ErrIntentReused)
			})
		}
	})
}

// The answer that a settled row gives is the one that came.
func TestStoredAnswer(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		srv := mockserver.New(t, mockserver.Config{})
		c := client(t, srv.URL, srv.Transport())
		in := claimed(t, j, testRef(1))
		var first, second map[string]any
		_, err := c.Call(t.Context(), in, "POST", "/charges", map[string]int{"amount": 5}, &first)
		require.NoError(t, err)
		require.NotEmpty(t, first)
		in, err = j.Claim(t.Context(), testRef(1))
		require.NoError(t, err)
		_, err = c.Call(t.Context(), in, "POST", "/charges", map[string]int{"amount": 5}, &second)
		require.NoError(t, err)
		assert.Equal(t, first, second)

		n, err := j.Purge(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Zero(t, n, "it is younger")
		n, err = j.Purge(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		in, err = j.Claim(t.Context(), testRef(1))
		require.NoError(t, err)
		res, err := c.Call(t.Context(), in, "POST", "/charges", map[string]int{"amount": 5}, &second)
		require.ErrorIs(t, err, ErrNoAnswer)
		assert.Equal(t, idem.Answered, res.Outcome)
		assert.Len(t, srv.Effects(""), 1)
	})
}

// What is too long to be stored, or a stream, comes as it would without a journal.
func TestLongAnswers(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{MaxBody: 100})
		release := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/long":
				_, _ = io.WriteString(w, strings.Repeat("x", 101))
			case "/events":
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: 1\n\n")
				_ = http.NewResponseController(w).Flush()
				<-release
				_, _ = io.WriteString(w, "data: 2\n\n")
			}
		}))
		defer srv.Close()
		c := client(t, srv.URL, http.DefaultTransport)
		for i, path := range []string{"/long", "/events"} {
			in := claimed(t, j, testRef(i))
			send := func() (*http.Response, error) {
				r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+path, strings.NewReader("{}"))
				require.NoError(t, err)
				return c.Do(in, r)
			}
			resp, err := send()
			require.NoError(t, err)
			assert.Equal(t, Settled, find(t, j, testRef(i)).State, "as soon as the head is there")
			if path == "/events" {
				close(release)
			}
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.NotEmpty(t, body)
			require.NoError(t, resp.Body.Close())
			_, err = send()
			require.ErrorIs(t, err, ErrNoAnswer)
		}
	})
}

// No limit at all is a limit as well.
func TestNoLimit(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{MaxBody: math.MaxInt64})
	srv := mockserver.New(t, mockserver.Config{})
	c := client(t, srv.URL, srv.Transport())
	in := claimed(t, j, testRef(1))
	for range 2 {
		var out struct{ ID string }
		_, err := c.Call(t.Context(), in, "POST", "/charges", map[string]int{"amount": 5}, &out)
		require.NoError(t, err)
		assert.Equal(t, "1", out.ID)
	}
	fill(t, j, 1, srv.URL+"/charges")
	data, err := j.requestOf(t.Context(), testRef(0))
	require.NoError(t, err)
	assert.Contains(t, string(data), `{"amount":500}`)
}

// A request that cannot be sent again is not sent at all.
func TestBodyThatCannotBeReadAgain(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{})
	var sent atomic.Int32
	c := client(t, "http://api.test", roundTripper(func(*http.Request) (*http.Response, error) {
		sent.Add(1)
		return nil, errors.New("sent")
	}))
	in := claimed(t, j, testRef(1))
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://api.test/charges", io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<20))))
	require.NoError(t, err)
	_, err = c.Do(in, r)
	require.ErrorIs(t, err, idem.ErrNotRepeatable)
	assert.Zero(t, sent.Load())
	assert.Equal(t, Minted, find(t, j, testRef(1)).State)
}

// A redirect is one request; the row is bound to where it began.
func TestRedirect(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		var keys []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			if r.URL.Path == "/charges" {
				http.Redirect(w, r, "/v2/charges", http.StatusTemporaryRedirect)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}))
		defer srv.Close()
		c := client(t, srv.URL, http.DefaultTransport)
		in := claimed(t, j, testRef(1))
		res, err := charge(t.Context(), c, in, testRef(1))
		require.NoError(t, err)
		assert.Equal(t, 2, res.Attempts)
		r := find(t, j, testRef(1))
		assert.Equal(t, Settled, r.State)
		assert.Equal(t, 1, r.Attempts)
		assert.Equal(t, []string{r.Key, r.Key}, keys)
	})
}

// Two claims, one after the other: the first can neither send nor write any more.
func TestFence(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{Lease: 50 * time.Millisecond})
		srv := mockserver.New(t, mockserver.Config{})
		c := client(t, srv.URL, srv.Transport())
		late := claimed(t, j, testRef(1))
		time.Sleep(60 * time.Millisecond)
		in, err := j.Claim(t.Context(), testRef(1))
		require.NoError(t, err)
		res, err := charge(t.Context(), c, late, testRef(1))
		require.ErrorIs(t, err, ErrLeaseLost)
		assert.Equal(t, idem.OutcomeUnknown, res.Outcome, "the other may have sent it")
		assert.Equal(t, idem.OutcomeUnknown, late.Outcome())
		assert.Empty(t, srv.Requests(""))
		_, err = charge(t.Context(), c, in, testRef(1))
		require.NoError(t, err)
		res, err = charge(t.Context(), c, late, testRef(1))
		require.NoError(t, err, "it is settled: the row answers")
		assert.Zero(t, res.Attempts)
		assert.Equal(t, idem.Answered, late.Outcome())
		assert.Len(t, srv.Requests(""), 1)
	})
}

// A call that takes longer than the lease keeps it; one that lost it ends.
func TestLeaseIsExtended(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{Lease: 300 * time.Millisecond})
		hold := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}))
		defer srv.Close()
		c := client(t, srv.URL, http.DefaultTransport)
		in := claimed(t, j, testRef(1))
		done := make(chan error, 1)
		go func() { _, err := charge(t.Context(), c, in, testRef(1)); done <- err }()
		for range 12 {
			time.Sleep(50 * time.Millisecond)
			_, err := j.Claim(t.Context(), testRef(1))
			require.ErrorIs(t, err, ErrLeased)
		}
		_, err := j.db.Exec("UPDATE idem_intents SET lease_token = lease_token + 1")
		require.NoError(t, err)
		select {
		case err := <-done:
			require.ErrorIs(t, err, ErrLeaseLost)
		case <-time.After(5 * time.Second):
			t.Error("it goes on without the lease")
		}
		close(hold)
	})
}

// A panic below a call ends the lease like a process that died: whoever recovers
// it, another may go on.
func TestPanicEndsTheLease(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{Lease: 200 * time.Millisecond})
		base := roundTripper(func(*http.Request) (*http.Response, error) { panic("base") })
		srv := mockserver.New(t, mockserver.Config{})
		in := claimed(t, j, testRef(1))
		assert.Panics(t, func() { _, _ = charge(t.Context(), client(t, srv.URL, base), in, testRef(1)) })
		before := find(t, j, testRef(1))
		assert.Equal(t, Unknown, before.State)
		time.Sleep(250 * time.Millisecond)
		assert.Equal(t, before.LeaseUntil, find(t, j, testRef(1)).LeaseUntil, "nobody extends it")

		_, err := charge(t.Context(), client(t, srv.URL, srv.Transport()), claimed(t, j, testRef(1)), testRef(1))
		require.NoError(t, err)
		assert.Len(t, srv.Effects(before.Key), 1)
	})
}

// Credentials are in no column; what is stored can be sealed.
func TestNothingSecretIsStored(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		for _, sealed := range []bool{false, true} {
			cfg := Config{Headers: []string{"X-Tenant"}}
			if sealed {
				cfg.Seal = newBox(t)
			}
			s := s.fresh(t)
			j := s.journal(t, cfg)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Set-Cookie", "session=hush")
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer srv.Close()
			c := client(t, srv.URL, http.DefaultTransport)
			in := claimed(t, j, testRef(1))
			r, err := http.NewRequestWithContext(t.Context(), "POST", strings.Replace(srv.URL, "http://", "http://user:hush@", 1)+"/charges?a=%2F&b=ü", strings.NewReader(`{"card":"4242"}`))
			require.NoError(t, err)
			r.Header = http.Header{"Authorization": {"Bearer hush"}, "Cookie": {"hush"}, "X-Api-Key": {"hush"}, "X-Tenant": {"seen"}, "Content-Type": {"application/json"}}
			resp, err := c.Do(in, r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			row, err := j.read(t.Context(), j.db, testRef(1))
			require.NoError(t, err)
			assert.NotEmpty(t, row.request)
			assert.NotContains(t, string(row.request), "hush")
			assert.NotContains(t, string(row.request), row.key)
			assert.NotContains(t, row.lastError, "hush")
			assert.Equal(t, !sealed, strings.Contains(string(row.request), "4242"))
			if !sealed {
				assert.Contains(t, string(row.request), "seen")
				continue
			}
			back, err := j.set.keep.stored(t.Context(), testRef(1), row.request)
			require.NoError(t, err)
			assert.Equal(t, "POST", back.Method)
			_, err = j.set.keep.stored(t.Context(), testRef(2), row.request)
			require.Error(t, err, "moved to another row it does not open")
			_, err = s.journal(t, Config{}).set.keep.stored(t.Context(), testRef(1), row.request)
			oneLine(t, err, "Config.Seal is nil")
		}
	})
}

// box is a Sealer as a caller would write one.
type box struct{ cipher.AEAD }

func newBox(t *testing.T) box {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	aead, err := cipher.NewGCMWithRandomNonce(block)
	require.NoError(t, err)
	return box{aead}
}

func (b box) Seal(_ context.Context, ref Ref, plain []byte) ([]byte, error) {
	return b.AEAD.Seal(nil, nil, plain, []byte(ref.Scope+"\x00"+ref.ID)), nil
}

func (b box) Open(_ context.Context, ref Ref, sealed []byte) ([]byte, error) {
	return b.AEAD.Open(nil, nil, sealed, []byte(ref.Scope+"\x00"+ref.ID))
}

// Many calls on one claimed Intent at a time: one effect, one outcome, and
// whoever comes after it asks the row.
func TestConcurrentCalls(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, soon(contract.Contract{}))
		srv := mockserver.New(t, mockserver.Config{})
		srv.On("POST /charges").Then("503@received", "reset@stored")
		c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{
			Base: srv.Transport(), MaxAttempts: 20, Backoff: idem.Exponential(time.Millisecond, 20*time.Millisecond),
		}})
		require.NoError(t, err)
		in := claimed(t, j, testRef(1))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				res, err := charge(t.Context(), c, in, testRef(1))
				assert.NoError(t, err)
				assert.Equal(t, 201, res.Status)
			})
		}
		all.Wait()
		r := find(t, j, testRef(1))
		assert.Equal(t, Settled, r.State)
		assert.Len(t, srv.Effects(r.Key), 1)
		assert.Len(t, srv.Effects(""), 1)
	})
}
