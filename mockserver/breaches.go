package mockserver

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verifier holds what the checks share. The server is locked meanwhile.
type verifier struct {
	s      *Server
	order  []scope // the keys in the order of their first request
	keys   map[scope][]*Request
	worked map[int]bool // requests with an effect, by Seq
	found  []error
}

func (v *verifier) breachf(kind, key, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if v.s.scope != "" {
		text = fmt.Sprintf("scope %q: %s", v.s.scope, text)
	}
	v.found = append(v.found, &Breach{kind, key, text})
}

// workers returns the numbers of those requests that had an effect.
func (v *verifier) workers(list []*Request) (seqs []int) {
	for _, r := range list {
		if v.worked[r.Seq] {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

func (v *verifier) effects() {
	for _, who := range v.order {
		if w := v.workers(v.keys[who]); len(w) > 1 {
			v.breachf("doubled", who.key, "key %q has effects from %d requests: %v", who.key, len(w), w)
		}
	}
}

// unkeyed finds requests without a key that were repeated and worked twice.
func (v *verifier) unkeyed() {
	same := map[string][]*Request{}
	for who, list := range v.keys {
		if who.key != "" {
			continue
		}
		for _, r := range list {
			if v.s.contract.Keys(r.Method) {
				same[r.Caller+" "+r.Print] = append(same[r.Caller+" "+r.Print], r)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(same)) {
		list := same[id]
		w := v.workers(list)
		first := slices.IndexFunc(list, func(r *Request) bool { return v.worked[r.Seq] })
		if len(w) > 1 && !list[first].known() {
			v.breachf("doubled", "", "%s %s without a key has effects from %d requests: %v", list[0].Method, list[0].URL, len(w), w)
		}
	}
}

func (v *verifier) beliefs() {
	for _, key := range slices.Sorted(maps.Keys(v.s.beliefs)) {
		n := 0
		for _, e := range v.s.effects {
			if e.Key == key {
				n++
			}
		}
		switch b := v.s.beliefs[key]; {
		case b == Done && n == 0:
			v.breachf("lost", key, "key %q is believed done, but there is no effect", key)
		case b == NotDone && n > 0:
			v.breachf("phantom", key, "key %q is believed not done, yet there are effects: %d", key, n)
		}
	}
}

func (v *verifier) altered(who scope) {
	first := whole(v.keys[who])
	for _, r := range v.keys[who] {
		if first != nil && r.Print != first.Print && r.Print != "" {
			v.breachf("altered", who.key, "key %q came with %s %s in request %d and with another request in %d",
				who.key, first.Method, first.URL, first.Seq, r.Seq)
			return
		}
	}
}

// whole is the first request of list whose body came whole, or nil.
func whole(list []*Request) *Request {
	if i := slices.IndexFunc(list, func(r *Request) bool { return r.Print != "" }); i >= 0 {
		return list[i]
	}
	return nil
}

// rekeyed finds a new key for a request whose outcome was unknown.
func (v *verifier) rekeyed() {
	last := map[string]scope{} // caller and print: the newest key
	for _, who := range v.order {
		first := whole(v.keys[who])
		if first == nil {
			continue
		}
		id := who.caller + " " + first.Print
		if old, ok := last[id]; ok {
			before, now := v.keys[old], v.keys[who][0]
			final := before[len(before)-1]
			if !slices.ContainsFunc(before, (*Request).known) && !final.over.IsZero() && !now.Start.Before(final.over) {
				v.breachf("rekeyed", who.key, "request %d under key %q repeats request %d under key %q, whose outcome was unknown",
					now.Seq, who.key, before[0].Seq, old.key)
			}
		}
		last[id] = who
	}
}

// pairs calls f for each two attempts of a key that follow each other: the last
// request of one and the first of the next.
func (v *verifier) pairs(who scope, f func(before, after *Request)) {
	var before *Request
	for _, r := range v.keys[who] {
		if r.Copy || r.Attempt == 0 {
			continue
		}
		if before != nil && r.Attempt > before.Attempt && !before.over.IsZero() && !r.Start.Before(before.over) {
			f(before, r)
		}
		before = r
	}
}

func (v *verifier) waits(who scope) {
	v.pairs(who, func(before, after *Request) {
		waited := after.Start.Sub(before.over)
		asked, ok := before.asked()
		switch {
		case ok && waited < asked:
			v.breachf("early", who.key, "attempt %d of key %q came after %v, the server had asked for %v", after.Attempt, who.key, waited, asked)
		case after.Start.Sub(before.Start) < v.s.contract.Gap:
			v.breachf("early", who.key, "attempt %d of key %q came %v after the last, the contract's gap is %v",
				after.Attempt, who.key, after.Start.Sub(before.Start), v.s.contract.Gap)
		case before.failed() && waited < time.Millisecond:
			v.breachf("hurried", who.key, "attempt %d of key %q came after %v, without backoff", after.Attempt, who.key, waited)
		}
	})
}

// jitter finds clients that all wait equally long.
func (v *verifier) jitter() {
	waits := map[int][]time.Duration{} // by the number of the attempt
	for _, who := range v.order {
		v.pairs(who, func(before, after *Request) {
			if _, asked := before.asked(); !asked && before.failed() && after.Start.After(before.over) {
				waits[before.Attempt] = append(waits[before.Attempt], after.Start.Sub(before.over))
			}
		})
	}
	for _, n := range slices.Sorted(maps.Keys(waits)) {
		least, most := slices.Min(waits[n]), slices.Max(waits[n])
		if len(waits[n]) >= 5 && most-least <= least/100 {
			v.breachf("hurried", "", "%d keys waited %v to %v after attempt %d, without jitter", len(waits[n]), least, most, n)
		}
	}
}

func (v *verifier) storm(who scope) {
	most, sends := 0, 0
	for _, r := range v.keys[who] {
		most, sends = max(most, r.Attempt), max(sends, r.Send)
	}
	if most > v.s.maxAttempts {
		v.breachf("storm", who.key, "key %q came in %d attempts", who.key, most)
	}
	if sends > 32 {
		v.breachf("storm", who.key, "an attempt of key %q was sent %d times", who.key, sends)
	}
}

// known reports whether this request told the client how it ended.
func (r *Request) known() bool {
	return r.Status != 0 && !r.unanswered && !r.Left && !r.failed()
}

// failed reports whether the client may take the attempt for one to repeat.
func (r *Request) failed() bool {
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusLocked:
		return true
	}
	return r.unanswered || r.Left || r.Status == 0 || r.Status >= 500 || r.Answer == Busy
}

// asked returns the wait that the server's answer asks for.
func (r *Request) asked() (time.Duration, bool) {
	if r.retryAfter == "" || r.unanswered || r.Left {
		return 0, false
	}
	value := strings.TrimSpace(r.retryAfter)
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && strings.Trim(value, "0123456789.") == "" {
		if seconds >= math.MaxInt64/float64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds * float64(time.Second)), true
	}
	at, err := http.ParseTime(value)
	return at.Sub(r.over), err == nil
}
