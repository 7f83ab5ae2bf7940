package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// A story is several calls with one key, made one after the other or at the same
// time, by one process or by several.
type story struct {
	w      *world
	key    string
	script *mockserver.Script
	direct *director // nil: nothing waits

	mu       sync.Mutex
	plans    map[string][]end // by the caller's name: what its next attempts meet
	trips    int
	owners   map[int]*process // of the trips
	living   []*process
	told     []told
	bodies   []string // that were sent
	failures []string
	on       func(where string) // also told of each moment
}

// A process holds one Intent value.
type process struct {
	name    string
	in      *idem.Intent
	resumed bool // or derived, or adopted: its past is not known
	settled bool // it has said Answered, and State too
}

// told is an outcome that a process was told.
type told struct {
	who     *process
	where   string
	trips   int // RoundTrips of the story that had begun
	outcome idem.Outcome
}

const holderHeader, callerHeader = "Proof-Holder", "Proof-Caller"

// story begins one in w. The process that opens its Intent is called "first".
func (w *world) story(in *idem.Intent, resumed bool) (*story, *process) {
	s := &story{w: w, key: in.Key(), plans: map[string][]end{}, owners: map[int]*process{}}
	s.script = w.srv.On("POST /").Key(s.key)
	w.set(s)
	return s, s.process("first", in, resumed)
}

func (s *story) process(name string, in *idem.Intent, resumed bool) *process {
	p := &process{name: name, in: in, resumed: resumed}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living = append(s.living, p)
	return p
}

// dies takes a process away: it is told nothing any more.
func (s *story) dies(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range s.living {
		if q == p {
			s.living = append(s.living[:i:i], s.living[i+1:]...)
			return
		}
	}
}

// set sets what is told of each moment; nil: nothing is.
func (s *story) set(on func(where string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// meets says what the next attempts of a caller meet; later ones meet nothing.
func (s *story) meets(caller string, ends ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range ends {
		s.plans[caller] = append(s.plans[caller], parseEnd(text))
	}
}

// call makes a call as caller in p, and returns what it came to.
func (s *story) call(ctx context.Context, p *process, caller, body string) (idem.Result, error) {
	req, err := http.NewRequestWithContext(idem.WithIntent(ctx, p.in), http.MethodPost, s.w.srv.URL+"/charges", strings.NewReader(body))
	if err != nil {
		s.failf("%v", err)
		return idem.Result{}, err
	}
	req.Header.Set(holderHeader, p.name)
	req.Header.Set(callerHeader, caller)
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	resp, err := s.w.client.Do(req)
	var res idem.Result
	if e, ok := errors.AsType[*idem.Error](err); ok {
		res = e.Result
	} else if err != nil {
		s.failf("the error is no *idem.Error: %v", err)
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		res = idem.ResultOf(resp)
	}
	if !errors.Is(err, idem.ErrIntentReused) { // that one speaks of another request
		s.tell(p, "by the call of "+caller, res.Outcome)
		if res.Outcome == idem.Answered && res.Status >= 200 && res.Status < 300 && len(s.w.srv.Effects(s.key)) == 0 {
			s.failf("%s is told Answered with %d, and there is no effect", caller, res.Status)
		}
	}
	s.observe("after the call of " + caller)
	return res, err
}

// tell notes an outcome that p was told.
func (s *story) tell(p *process, where string, o idem.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.resumed && o == idem.NotExecuted {
		s.failures = append(s.failures, fmt.Sprintf("%s, whose past is not known, is told NotExecuted %s", p.name, where))
	}
	if p.settled && o != idem.Answered {
		s.failures = append(s.failures, fmt.Sprintf("%s had a settled answer and is told %v %s", p.name, o, where))
	}
	s.told = append(s.told, told{p, where, s.trips, o})
}

func (s *story) failf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// trip is told by the wire.
func (s *story) trip(r *http.Request) (end, connections) {
	caller := r.Header.Get(callerHeader)
	if s.direct != nil {
		s.direct.wait(r.Context(), caller, begins)
	}
	s.mu.Lock()
	e := end{fault: "pass"}
	if plan := s.plans[caller]; len(plan) > 0 {
		e, s.plans[caller] = plan[0], plan[1:]
	}
	s.trips++
	e.trip = s.trips
	for _, p := range s.living {
		if p.name == r.Header.Get(holderHeader) {
			s.owners[s.trips] = p
		}
	}
	s.mu.Unlock()
	if !e.refuse {
		s.script.Then(e.fault)
	}
	s.observe("before an attempt of " + caller)
	return e, fresh
}

func (s *story) tripped(r *http.Request, _ *http.Response) {
	caller := r.Header.Get(callerHeader)
	s.observe("in flight, with the answer to " + caller)
	if s.direct != nil {
		s.direct.wait(r.Context(), caller, ends)
	}
}

func (s *story) attempted(a idem.Attempt) { s.observe("between attempts") }

// observe samples the outcome of every living process.
func (s *story) observe(where string) {
	s.mu.Lock()
	living := append([]*process(nil), s.living...)
	on := s.on
	s.mu.Unlock()
	for _, p := range living {
		o := p.in.Outcome()
		s.tell(p, where, o)
		if o != idem.Answered {
			continue
		}
		settled := p.in.State().Outcome == idem.Answered
		s.mu.Lock()
		p.settled = p.settled || settled
		s.mu.Unlock()
	}
	if on != nil {
		on(where)
	}
}

// judge lets everything arrive and holds what was told against the ledger.
func (s *story) judge(once bool) []string {
	s.check("when the calls had returned", once)
	for s.w.srv.Release(s.key) > 0 {
		synctest.Wait()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	s.observe(idle)
	s.check(idle, once)
	return s.failures
}

func (s *story) check(when string, once bool) {
	requests, effects := s.w.srv.Requests(s.key), s.w.srv.Effects(s.key)
	if once && len(effects) > 1 {
		s.failf("%s: %d effects", when, len(effects))
	}
	trips := map[int]int{}
	for _, q := range requests {
		trips[q.Seq] = tripOf(q)
		if string(q.Body) != s.bodies[0] && string(q.Body) != s.bodies[len(s.bodies)-1] || len(q.Header["Idempotency-Key"]) != 1 || q.Key != s.key {
			s.failf("%s: request %d came with key %q and body %q", when, q.Seq, q.Header["Idempotency-Key"], q.Body)
		}
	}
	for _, t := range s.told {
		if t.outcome != idem.NotExecuted {
			continue
		}
		for _, e := range effects {
			if n := trips[e.Request]; n <= t.trips && s.owners[n] == t.who {
				s.failf("%s: %s was told NotExecuted %s, and its attempt %d has an effect", when, t.who.name, t.where, n)
			}
		}
	}
}
