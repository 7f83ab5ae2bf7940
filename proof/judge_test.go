package proof_test

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// judge holds every invariant against what the server knows. It is called when
// the call has returned, and again when nothing is on its way any more.
func (r *run) judge(when string) {
	fail := func(format string, args ...any) { r.failf(when+": "+format, args...) }
	r.mu.Lock()
	samples, attempts, trips := slices.Clone(r.samples), slices.Clone(r.attempts), r.trips
	r.mu.Unlock()
	requests, effects := r.ledger()
	res := r.result

	if r.getted { // the Result is the GET's
		res.Attempts, res.Sends = trips, sum(attempts)
	}
	if trips > maxAttempts || res.Attempts != trips || len(attempts) != trips {
		fail("%d attempts were made, %d are reported and %d were told", trips, res.Attempts, len(attempts))
	}
	r.judgeEffects(r.inTime(requests, effects), fail)
	r.judgeSends(requests, attempts, fail)
	r.judgeSamples(samples, requests, effects, fail)
	for _, q := range requests {
		whole := string(q.Body) == payload || r.failing.Load() && strings.HasPrefix(payload, string(q.Body))
		if q.Key != r.key() || !whole || len(q.Header["Idempotency-Key"]) != len(r.key())/36 {
			fail("request %d came with key %q and body %q", q.Seq, q.Header["Idempotency-Key"], q.Body)
		}
		if q.Host != requests[0].Host && !r.unkeyed {
			fail("request %d came to %s, the first one to %s", q.Seq, q.Host, requests[0].Host)
		}
	}
	// Where an attempt was cut, and on HTTP/2, net/http may close it a moment
	// later; a request that is redirected http.Client itself closes once more.
	later := when != idle && (r.leaves() || r.cuts() || r.w.kind.http2)
	if n := r.closes(); n > 2 || n == 2 && !r.w.kind.redirects || n == 0 && !later {
		fail("the body was closed %d times", n)
	}
	if r.window > 0 {
		r.judgeWindow(requests, fail)
	}
	if r.in != nil && (r.after != res.Outcome || r.in.Outcome() != r.after) {
		fail("the call says %v, the Intent said %v and says %v", res.Outcome, r.after, r.in.Outcome())
	}
	if n := len(attempts); n > 0 && !r.getted && attempts[n-1].Outcome != res.Outcome {
		fail("the call says %v, its last attempt %v", res.Outcome, attempts[n-1].Outcome)
	}
}

// judgeEffects holds the outcome against the effects so far.
func (r *run) judgeEffects(effects int, fail func(string, ...any)) {
	once := r.once
	if r.unkeyed {
		once = r.onceUnkeyed
	}
	w := r.w.sum
	if effects > 1 {
		if r.unkeyed {
			w.doubledUnkeyed++
		} else {
			w.doubled++
		}
		if once {
			fail("%d effects", effects)
		}
	}
	res := r.result
	if r.getted {
		res.Status = 0
	}
	switch res.Outcome {
	case idem.NotExecuted:
		if effects == 0 {
			return
		}
		w.lied++
		if r.refused || res.Sends == 0 {
			fail("it says NotExecuted, and there are %d effects", effects)
		}
	case idem.Answered:
		switch done := res.Status >= 200 && res.Status < 300; {
		case done && effects == 0:
			fail("it says Answered with %d, and there is no effect", res.Status)
		case !done && effects > 0:
			w.reversed++
			if r.final {
				fail("it says Answered with %d, and there are %d effects", res.Status, effects)
			}
		}
	default:
		// The head alone of an answer that was cut may prove less.
		if r.err == nil && res.Status >= 200 && res.Status < 300 {
			fail("it hands over a %d and says Unknown", res.Status)
		}
	}
}

