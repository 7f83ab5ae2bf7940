package chaos

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A Plan is one run: so many orders through a service with these faults.
type Plan struct {
	Shares      Shares
	Seed        uint64
	Work        time.Duration // of an order; zero: none
	Orders      int
	Callers     int
	Attempts    int           // of a call, at most
	Wait        time.Duration // between two attempts
	KeyPerOrder bool          // the application gives each order a key; false: each client's own rule holds
	Pause       time.Duration // before the application asks once more
}

// A Tally is what came of a run. Of the orders:
type Tally struct {
	Orders   int
	Effects  int
	Attempts int // requests that arrived
	Doubled  int // have more than one effect
	Lost     int // have none in the end
	Unknown  int // the client does not know what became of them: it has failed though there is an effect, or it says so itself
	Wrong    int // the client says what is not so: done without an effect, or not executed with one
	Bad      int // are any of these
	Failed   int // the application got an error, or no 2xx, both times
	GaveUp   int // the application had to ask once more
	Refused  int // requests that no client should make
	Busy     int // requests that came while the first was at work
	Wall     time.Duration
}

// Run places the orders through one client. The application asks once more, with
// the same key if it has one, when the client gave up.
func (p Plan) Run(peer peers.Peer) Tally {
	service := NewService(p.Shares.Plan(p.Seed), func() { time.Sleep(p.Work) })
	server := httptest.NewUnstartedServer(service)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	transport := &http.Transport{MaxIdleConns: 8 * p.Callers, MaxIdleConnsPerHost: 8 * p.Callers}
	defer transport.CloseIdleConnections()
	client := peer.New(peers.Config{Transport: transport, BaseURL: server.URL, Attempts: p.Attempts, Wait: p.Wait})

	ends := make([]end, p.Orders)
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range p.Callers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < p.Orders; i = int(next.Add(1)) - 1 {
				ends[i] = p.place(client, server.URL, i)
			}
		})
	}
	wg.Wait()
	t := Tally{Orders: p.Orders, Wall: time.Since(start), Refused: service.Refused(), Busy: service.Busy()}
	for i, e := range ends {
		t.add(e, service.Entry(peers.OrderID(i)))
	}
	return t
}

// An end is what the application has in the end.
type end struct {
	calls   int
	done    bool // 2xx
	says    bool // the client has an outcome
	outcome idem.Outcome
}

// place asks once, and once more if that failed.
func (p Plan) place(client peers.Client, base string, number int) end {
	ctx, c := context.Background(), peers.Call{URL: base + "/v1/orders", Body: peers.Order(number)}
	keeper, keeps := client.(peers.Keeper)
	keeps = keeps && !p.KeyPerOrder
	switch {
	case keeps:
		ctx = keeper.Open(ctx)
	case p.KeyPerOrder:
		c.Key = "order-" + peers.OrderID(number)
	}
	e := end{says: keeps}
	for e.calls < 2 && !e.done {
		if e.calls > 0 {
			time.Sleep(p.Pause)
		}
		e.calls++
		status, err := client.Do(ctx, c)
		e.done = err == nil && status/100 == 2
	}
	if keeps {
		e.outcome = keeper.Outcome(ctx)
	}
	return e
}

// add counts one order: what the application was told against what is so.
func (t *Tally) add(e end, so Entry) {
	t.Effects += so.Effects
	t.Attempts += so.Attempts
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	count(&t.Doubled, so.Effects > 1)
	count(&t.Lost, so.Effects == 0)
	count(&t.Failed, !e.done)
	count(&t.GaveUp, e.calls > 1)
	unknown, wrong := !e.done && so.Effects > 0, e.done && so.Effects == 0
	if e.says {
		unknown = e.outcome == idem.OutcomeUnknown
		wrong = e.outcome == idem.Answered && so.Effects == 0 || e.outcome == idem.NotExecuted && so.Effects > 0
	}
	count(&t.Unknown, unknown)
	count(&t.Wrong, wrong)
	count(&t.Bad, so.Effects != 1 || unknown || wrong)
}
