package idem_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// fuzzEnds are the ends that an attempt can come to; a byte chooses one. All of
// them are possible with a server that keeps its side of the contract.
func fuzzEnds() []mockserver.Fault {
	return []mockserver.Fault{
		"pass",
		"refuse@dial", "drop@dial", "hang@dial", "delay@dial for=3s",
		"drop@received", "reset@received", "freeze@received", "hang@received", "delay@received for=40s", "crash@received",
		"503@received", "503@received retry-after=3", "500@received", "501@received", "429@received", "429@received retry-after=90",
		"408@received", "425@received", "409@received", "409@received retry-after=2", "401@received", "404@received",
		"422@received", `422@received header="X-Should-Retry: true" retry-after=1`, `503@received header="X-Should-Retry: false"`,
		"502@received forward=now", "504@received forward=late", "reset@received forward=late", "drop@received forward=now",
		"copy@received", "copy@received forward=late", `raw@received text="HTTP/1."`,
		"402@claimed", "402@claimed; drop@stored", "503@claimed", "drop@claimed", "crash@claimed", "delay@claimed for=35s",
		"drop@worked", "reset@worked",
		"503@stored", "drop@stored", "reset@stored", "freeze@stored", "hang@stored", "crash@stored",
		"drop@head", "cut@head after=9", "malformed@head",
		"drop@body", "cut@body after=5", "cut@body end=reset", "freeze@body", "dribble@body size=4 every=1s",
		"abort@received code=7", "abort@stored code=2", "goaway@received", "goaway@stored last=this",
		"reset@received send=1; drop@stored send=2", "drop@stored send=1; 429@received send=2", "drop@stored send=1; 401@received send=2",
	}
}

// A fuzzPlan is what the bytes before the schedule say.
type fuzzPlan struct {
	keyed, http2 bool
	body         byte // 0: in memory; 1: a stream; 2: with GetBody
	limit        int
	calls        int
	deadline     time.Duration // of each call; zero: none
	cancel       time.Duration // of each call; negative: never
	faults       []mockserver.Fault
}

func readPlan(data []byte) (fuzzPlan, bool) {
	if len(data) < 3 || len(data) > 15 {
		return fuzzPlan{}, false
	}
	times := []time.Duration{0, time.Millisecond, 150 * time.Millisecond, time.Second, 29 * time.Second, 31 * time.Second, 65 * time.Second}
	p := fuzzPlan{
		keyed: data[0]&1 == 0, http2: data[0]&2 != 0, body: data[0] >> 2 % 3, calls: 1 + int(data[0]>>4)%3,
		limit: 1 + int(data[1])%5, cancel: -1,
	}
	if !p.keyed {
		p.calls = 1 // another would be another deed
	}
	switch n := int(data[2]) % (1 + 2*len(times)); {
	case n == 0:
	case n <= len(times):
		p.cancel = times[n-1]
	default:
		p.deadline = times[n-1-len(times)] + time.Microsecond
	}
	ends := fuzzEnds()
	for _, b := range data[3:] {
		p.faults = append(p.faults, ends[int(b)%len(ends)])
	}
	return p, true
}

// FuzzTransport lets a byte string decide how attempts end, and holds what idem
// says against the ledger of the server: at each attempt, at each return, and
// when everything that was still on its way has arrived.
func FuzzTransport(f *testing.F) {
	for i := range fuzzEnds() {
		f.Add([]byte{0, 3, 0, byte(i)})
		f.Add([]byte{1, 3, 0, byte(i)})
		f.Add([]byte{0x16, 3, 0, byte(i), byte(i)})
		f.Add([]byte{0x28, 1, byte(i), byte(i), 43, byte(i)})
	}
	f.Add([]byte("\xef7\x01")) // cancelled while it sends
	f.Add([]byte("B0\x01j1"))  // a stream that the server has seen and does not read
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ok := readPlan(data)
		if !ok {
			t.Skip("too short for a plan")
		}
		synctest.Test(t, func(t *testing.T) { p.run(t) })
	})
}

// A fuzzRun is one plan under way.
type fuzzRun struct {
	fuzzPlan
	t         *testing.T
	server    *mockserver.Server
	in        *idem.Intent // nil: without a key
	transport *idem.Transport
	attempts  int // of the call
	sends     int // of all
	settled   bool
}