// judgeSends holds the counted sends against the requests that arrived. The
// count is exact, unless the attempt was cancelled while it was sending: then it
// is never too low.
func (r *run) judgeSends(requests []mockserver.Request, attempts []idem.Attempt, fail func(string, ...any)) {
	received := make([]int, maxAttempts+1)
	total := 0
	for _, q := range requests {
		if !q.Copy {
			total++
			received[min(tripOf(q), maxAttempts)]++
		}
	}
	wrong := func(reported, came int) bool { return reported < came || reported > came && !r.leaves() && !r.cuts() }
	if n := sum(attempts); wrong(n, total) || r.result.Sends != n && !r.getted {
		fail("%d sends are reported, %d were told, %d requests came", r.result.Sends, n, total)
	}
	for _, a := range attempts {
		if r.unkeyed && a.Sends > 1 && !r.w.kind.http2 {
			fail("attempt %d of a request without a key was sent %d times", a.Number, a.Sends)
		}
	}
	if r.leaves() || r.cuts() {
		return
	}
	for _, a := range attempts {
		if want := received[min(a.Number, maxAttempts)]; a.Sends != want {
			fail("attempt %d reports %d sends, %d requests came", a.Number, a.Sends, want)
		}
	}
}

// leaves reports whether the caller leaves in the middle.
func (r *run) leaves() bool { return r.do == "cancel" || r.deadline > 0 }

// cuts reports whether an attempt may end at a moment that no end has chosen: its
// connection dies, or its time runs out before it is sent.
func (r *run) cuts() bool {
	return r.do == "body fails" || strings.HasPrefix(r.do, "restart") || strings.HasPrefix(r.do, "sleep")
}

func (r *run) closes() int {
	if r.body == nil {
		return 1
	}
	return r.body.closed()
}

func sum(attempts []idem.Attempt) (sends int) {
	for _, a := range attempts {
		sends += a.Sends
	}
	return sends
}

// margin is what the client keeps free at the end of a window of more than four
// minutes.
const margin = 2 * time.Minute

// judgeWindow checks that nothing left after the window's end less the margin.
func (r *run) judgeWindow(requests []mockserver.Request, fail func(string, ...any)) {
	if len(requests) == 0 {
		return
	}
	for _, q := range requests {
		if age := q.Start.Sub(requests[0].Start) - r.ahead; !q.Copy && age >= r.window-margin {
			fail("request %d came %v after the first one, in a window of %v", q.Seq, age, r.window)
		}
	}
}

// inTime returns how many effects count. Against what comes so late that the
// server has forgotten the key no client can do anything.
func (r *run) inTime(requests []mockserver.Request, effects []mockserver.Effect) (n int) {
	for _, e := range effects {
		if r.window == 0 || e.At.Sub(requests[0].Start) < r.window || strings.HasPrefix(r.do, "advance") {
			n++
		}
	}
	return n
}

// judgeSamples holds every sample of the outcome against what came of the sends
// that had been made by then. With a server or gateway that breaks its word only
// what needs no word is judged.
func (r *run) judgeSamples(samples []sample, requests []mockserver.Request, effects []mockserver.Effect, fail func(string, ...any)) {
	trips := map[int]int{} // by Request.Seq
	for _, q := range requests {
		trips[q.Seq] = tripOf(q)
	}
	settled := false
	for _, s := range samples {
		if s.outcome == idem.Answered {
			settled = true
		} else if settled {
			fail("the outcome fell to %v %s", s.outcome, s.where)
		}
		if s.outcome != idem.NotExecuted {
			continue
		}
		if strings.HasPrefix(s.where, "in flight") && r.refused {
			fail("the outcome is NotExecuted %s", s.where)
		}
		for _, e := range effects {
			if trips[e.Request] <= s.trips && r.refused {
				fail("the outcome is NotExecuted %s (attempt %d), and there is an effect", s.where, s.trips)
				break
			}
		}
	}
}

// ledger returns the requests and the effects of this run, in their order.
func (r *run) ledger() (requests []mockserver.Request, effects []mockserver.Effect) {
	for _, q := range r.w.srv.Requests(r.key()) {
		if q.Caller == r.caller && q.Method != http.MethodGet {
			requests = append(requests, q)
		}
	}
	for _, e := range r.w.srv.Effects(r.key()) {
		if e.Caller == r.caller {
			effects = append(effects, e)
		}
	}
	return requests, effects
}
