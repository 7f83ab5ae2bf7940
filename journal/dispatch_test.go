package journal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// running starts a dispatcher that ends with the test, or with stop.
func running(t *testing.T, j *Journal, d Dispatcher) (stop func()) {
	if d.Poll == 0 {
		d.Poll = 10 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx, d) }()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); assert.NoError(t, <-done) }) }
	t.Cleanup(stop)
	return stop
}

func calls(c *idem.Client) Handler {
	return func(ctx context.Context, ref Ref, in *idem.Intent) error {
		_, err := charge(ctx, c, in, ref)
		return err
	}
}

// soon is a Config whose waits are short.
func soon(k contract.Contract) Config {
	return Config{Contract: k, Lease: 200 * time.Millisecond, Backoff: idem.Exponential(10*time.Millisecond, 50*time.Millisecond)}
}

// Resend sends the very bytes of the first time, with the same key, and nothing
// that was not stored; a transport below signs.
func TestResend(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, soon(contract.Contract{}))
		srv := mockserver.New(t, mockserver.Config{})
		srv.On("POST /charges").Then("reset@stored", "reset@head", "503@head", "503@head", "429@head")
		signing := roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer hush")
			return srv.Transport().RoundTrip(r)
		})
		c := client(t, srv.URL, signing)
		body := `{"amount": 5,  "note":"ü"}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/charges?x=%2F&y=ü", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Host = "api.example.com"
		require.NoError(t, j.MintRequest(t.Context(), j.db, testRef(1), r))
		running(t, j, Dispatcher{Handle: j.Resend(c)})
		row := settled(t, j, testRef(1))
		assert.Equal(t, 201, row.Status)
		all := srv.Requests("")
		assert.Greater(t, len(all), 5)
		for _, got := range all {
			assert.Equal(t, body, string(got.Body))
			assert.Equal(t, "/charges?x=%2F&y=ü", got.URL)
			assert.Equal(t, "api.example.com", got.Host)
			assert.Equal(t, "hush", got.Caller)
			assert.Equal(t, row.Key, got.Key)
			assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
		}
		assert.Len(t, srv.Effects(""), 1)
	})
}

func TestResendWithoutRequest(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{})
	c := client(t, "http://api.test", roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("sent") }))
	in := claimed(t, j, testRef(1))
	err := j.Resend(c)(t.Context(), testRef(1), in)
	require.ErrorIs(t, err, ErrNoRequest)
	oneLine(t, err, "MintRequest")
}

// A minted Intent is left to its minter for one lease, and taken then. A Handler
// that makes no call has settled nothing.
func TestDue(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, soon(contract.Contract{}))
		srv := mockserver.New(t, mockserver.Config{})
		c := client(t, srv.URL, srv.Transport())
		minted := time.Now()
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		var asked atomic.Int32
		running(t, j, Dispatcher{Scopes: []string{"other", "shop/charge"}, Handle: func(ctx context.Context, ref Ref, in *idem.Intent) error {
			assert.GreaterOrEqual(t, time.Since(minted), 190*time.Millisecond)
			switch asked.Add(1) {
			case 1:
				return errors.New("not yet")
			case 2:
				return nil
			}
			return calls(c)(ctx, ref, in)
		}})
		other := Ref{"shop/refund", "order-1"}
		require.NoError(t, j.Mint(t.Context(), j.db, other))
		settled(t, j, testRef(1))
		assert.EqualValues(t, 3, asked.Load())
		time.Sleep(250 * time.Millisecond)
		assert.Equal(t, Minted, find(t, j, other).State, "of another scope")
	})
}

// Two dispatchers never have one Intent at a time.
func TestEachIsTakenOnce(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		cfg := soon(contract.Contract{})
		cfg.Lease = 10 * time.Second
		var taken sync.Map
		srv := mockserver.New(t, mockserver.Config{})
		c := client(t, srv.URL, srv.Transport())
		one := s.journal(t, cfg)
		fill(t, one, 100, srv.URL+"/charges")
		for _, j := range []*Journal{one, s.journal(t, cfg)} {
			resend := j.Resend(c)
			running(t, j, Dispatcher{Handle: func(ctx context.Context, ref Ref, in *idem.Intent) error {
				_, twice := taken.LoadOrStore(ref, true)
				assert.False(t, twice)
				return resend(ctx, ref, in)
			}})
		}
		for i := range 100 {
			settled(t, one, testRef(i))
		}
		assert.Len(t, srv.Effects(""), 100)
	})
}

// What is unknown when the window ends is told and left alone: nothing is sent,
// and no new key is made.
func TestExpired(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		k := contract.Contract{Window: time.Second} // of which half is the margin
		var late atomic.Int32
		srv := mockserver.New(t, mockserver.Config{Contract: k})
		srv.On("POST /charges").Always("503@received")
		j := s.journal(t, soon(k))
		c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{Base: srv.Transport(), Contract: k, MaxAttempts: 1}})
		require.NoError(t, err)
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		expired := make(chan Record, 1)
		running(t, j, Dispatcher{Handle: calls(c), OnExpired: func(_ context.Context, r Record) { expired <- r }})
		told := <-expired
		assert.Equal(t, testRef(1), told.Ref)
		assert.Equal(t, Expired, told.State)
		assert.WithinRange(t, told.KeyDeadline, told.FirstSent.Add(490*time.Millisecond), told.FirstSent.Add(510*time.Millisecond))
		for _, r := range srv.Requests("") {
			assert.False(t, r.Start.After(told.KeyDeadline.Add(20*time.Millisecond)), "sent after the deadline")
			late.Add(1)
		}
		assert.Positive(t, late.Load())
		require.Eventually(t, func() bool { return find(t, j, testRef(1)).State == Expired }, 5*time.Second, 10*time.Millisecond)
		_, err = j.Claim(t.Context(), testRef(1))
		require.ErrorIs(t, err, idem.ErrExpired)
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		assert.Equal(t, told.Key, find(t, j, testRef(1)).Key)
		sent := len(srv.Requests(""))
		time.Sleep(300 * time.Millisecond)
		assert.Len(t, srv.Requests(""), sent)
	})
}

// The server is asked what it did before anything is sent again.
func TestReconcile(t *testing.T) {
	done := Finding{Outcome: idem.Answered, Status: 201, Body: []byte(`{"id":"ch_1"}`)}
	tests := []struct {
		name  string
		fault mockserver.Fault
		finds []Finding // nil error; the last one is found again and again
		err   error
		state State
		sends int // 0: does not matter
	}{
		{name: "done", fault: "reset@stored", finds: []Finding{done}, state: Settled, sends: 1},
		{name: "not known, then done", fault: `500@received header="Idempotent-Replayed: true"`, finds: []Finding{{}, {}, done}, state: Settled, sends: 1},
		{name: "not done", fault: "reset@received", finds: []Finding{{Outcome: idem.NotExecuted}}, state: Settled, sends: 2},
		{name: "cannot be asked", fault: "reset@received", finds: []Finding{done}, err: errors.New("no"), state: Settled, sends: 2},
		{name: "not done, and sending is of no use", fault: `500@received header="Idempotent-Replayed: true"`, finds: []Finding{{Outcome: idem.NotExecuted}}, state: Expired, sends: 1},
	}
	stores(t, func(t *testing.T, s store) {
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				srv := mockserver.New(t, mockserver.Config{})
				srv.On("POST /charges").Then(tt.fault)
				j := s.journal(t, soon(contract.Contract{}))
				c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{Base: srv.Transport(), MaxAttempts: 1}})
				require.NoError(t, err)
				require.NoError(t, j.Mint(t.Context(), j.db, testRef(i)))
				var asked atomic.Int32
				var alarm atomic.Int32
				stop := running(t, j, Dispatcher{
					Handle: calls(c),
					Reconcile: func(_ context.Context, r Record) (Finding, error) {
						assert.NotEmpty(t, r.Key)
						n := int(asked.Add(1))
						return tt.finds[min(n, len(tt.finds))-1], tt.err
					},
					OnExpired: func(context.Context, Record) { alarm.Add(1) },
				})
				require.Eventually(t, func() bool { return find(t, j, testRef(i)).State == tt.state }, 10*time.Second, 10*time.Millisecond)
				stop()
				assert.GreaterOrEqual(t, int(asked.Load()), len(tt.finds))
				assert.Len(t, srv.Requests(""), tt.sends)
				if tt.state == Expired {
					assert.EqualValues(t, 1, alarm.Load())
					return
				}
				if tt.sends == 1 { // what was found is the answer
					in, err := j.Claim(t.Context(), testRef(i))
					require.NoError(t, err)
					var out map[string]string
					_, err = c.Call(t.Context(), in, "POST", "/charges", map[string]any{"amount": 500, "order": testRef(i).ID}, &out)
					require.NoError(t, err)
					assert.Equal(t, "ch_1", out["id"])
					assert.Len(t, srv.Requests(""), tt.sends)
				}
			})
		}
	})
}

// What the server asks to wait, the next call waits, whoever makes it.
func TestServersWait(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		srv := mockserver.New(t, mockserver.Config{})
		srv.On("POST /charges").Then("429@received retry-after=1", "503@received retry-after=1")
		j := s.journal(t, soon(contract.Contract{}))
		c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{Base: srv.Transport(), MaxRetryAfter: time.Millisecond}})
		require.NoError(t, err)
		fill(t, j, 1, srv.URL+"/charges")
		running(t, j, Dispatcher{Handle: j.Resend(c)})
		r := settled(t, j, testRef(0))
		assert.Equal(t, 3, r.Attempts)
		srv.Believe(r.Key, mockserver.Done)
		assert.NoError(t, srv.Verify())
	})
}

// So it is where the Transport had no attempt left, in each spelling of the wait.
func TestServersWaitAfterTheLastAttempt(t *testing.T) {
	inAnHour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	stores(t, func(t *testing.T, s store) {
		for _, fault := range []string{
			`503@received retry-after=3600`, `503@received retry-after=3600.5`, `503@received retry-after=99999999999999999999`,
			`503@received retry-after="` + inAnHour + `"`, `503@received header="Retry-After-Ms: 3600000"`,
		} {
			srv := mockserver.New(t, mockserver.Config{})
			srv.On("POST /charges").Then(mockserver.Fault(fault))
			j := s.fresh(t).journal(t, Config{Backoff: idem.Exponential(0, 0)})
			c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: &idem.Transport{Base: srv.Transport(), MaxAttempts: 1}})
			require.NoError(t, err)
			_, err = charge(t.Context(), c, claimed(t, j, testRef(1)), testRef(1))
			require.ErrorIs(t, err, idem.ErrExhausted)
			d := &dispatch{j: j, query: j.dueQuery(0), args: []any{1000, 1}}
			claims, err := d.due(t.Context())
			require.NoError(t, err)
			assert.Empty(t, claims, fault)
		}
	})
}

// What sending again cannot tell, and nobody else is asked about, is told at once.
func TestStuckWithoutReconcile(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		srv := mockserver.New(t, mockserver.Config{})
		srv.On("POST /charges").Then(`500@received header="Idempotent-Replayed: true"`)
		j := s.journal(t, soon(contract.Contract{}))
		require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
		expired := make(chan Record, 1)
		running(t, j, Dispatcher{Handle: calls(client(t, srv.URL, srv.Transport())), OnExpired: func(_ context.Context, r Record) { expired <- r }})
		<-expired
		assert.Len(t, srv.Requests(""), 1)
	})
}

// A dispatcher that stops lets its handlers end, and gives back what it has not
// begun.
func TestGracefulStop(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		cfg := soon(contract.Contract{})
		cfg.Lease = time.Hour // what is not given back would not be seen again
		j := s.journal(t, cfg)
		srv := mockserver.New(t, mockserver.Config{})
		fill(t, j, 6, srv.URL+"/charges")
		c := client(t, srv.URL, srv.Transport())
		begun, goOn := make(chan struct{}, 6), make(chan struct{})
		resend := j.Resend(c)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- j.Run(ctx, Dispatcher{Workers: 3, Poll: time.Millisecond, Handle: func(ctx context.Context, ref Ref, in *idem.Intent) error {
				begun <- struct{}{}
				<-goOn
				assert.NoError(t, ctx.Err())
				return resend(ctx, ref, in)
			}})
		}()
		for range 3 {
			<-begun
		}
		time.Sleep(50 * time.Millisecond) // the next batch is claimed by now
		cancel()
		time.Sleep(50 * time.Millisecond)
		close(goOn)
		require.NoError(t, <-ended)
		assert.Len(t, srv.Effects(""), 3)
		running(t, j, Dispatcher{Handle: resend})
		for i := range 6 {
			settled(t, j, testRef(i))
		}
		assert.Len(t, srv.Effects(""), 6)
	})
}

// A handler that goes on for longer than Grace is told to stop.
func TestGraceEnds(t *testing.T) {
	j := sqliteStore(t).journal(t, soon(contract.Contract{}))
	require.NoError(t, j.Mint(t.Context(), j.db, testRef(1)))
	begun := make(chan struct{})
	stop := running(t, j, Dispatcher{Grace: 10 * time.Millisecond, Handle: func(ctx context.Context, _ Ref, _ *idem.Intent) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}})
	<-begun
	stop()
	assert.Equal(t, "context canceled", find(t, j, testRef(1)).LastError)
}

func TestRunRefuses(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{})
	oneLine(t, j.Run(t.Context(), Dispatcher{}), "Handle")
	oneLine(t, j.Run(t.Context(), Dispatcher{Handle: j.Resend(nil), Workers: -1}), "Workers")
}

// Nothing that is printed of a record shows its key.
func TestRecordHidesItsKey(t *testing.T) {
	r := Record{Ref: testRef(1), Key: idem.Open().Key(), State: Minted}
	for _, text := range []string{fmt.Sprint(r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), r.LogValue().String()} {
		assert.NotContains(t, text, r.Key)
		assert.Contains(t, text, r.Key[:8])
	}
}

// The age that Purge goes by is counted from when a row expired, not from when its
// window ended: whoever was told today needs its bytes tomorrow.
func TestPurgeOfExpired(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		j := s.journal(t, Config{})
		fill(t, j, 1, "http://api.test/charges")
		longAgo := map[Dialect]string{SQLite: "created_at - 864000000", Postgres: "created_at - interval '10 days'"}[s.dialect]
		_, err := j.db.ExecContext(t.Context(), "UPDATE idem_intents SET state = 'unknown', key_deadline = "+longAgo)
		require.NoError(t, err)
		d := &dispatch{j: j, query: j.dueQuery(0), args: []any{1000, 1}}
		claims, err := d.due(t.Context())
		require.NoError(t, err)
		require.Len(t, claims, 1)
		d.handle(t.Context(), claims[0])
		r := find(t, j, testRef(0))
		assert.Equal(t, Expired, r.State)
		assert.Zero(t, r.SettledAt)
		n, err := j.Purge(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Zero(t, n)
		n, err = j.Purge(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	})
}

// An error may quote bytes that are no text for PostgreSQL. The row is written all
// the same: else it would be handled for ever, and never expire.
func TestErrorThatIsNoText(t *testing.T) {
	stores(t, func(t *testing.T, s store) {
		bad := errors.New("it said \x00\xff " + strings.Repeat("ü", 300))
		j := s.journal(t, Config{})
		fill(t, j, 1, "http://api.test/charges")
		d := &dispatch{j: j, query: j.dueQuery(0), args: []any{1000, 1}, Dispatcher: Dispatcher{
			Handle:    func(context.Context, Ref, *idem.Intent) error { return bad },
			Reconcile: func(context.Context, Record) (Finding, error) { return Finding{}, bad },
		}}
		handle := func() Record {
			claims, err := d.due(t.Context())
			require.NoError(t, err)
			require.Len(t, claims, 1)
			d.handle(t.Context(), claims[0])
			return find(t, j, testRef(0))
		}
		r := handle()
		assert.Zero(t, r.LeaseUntil, "the claim is given up")
		assert.Contains(t, r.LastError, "it said ?? üü")

		_, err := j.db.ExecContext(t.Context(), "UPDATE idem_intents SET state = 'unknown', key_deadline = created_at, next_at = created_at")
		require.NoError(t, err)
		r = handle()
		assert.Equal(t, Expired, r.State)
		assert.Contains(t, r.LastError, "it said ?? üü")
	})
}
