package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// judge holds the outcomes of a round against the ledger, now that nothing is
// under way any more, and returns the orders that are not done.
func (b *batch) judge(orders []*order, round int) (open []*order) {
	effects := b.effects()
	for _, o := range orders {
		n := effects[o.in.Key()]
		switch o.outcome {
		case idem.Answered:
			if n == 0 {
				b.total.losef("order %d was answered, and there is no effect", o.Number)
			}
			b.server.Believe(o.in.Key(), mockserver.Done)
			continue
		case idem.NotExecuted:
			if n > 0 {
				b.total.wrongf("order %d was not executed, and there are effects: %d", o.Number, n)
			}
		default:
		}
		if round == 0 {
			b.total.undone(o.outcome, n > 0)
		}
		open = append(open, o)
	}
	return open
}

// effects counts the effects by key.
func (b *batch) effects() map[string]int {
	count := map[string]int{}
	for _, e := range b.server.Effects("") {
		count[e.Key]++
	}
	return count
}

// audit is the last look: every order has one effect, every request had its key
// and its body, and the server's own verification agrees.
func (b *batch) audit() {
	effects := b.effects()
	bodies := map[string]string{}
	for _, o := range b.orders {
		text, err := json.Marshal(o)
		if err != nil {
			b.total.wrongf("order %d: %v", o.Number, err)
		}
		bodies[o.in.Key()] = string(text)
	}
	for _, r := range b.server.Requests("") {
		if r.Method == "" {
			continue // cut within its head: no key, and no work
		}
		// What was cut on the way is the beginning of it.
		if full, ok := bodies[r.Key]; !ok || !strings.HasPrefix(full, string(r.Body)) {
			b.total.wrongf("request %d has another key or another body: %.60q", r.Seq, r.Body)
		}
	}
	for _, o := range b.orders {
		key := o.in.Key()
		switch n := effects[key]; {
		case n == 0:
			b.total.losef("order %d has no effect in the end", o.Number)
		case n > 1:
			b.total.doublef("order %d has %d effects", o.Number, n)
		}
		delete(effects, key)
	}
	for key := range effects {
		b.total.doublef("there are effects of a key that no order has: %.8s", key)
	}
	b.total.finished(len(b.server.Effects("")))
	for _, breach := range breaches(b.server.Verify()) {
		switch breach.Kind {
		case "doubled":
			b.total.doublef("%s", breach.Text)
		case "lost":
			b.total.losef("%s", breach.Text)
		case "early": // by callers who ask again at once; within a call the Transport waits
		case "altered": // looked at above
		case "unfinished": // a request that was late and met a crash is the server's to tidy up
		case "hurried": // the log is written later than the client knows
		default:
			b.total.wrongf("%s: %s", breach.Kind, breach.Text)
		}
	}
}

// breaches takes the error of Verify apart.
func breaches(err error) (list []*mockserver.Breach) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, breaches(e)...)
		}
		return list
	}
	if b, ok := errors.AsType[*mockserver.Breach](err); ok {
		list = append(list, b)
	}
	return list
}
