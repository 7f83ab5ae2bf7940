package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// A schedule is what the attempts of one call meet, and what else happens.
type schedule struct {
	kind    string
	conn    connections
	unkeyed bool
	ends    []string

	do       string        // a disturbance; empty: none
	at       moment        // when it happens
	deadline time.Duration // of the call; zero: none
}

// A moment is a place that the run passes, at one of its attempts.
type moment struct {
	where   string
	attempt int
}

// A run is one schedule under way, and what is seen of it.
type run struct {
	schedule
	promises
	window  time.Duration // of the client's contract; zero: long enough
	ahead   time.Duration // of the server's clock
	w       *world
	plan    []end
	in      *idem.Intent // nil: unkeyed
	caller  string
	script  *mockserver.Script
	body    *countedBody
	failing atomic.Bool // the body's readers fail half way

	mu       sync.Mutex
	trips    int
	restarts int  // of the server
	done     bool // the disturbance has happened
	cancel   context.CancelFunc
	first    time.Time // when the first attempt began
	samples  []sample
	attempts []idem.Attempt
	asked    time.Duration // by the last answer
	askedAt  time.Time
	failures []string

	result idem.Result
	err    error
	after  idem.Outcome // of the Intent, when the call had returned
	getted bool         // the response is that of a GET that the write was redirected to
}

// A sample is the Intent's outcome at one moment.
type sample struct {
	where   string
	trips   int // RoundTrips that had begun
	outcome idem.Outcome
}

const idle = "when the server was idle"

const payload = `{"amount":400}`

// run lets the client make one call. The number of the RoundTrips is how much of
// the schedule was met: any schedule with the same beginning ends the same way.
func (w *world) run(s schedule, n int) *run {
	r := &run{schedule: s, w: w, caller: "c" + strconv.Itoa(n)}
	for _, text := range s.ends {
		r.plan = append(r.plan, parseEnd(text))
	}
	r.script = w.srv.On("POST /").Caller(r.caller)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r.cancel = cancel
	if s.deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, s.deadline)
		defer stop()
	}
	if !s.unkeyed {
		r.in = idem.Open()
		ctx = idem.WithIntent(ctx, r.in)
	}
	w.set(r)
	r.body = &countedBody{Reader: r.reader()}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.srv.URL+"/charges", r.body)
	if err != nil {
		r.failf("%v", err)
		return r
	}
	req.ContentLength = int64(len(payload))
	req.Header.Set("X-Api-Key", r.caller) // http.Client drops Authorization at other origins
	// Both ways in which a body is read again; http.Client needs GetBody to redirect.
	if n%2 == 0 && !s.unkeyed || w.kind.redirects {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r.reader()), nil }
	}
	if s.unkeyed { // or nothing would be repeated: a stream is sent once
		req.Body = io.NopCloser(strings.NewReader(payload))
		r.body = nil
	}
	r.promises, r.window = w.kind.promises, w.kind.client.Window
	for _, d := range disturbances() {
		if d.do == s.do && (d.where == "" || d.where == s.at.where) {
			r.promises = r.promises.and(d.promises)
		}
	}
	r.observe("before the call")
	r.call(req)
	r.judge("when the call returned")
	r.drain(n%2 == 1)
	r.judge(idle)
	return r
}

// call makes the call and notes what it came to.
func (r *run) call(req *http.Request) {
	resp, err := r.w.client.Do(req)
	r.err = err
	if err == nil {
		r.getted = resp.Request.Method == http.MethodGet
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		r.result = idem.ResultOf(resp)
		if resp.StatusCode != r.result.Status && !r.getted {
			r.failf("the response has status %d, the Result %d", resp.StatusCode, r.result.Status)
		}
	} else if e, ok := errors.AsType[*idem.Error](err); ok {
		r.result = e.Result
	} else {
		r.failf("the error is no *idem.Error: %v", err)
	}
	r.observe("after the call")
	if r.in != nil {
		r.after = r.in.Outcome()
	}
}

// drain lets everything arrive that is still on its way, and lets it finish.
func (r *run) drain(newestFirst bool) {
	if r.w.kind.forgets {
		r.w.srv.Forget()
	}
	order := []int{1, 2, 3, 4}
	if newestFirst {
		slices.Reverse(order)
	}
	for _, n := range order {
		r.w.srv.Release(r.key(), n)
		synctest.Wait()
	}
	time.Sleep(2 * time.Minute) // delays, work, leases
	synctest.Wait()
	r.observe(idle)
}

func (r *run) key() string {
	if r.in == nil {
		return ""
	}
	return r.in.Key()
}

// trip notes that an attempt begins and returns what it is to meet.
func (r *run) trip(*http.Request) (end, connections) {
	r.mu.Lock()
	if waited := time.Since(r.askedAt); waited < r.asked && !r.getted {
		r.failures = append(r.failures, fmt.Sprintf("attempt %d came after %v, the server had asked for %v", r.trips+1, waited, r.asked))
	}
	r.asked = 0
	if r.trips++; r.trips == 1 {
		r.first = time.Now()
	}
	e := end{fault: "pass"}
	if r.trips <= len(r.plan) {
		e = r.plan[r.trips-1]
	}
	e.trip = r.trips
	r.mu.Unlock()
	if r.at.where == "a second later" {
		time.AfterFunc(time.Second, func() { r.observe("a second later") })
	}
	if !e.refuse { // of what does not reach it the server knows nothing
		r.script.Then(e.fault)
	}
	r.observe("before an attempt")
	return e, r.conn
}

// tripped notes what came of an attempt, before the client has judged it.
func (r *run) tripped(_ *http.Request, resp *http.Response) {
	r.observe("in flight, with the answer")
	if resp == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		r.asked, r.askedAt = time.Duration(n)*time.Second, time.Now()
	}
}

// attempted is OnAttempt.
func (r *run) attempted(a idem.Attempt) {
	r.observe("between attempts")
	if a.Method == http.MethodGet {
		return
	}
	r.mu.Lock()
	r.attempts = append(r.attempts, a)
	n := len(r.attempts)
	r.mu.Unlock()
	if r.at.where == "in the wait" && a.Retry {
		time.AfterFunc(a.Wait/2, func() { r.observe("in the wait") })
	}
	if r.w.kind.forgets && n == 2 {
		r.w.srv.Forget()
	}
}

// observe samples the Intent's outcome, and lets happen what happens here.
func (r *run) observe(where string) {
	r.mu.Lock()
	now := r.do != "" && !r.done && r.at == moment{where, r.trips}
	r.done = r.done || now
	r.mu.Unlock()
	r.sample(where)
	if now {
		r.disturb()
		r.sample(where)
	}
}

func (r *run) sample(where string) {
	if r.in == nil {
		return
	}
	o := r.in.Outcome()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, sample{where, r.trips, o})
}

func (r *run) failf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
