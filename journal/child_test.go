package journal

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/require"
)

// The tests of crashes run this binary again as a child, which is killed.
func TestMain(m *testing.M) {
	if role := os.Getenv("IDEM_CHILD"); role != "" {
		if err := child(role); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// long reports whether the long forms of the tests are asked for.
func long() bool { return os.Getenv("IDEM_LONG") != "" }

const testLease = time.Second

// testContract has a short claim on the server's side, so that what a dead
// server held is free soon.
func testContract() contract.Contract {
	k := contract.Default()
	k.Lease = 300 * time.Millisecond
	return k
}

func testConfig(d Dialect) Config {
	return Config{
		Dialect: d, Contract: testContract(), Lease: testLease,
		Backoff: idem.Exponential(20*time.Millisecond, 200*time.Millisecond),
	}
}

func testRef(i int) Ref { return Ref{"shop/charge", fmt.Sprintf("order-%d", i)} }

// charge makes the call that testRef(i) stands for.
func charge(ctx context.Context, c *idem.Client, in *idem.Intent, ref Ref) (idem.Result, error) {
	return c.Call(ctx, in, "POST", "/charges", map[string]any{"amount": 500, "order": ref.ID}, nil)
}

// child is the life of a child process, up to the step at which it waits to be
// killed.
func child(role string) error {
	dialect, _ := strconv.Atoi(os.Getenv("IDEM_DIALECT"))
	db, err := sql.Open(os.Getenv("IDEM_DRIVER"), os.Getenv("IDEM_DSN"))
	if err != nil {
		return err
	}
	conns := 8
	if Dialect(dialect) == SQLite { //nolint:gosec // 0 or 1
		conns = 1 // as is best there: one writer at a time anyway
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	cfg := testConfig(Dialect(dialect)) //nolint:gosec // 0 or 1
	if os.Getenv("IDEM_VERBOSE") != "" {
		cfg.OnError = func(_ context.Context, ref Ref, err error) { fmt.Println("error:", ref, err) }
	}
	j, err := New(db, cfg)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if role == "mint" {
		return mintMany(ctx, j)
	}
	at := func(step string) {
		if step == role {
			fmt.Println("at", step)
			select {}
		}
	}
	c, err := idem.NewClient(idem.Config{BaseURL: os.Getenv("IDEM_URL"), Transport: &idem.Transport{
		Contract: testContract(), Base: base(at), Backoff: idem.Exponential(5*time.Millisecond, 50*time.Millisecond),
		OnAttempt: func(_ context.Context, a idem.Attempt) {
			if !a.Retry {
				at("before settle")
			}
		},
	}})
	if err != nil {
		return err
	}
	if role == "drain" {
		fmt.Println("at drain")
		return j.Run(ctx, Dispatcher{
			Workers: 8, Poll: 20 * time.Millisecond,
			Handle: func(ctx context.Context, ref Ref, in *idem.Intent) error {
				_, err := charge(ctx, c, in, ref)
				return err
			},
			OnExpired: func(_ context.Context, r Record) { fmt.Println("expired", r.Ref) },
		})
	}
	ref := testRef(0)
	if err := j.Mint(ctx, db, ref); err != nil {
		return err
	}
	at("minted")
	in, err := j.Claim(ctx, ref)
	if err != nil {
		return err
	}
	at("claimed")
	if role == "sent" {
		fmt.Println("at sent") // the server holds it
	}
	res, err := charge(ctx, c, in, ref)
	fmt.Printf("got %d %v %v\n", res.Status, res.Outcome, err)
	return nil
}

// base sends, and waits before and after it where at says so.
func base(at func(string)) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		at("bound")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			at("answered")
		}
		return resp, err
	})
}

// mintMany mints the same 200 references from 50 goroutines: in the long form all
// of them from each, else 40, so that 10 goroutines meet at each.
func mintMany(ctx context.Context, j *Journal) error {
	each := 40
	if long() {
		each = 200
	}
	var all sync.WaitGroup
	errs := make(chan error, 50)
	for g := range 50 {
		all.Go(func() {
			for i := range each {
				if err := j.Mint(ctx, j.db, testRef((i+g*4)%200)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// process is a child that runs.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan string
}

func (s store) start(t testing.TB, role, url string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), "IDEM_CHILD="+role, "IDEM_DSN="+s.dsn, "IDEM_DRIVER="+s.driver,
		"IDEM_DIALECT="+strconv.Itoa(int(s.dialect)), "IDEM_URL="+url)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default: // nobody reads that much
			}
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// await waits for a line that begins so.
func (p *process) await(prefix string) string {
	p.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the child ended without %q", prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
			p.t.Log(line)
		case <-timeout:
			p.t.Fatalf("the child did not say %q", prefix)
		}
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// settled waits until a row is settled.
func settled(t testing.TB, j *Journal, ref Ref) Record {
	t.Helper()
	var r Record
	require.Eventually(t, func() bool {
		var err error
		r, err = j.Find(t.Context(), ref)
		return err == nil && r.State == Settled
	}, 30*time.Second, 10*time.Millisecond)
	return r
}
