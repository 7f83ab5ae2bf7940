package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/textproto"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// Config says how a Journal works. The zero Config is one on SQLite that keeps
// contract.Default.
type Config struct {
	// Dialect is the database's; zero: SQLite.
	Dialect Dialect
	// Contract is that of the API that the Intents are sent to; it must be that
	// of the Transport. Zero: contract.Default. Its Window bounds how long an
	// Intent is sent again, and its Stored which answers end that.
	Contract contract.Contract
	// Lease is how long a claim holds when its process has died. A call that
	// takes longer extends it. Zero: 30 s.
	Lease time.Duration
	// Margin is the part at the window's end in which no attempt starts: for the
	// time that a request takes, and for clocks that differ. Zero: 2 min; never
	// more than half the window.
	Margin time.Duration
	// Timeout bounds each statement of the Journal's own; zero: 5 s.
	Timeout time.Duration
	// Backoff bounds the wait before a dispatcher takes an Intent again whose
	// call did not settle it; nil: idem.Exponential(1 s, 5 min). The wait is
	// drawn from the upper half.
	Backoff idem.Backoff
	// Key makes the key of a new row; nil: a random UUID. A function of the
	// reference alone (see idem.Derive) gives the same key again if a row was
	// lost with its database.
	Key func(Ref) string
	// Seal encrypts what is stored of requests and answers; nil: it is stored as
	// it is.
	Seal Sealer
	// Headers are kept besides the usual ones, of requests and of answers. Names
	// that hold credentials are refused by New.
	Headers []string
	// MaxBody bounds the bodies that are stored; zero: 1 MiB; negative: no
	// request and no body of an answer is stored. A longer request cannot be
	// sent again by Resend, and a longer answer not be given again.
	MaxBody int64
	// OnError is told what could not be written and does not concern the call at
	// hand, such as an outcome whose answer was handed over; nil: nobody is.
	OnError func(context.Context, Ref, error)

	_ [0]func() // forbids comparison and literals without field names
}

// A Ref names an Intent by what the caller calls it. Both parts are required.
type Ref struct {
	Scope string // the operation, the provider, the account: "shop/charge"
	ID    string // the business id within it: "order-17"
}

// String returns both parts, quoted and cut short.
func (r Ref) String() string { return fmt.Sprintf("%.40q %.40q", r.Scope, r.ID) }

func (r Ref) check() error {
	if r.Scope == "" || r.ID == "" {
		return errors.New("journal: a Ref needs a Scope and an ID: what is left empty would be shared by all")
	}
	return nil
}

// A Querier runs a statement in the caller's transaction or connection: *sql.Tx,
// *sql.Conn and *sql.DB are Queriers.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Journal is the table of Intents in one database. Make it with New; it is
// safe for concurrent use and has nothing to close: what it holds ends with the
// *sql.DB, which stays the caller's.
type Journal struct {
	db      *sql.DB
	run     Querier // for the Journal's own statements
	dialect Dialect
	q       queries
	set     settings
}

// settings are the Config's fields with their defaults.
type settings struct {
	contract      contract.Contract
	lease         time.Duration
	timeout       time.Duration
	deadlineAfter any // milliseconds from the first send to the last attempt; nil: for ever
	backoff       idem.Backoff
	key           func(Ref) string
	keep          keeper
	onError       func(context.Context, Ref, error)
}

// New returns a Journal on db. It checks cfg and returns all faults at once; it
// asks the database nothing. The table must exist before the Journal is used: see
// Schema and Migrate.
func New(db *sql.DB, cfg Config) (*Journal, error) {
	var faults []error
	if db == nil {
		faults = append(faults, errors.New("journal: the *sql.DB is nil"))
	}
	if cfg.Dialect > Postgres {
		faults = append(faults, fmt.Errorf("journal: Config.Dialect %d is neither SQLite nor Postgres", cfg.Dialect))
	}
	if err := cfg.Contract.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("journal: Config.Contract is not valid: %w", err))
	}
	for name, d := range map[string]time.Duration{"Lease": cfg.Lease, "Margin": cfg.Margin, "Timeout": cfg.Timeout} {
		if d < 0 {
			faults = append(faults, fmt.Errorf("journal: Config.%s is %v; it must not be negative", name, d))
		}
	}
	for _, name := range cfg.Headers {
		if isCredential(name) {
			faults = append(faults, fmt.Errorf("journal: Config.Headers: %s may hold credentials, which are never stored", textproto.CanonicalMIMEHeaderKey(name)))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	j := &Journal{db: db, run: db, dialect: cfg.Dialect, q: queriesOf(cfg.Dialect), set: settingsOf(cfg)}
	if cfg.Dialect == SQLite {
		j.run = &prepared{db: db, all: make(map[string]*sql.Stmt)}
	}
	return j, nil
}

func settingsOf(cfg Config) settings {
	s := settings{
		contract: cfg.Contract.WithDefaults(),
		lease:    cmp.Or(cfg.Lease, 30*time.Second),
		timeout:  cmp.Or(cfg.Timeout, 5*time.Second),
		backoff:  cfg.Backoff,
		key:      cfg.Key,
		onError:  cfg.OnError,
	}
	if s.backoff == nil {
		s.backoff = idem.Exponential(time.Second, 5*time.Minute)
	}
	if s.key == nil {
		s.key = func(Ref) string { return idem.Open().Key() }
	}
	if s.onError == nil {
		s.onError = func(context.Context, Ref, error) {}
	}
	if w := s.contract.Window; w >= 0 {
		s.deadlineAfter = (w - min(cmp.Or(cfg.Margin, 2*time.Minute), w/2)).Milliseconds()
	}
	s.keep = newKeeper(cfg, s.contract)
	return s
}

// own returns a context for a statement of the Journal's own: with its time
// limit, and if late also past the end of ctx, for what must be written although
// the caller waits no more.
func (j *Journal) own(ctx context.Context, late bool) (context.Context, context.CancelFunc) {
	if late {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, j.set.timeout, errTimeout)
}
