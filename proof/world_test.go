package proof_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/require"
)

// A world is a server of one kind, a network and a Transport, in one bubble of
// virtual time. Schedules run in it one after the other.
type world struct {
	t         *testing.T
	kind      kind
	srv       *mockserver.Server
	wire      *wire
	transport *idem.Transport
	client    *http.Client
	now       atomic.Value // the scene under way
	processes atomic.Int64 // of the server, that have died
	sum       *tally
}

// A scene is what goes on in a world: it says what each attempt meets, and is
// told what happens.
type scene interface {
	trip(req *http.Request) (end, connections)      // an attempt begins
	tripped(req *http.Request, resp *http.Response) // Base has returned; nil: without an answer
	attempted(a idem.Attempt)                       // the Transport has judged it
	observe(where string)                           // a moment is passed
}

func (w *world) scene() scene { return w.now.Load().(holder).scene }

// set makes s the scene.
func (w *world) set(s scene) { w.now.Store(holder{s}) }

type holder struct{ scene }

// restart lets the server's process die, with whatever it was doing.
func (w *world) restart() {
	w.processes.Add(1)
	require.NoError(w.t, w.srv.Restart())
}

// maxAttempts is the limit of every call.
const maxAttempts = 4

func newWorld(t *testing.T, k kind) *world {
	t.Helper()
	w := &world{t: t, kind: k, sum: new(tally)}
	// Not New: it complains about scripted faults at points that an attempt does
	// not pass, as behind a stored answer.
	srv, err := mockserver.Start(mockserver.Config{Handler: w, Contract: k.contract, Kind: k.kind, Addr: "memory", HTTP2: k.http2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	w.srv = srv
	synctest.Wait() // until it accepts
	w.wire = newWire(w)
	t.Cleanup(w.wire.base.CloseIdleConnections)
	w.transport = &idem.Transport{
		Base: w.wire, MaxAttempts: maxAttempts, Contract: k.client,
		OnAttempt: func(_ context.Context, a idem.Attempt) { w.scene().attempted(a) },
	}
	if k.tune != nil {
		k.tune(w.transport)
	}
	w.client = &http.Client{Transport: w.transport}
	if k.careful {
		c, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: w.transport})
		require.NoError(t, err)
		w.client = c.HTTP()
	}
	return w
}

// ServeHTTP is the handler: it does the work, once for each time that it is
// called. GET warms a connection up.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/login":
		_, _ = io.WriteString(rw, "please log in")
		return
	case r.Method == http.MethodGet:
		rw.WriteHeader(http.StatusNoContent)
		return
	}
	scene := w.scene()
	process := w.processes.Load()
	scene.observe("in flight, before the work")
	time.Sleep(w.kind.work)
	if w.processes.Load() != process {
		return // a process that has died does nothing
	}
	mockserver.Did(r.Context(), "charge", nil)
	scene.observe("in flight, after the work")
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(rw, `{"id":"ch_1","status":"succeeded"}`)
}

// stampHeader tells the mock server which requests are one RoundTrip. Its own
// transport sets it; a wire does so because its dials differ.
const stampHeader = "Mock-Stamp"

// tripHeader tells which attempt of its scene a request belongs to.
const tripHeader = "Proof-Trip"

// tripOf is the number in it.
func tripOf(q mockserver.Request) int {
	n, _ := strconv.Atoi(q.Header.Get(tripHeader))
	return n
}

// A wire is the Base of the world's Transport: it lets each attempt meet its end,
// on a connection as the schedule says.
type wire struct {
	w      *world
	base   *http.Transport
	refuse atomic.Bool
	stamps atomic.Int64
}

func newWire(w *world) *wire {
	b := &wire{w: w}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!w.kind.http2)
	protocols.SetUnencryptedHTTP2(w.kind.http2)
	b.base = &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if b.refuse.Load() {
			return nil, refusedDial(addr)
		}
		return w.srv.Dial(ctx, network, addr)
	}}
	return b
}

func (b *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return b.base.RoundTrip(r)
	}
	scene := b.w.scene()
	e, conn := scene.trip(r)
	b.refuse.Store(false)
	b.base.CloseIdleConnections()
	if conn == reused && !e.refuse {
		b.warm()
	}
	b.refuse.Store(e.refuse || e.refuse2)
	out := r.Clone(r.Context())
	stamp := b.stamps.Add(1)
	out.Header.Set(stampHeader, "proof."+strconv.FormatInt(stamp, 10))
	out.Header.Set(tripHeader, strconv.Itoa(e.trip))
	resp, err := b.base.RoundTrip(out)
	scene.tripped(r, resp)
	return resp, err
}

// warm leaves one idle connection.
func (b *wire) warm() {
	req, err := http.NewRequest(http.MethodGet, b.w.srv.URL+"/warm", nil)
	require.NoError(b.w.t, err)
	resp, err := b.base.RoundTrip(req)
	require.NoError(b.w.t, err)
	require.NoError(b.w.t, resp.Body.Close())
}
