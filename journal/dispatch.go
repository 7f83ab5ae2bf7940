package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// A Handler makes the call of an Intent: what the process would have done that
// minted it. It gets the Intent claimed, and calls the same function as the first
// time, with what it finds in the caller's own tables under ref. An error says
// that the Intent is not settled, or why the caller's own part failed; it is told
// to Config.OnError, and the Intent, unless it is settled, comes again after a
// wait. So does one for which the Handler makes no call and returns nil. A settled
// Intent does not come again, even if the Handler has failed after its call: look
// in the caller's own tables for what that left undone.
type Handler func(ctx context.Context, ref Ref, in *idem.Intent) error

// A Finding is what the server says it did, asked another way than by sending
// again. The zero Finding says that it is not known.
type Finding struct {
	// Outcome is Answered: it was done; NotExecuted: it was not; OutcomeUnknown:
	// there is no telling.
	Outcome idem.Outcome
	// Status and Body are the answer to store, where there is one to give: whoever
	// asks with the Intent later gets it. ContentType is that of Body; empty:
	// application/json. Status 0: none.
	Status      int
	ContentType string
	Body        []byte
}

// A Dispatcher says how Run works. Only Handle is required.
type Dispatcher struct {
	// Handle makes the call. Journal.Resend sends the stored bytes.
	Handle Handler
	// Scopes are those whose Intents are taken; nil: all. Journals with different
	// contracts share a table only if each takes its own.
	Scopes []string
	// Workers is how many Intents are handled at a time; zero: 8.
	Workers int
	// Poll is how often the table is asked when nothing is due; zero: 1 s.
	Poll time.Duration
	// Grace is how long handlers may go on when Run is to stop; zero: 10 s;
	// negative: not at all.
	Grace time.Duration
	// Reconcile asks the server what became of an Intent that was sent or may
	// have been; nil: nobody asks. It is called before such an Intent is sent
	// again, before it expires, and instead of sending where the contract says
	// that sending again cannot tell more. Answered settles it. NotExecuted lets
	// it be sent again, within its window and unless that is of no use. An error
	// counts as not known.
	Reconcile func(context.Context, Record) (Finding, error)
	// OnExpired is the alarm: it is told of each Intent that is not settled and
	// stays so: its window has ended, or sending again cannot tell more and there
	// is no Reconcile. A person has to find out, unless Record.LastError says that
	// it was not done, as after refusals to the end; if the work must be done
	// again, it is minted under another reference. It is called before the row is
	// written, so that a crash may repeat it but not lose it. nil: nobody is told.
	OnExpired func(context.Context, Record)

	_ [0]func() // forbids comparison and literals without field names
}

// Run takes Intents that are due (minted and not claimed within a Lease, or
// unsettled and waited for long enough) or abandoned (their lease is over), and
// handles them, until ctx is done. Then it takes no more, lets its handlers go on
// for Grace, gives back what was not begun, and returns nil. Several processes may
// run it on one table: each Intent is taken by one of them.
//
// A database that cannot be reached is told to Config.OnError and asked again, less
// and less often. The error is about the Dispatcher only.
func (j *Journal) Run(ctx context.Context, d Dispatcher) error {
	if d.Handle == nil {
		return errors.New("journal: Dispatcher.Handle is nil")
	}
	if d.Workers < 0 || d.Poll < 0 {
		return errors.New("journal: Dispatcher.Workers and Poll must not be negative")
	}
	run := &dispatch{Dispatcher: d, j: j, query: j.dueQuery(len(d.Scopes))}
	run.Workers, run.Poll = cmp.Or(d.Workers, 8), cmp.Or(d.Poll, time.Second)
	run.args = []any{j.set.lease.Milliseconds(), run.Workers}
	for _, s := range d.Scopes {
		run.args = append(run.args, s)
	}
	run.run(ctx, cmp.Or(d.Grace, 10*time.Second))
	return nil
}

func (j *Journal) dueQuery(scopes int) string {
	filter := ""
	if scopes > 0 {
		names := make([]string, scopes)
		for i := range names {
			names[i] = fmt.Sprintf("$%d", i+3)
		}
		filter = " AND scope IN (" + strings.Join(names, ", ") + ")"
	}
	return j.dialect.spell(strings.Replace(dueSQL, "{scopes}", filter, 1))
}

// dispatch is one Run.
type dispatch struct {
	Dispatcher
	j     *Journal
	query string
	args  []any
}

func (d *dispatch) run(ctx context.Context, grace time.Duration) {
	work := make(chan *claim)
	handling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, stop) })()
	var workers sync.WaitGroup
	for range d.Workers {
		workers.Go(func() {
			for c := range work {
				d.handle(handling, c)
			}
		})
	}
	failures := 0
	for ctx.Err() == nil {
		batch, err := d.due(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			d.j.set.onError(ctx, Ref{}, err)
		} else {
			failures = 0
		}
		for _, c := range batch {
			select {
			case work <- c:
			case <-ctx.Done():
				d.giveBack(handling, c)
			}
		}
		if len(batch) < d.Workers {
			pause(ctx, d.Poll<<min(failures, 5))
		}
	}
	close(work)
	workers.Wait()
}

// due claims what is due, as much as there are workers.
func (d *dispatch) due(ctx context.Context) ([]*claim, error) {
	own, cancel := d.j.own(ctx, false)
	defer cancel()
	rows, err := d.j.rows(own, d.j.run, d.query, d.args...)
	if err != nil {
		return nil, failed(own, "take what is due", Ref{}, err)
	}
	claims := make([]*claim, 0, len(rows))
	for _, r := range rows {
		c, err := d.j.take(r)
		if err != nil {
			d.j.set.onError(ctx, r.ref, err)
			continue
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// giveBack returns a claim that was not used: the Intent is due as it was.
func (d *dispatch) giveBack(ctx context.Context, c *claim) {
	if _, err := c.write(ctx, true, d.j.q.extend, 0); err != nil {
		d.j.set.onError(ctx, c.ref, err) // the lease ends by itself
	}
}

// pause waits for about d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d/2 + time.Duration(rand.Int64N(int64(d/2)+1)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