func (p fuzzPlan) run(t *testing.T) {
	server, err := mockserver.Start(mockserver.Config{Addr: "memory", HTTP2: p.http2, MaxAttempts: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := &fuzzRun{fuzzPlan: p, t: t, server: server}
	if p.keyed {
		r.in = idem.Open()
	}
	server.On("POST /orders").Then(p.faults...)
	r.transport = &idem.Transport{Base: server.Transport(), MaxAttempts: p.limit, OnAttempt: r.onAttempt}
	for range p.calls {
		r.call()
	}
	r.settle()
}

const fuzzBody = `{"amount":4200}`

// call makes one call.
func (r *fuzzRun) call() {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	if r.deadline > 0 {
		ctx, cancel = context.WithTimeout(ctx, r.deadline)
		defer cancel()
	}
	if r.cancel >= 0 {
		defer time.AfterFunc(r.cancel, cancel).Stop()
	}
	if r.keyed {
		ctx = idem.WithIntent(ctx, r.in)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+"/orders", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	counted := newCountedBody(fuzzBody)
	req.ContentLength = int64(len(fuzzBody))
	switch req.Body = counted; r.body {
	case 0:
		req.Body = io.NopCloser(strings.NewReader(fuzzBody))
	case 1:
		req.ContentLength = -1
	case 2:
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte(fuzzBody))), nil }
	}
	r.attempts = 0
	resp, err := r.transport.RoundTrip(req)
	var res idem.Result
	if err != nil {
		res = theError(r.t, err).Result
		r.checkf(resp == nil, "both a response and an error: %v", err)
	} else {
		res = idem.ResultOf(resp)
		defer time.AfterFunc(time.Hour, cancel).Stop() // a body that passes through has no clock of ours
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	synctest.Wait()
	if r.body != 0 {
		r.checkf(counted.closed() == 1, "the body was closed %d times", counted.closed())
	}
	r.checkf(res.Attempts == r.attempts && res.Attempts <= r.limit, "%d attempts in the Result, %d were told, the limit is %d", res.Attempts, r.attempts, r.limit)
	r.truth("the Result", res.Outcome, res.Status)
	if r.keyed {
		r.truth("the Intent", r.in.Outcome(), 0)
	}
}

func (r *fuzzRun) onAttempt(_ context.Context, a idem.Attempt) {
	r.attempts++
	r.sends += a.Sends
	r.checkf(a.Number == r.attempts, "attempt %d is told as %d", r.attempts, a.Number)
	r.checkf(a.Status != 422 || !a.Retry, "a 422 is repeated")
	r.checkf(a.Sends <= 33, "%d sends of one attempt", a.Sends)
	r.checkf(r.keyed || !a.Retry || a.Sends == 0, "without a key, and repeated after %d sends", a.Sends)
	if a.Outcome == idem.Answered && a.Status/100 == 2 {
		r.settled = true
	}
	if !r.settled || a.Status/100 == 2 { // a later call may meet something else; its Result tells what stands
		r.truth("attempt "+fmt.Sprint(a.Number), a.Outcome, a.Status)
	}
}

// truth holds an outcome against the ledger as it is now.
func (r *fuzzRun) truth(who string, o idem.Outcome, status int) {
	n := len(r.server.Effects(""))
	switch {
	case o == idem.NotExecuted:
		r.checkf(n == 0, "%s says not executed, and there are effects: %d", who, n)
	case o == idem.Answered && status/100 == 2:
		r.checkf(n == 1 || n > 1 && !r.keyed, "%s says done, and there are effects: %d", who, n)
	case o == idem.Answered && status != 0:
		r.checkf(n == 0, "%s says that the server said no (%d), and there are effects: %d", who, status, n)
	}
}

// settle lets everything arrive that is still on its way, and looks again.
func (r *fuzzRun) settle() {
	outcome, key := idem.OutcomeUnknown, ""
	if r.keyed {
		outcome, key = r.in.Outcome(), r.in.Key()
	}
	r.server.Release(key)
	time.Sleep(time.Hour)
	synctest.Wait()
	r.truth("the Intent, in the end,", outcome, 0)
	arrived, copies := 0, 0
	for _, req := range r.server.Requests("") {
		if req.Copy {
			copies++
			continue
		}
		arrived++
		if req.Method == "" {
			continue // its head was not read whole before the connection ended: the log knows no key of it
		}
		r.checkf(strings.Join(req.Header["Idempotency-Key"], ",") == key, "request %d has the key %q", req.Seq, req.Header["Idempotency-Key"])
		// A cancel in the middle cuts it.
		r.checkf(strings.HasPrefix(fuzzBody, string(req.Body)), "request %d has the body %q", req.Seq, req.Body)
	}
	r.checkf(arrived <= r.sends, "%d requests arrived, %d sends were counted", arrived, r.sends)
	effects := len(r.server.Effects(""))
	if r.keyed {
		r.checkf(effects <= 1, "%d effects under one key", effects)
	} else {
		r.checkf(effects <= r.calls+copies, "%d effects of %d calls without a key", effects, r.calls)
	}
}

func (r *fuzzRun) checkf(ok bool, format string, args ...any) {
	r.t.Helper()
	if !ok {
		r.t.Errorf("%s\n%+v", fmt.Sprintf(format, args...), r.fuzzPlan)
	}
}
