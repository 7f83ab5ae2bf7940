package mockserver

import (
	"context"
	"strconv"
	"time"
)

// verdict is what the faults at a point leave of a request.
type verdict struct {
	over   bool    // it goes no further
	dead   bool    // and nothing is tidied up: the process is gone
	answer *answer // is answered instead
}

// met is one fault that a request has met.
type met struct {
	Action string    `json:"action"`
	Point  Point     `json:"point"`
	At     time.Time `json:"at"`
}

// name is the action as it is written: a status by its number.
func (c clause) name() string {
	if c.action == "status" {
		return strconv.Itoa(c.status)
	}
	return c.action
}

// reach marks the point in the log and lets the request meet what is scripted
// there.
func (x *life) reach(p Point) verdict {
	due, held := x.mark(p)
	if p == Stored && x.lost != nil {
		x.sever(*x.lost)
		return verdict{over: true}
	}
	for _, c := range due {
		switch c.action {
		case "hang", "delay":
			if !x.hold(held, c.wait) {
				return verdict{over: true, dead: true}
			}
		case "status":
			x.forward(c.forward)
			a := &answer{kind: Injected, status: c.status, header: c.header.Clone(), body: []byte(c.raw)}
			return verdict{over: p != Claimed && p != Worked, answer: a}
		case "crash":
			x.sever(c)
			return verdict{over: true, dead: true}
		case "copy":
			x.forward(c.forward)
		default:
			if p == Worked { // the server knows nothing of it and keeps the answer
				x.lost = &c
				continue
			}
			x.forward(c.forward)
			x.sever(c)
			if p != Claimed {
				return verdict{over: true}
			}
		}
	}
	return verdict{}
}

// mark notes the point and returns the faults that are due there. A hold is in
// force by the time that Await sees the mark.
func (x *life) mark(p Point) (due []clause, held *hold) {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	x.rec.Points[p] = s.now()
	if x.step != nil {
		for i, c := range x.step.clauses {
			if c.at != p || c.send != 0 && c.send != x.rec.Send {
				continue
			}
			x.step.used[i] = true
			x.step.hits++
			x.rec.Fault, x.rec.script = x.step.text, x.step.script
			x.rec.met = append(x.rec.met, met{c.name(), p, s.now()})
			due = append(due, c)
			if c.action == "hang" {
				held = s.addHold(x.rec.Key, x.rec.Attempt)
			}
		}
	}
	s.notify()
	return due, held
}

// sever ends the client's connection or stream in the way that c says.
func (x *life) sever(c clause) {
	if x.cut {
		return
	}
	x.cut = true
	x.s.mu.Lock()
	x.rec.unanswered = true
	x.rec.End = x.s.now()
	if !x.rec.Left {
		x.rec.over = x.rec.End
	}
	x.s.mu.Unlock()
	if x.conn != nil {
		x.conn.sever(c, x.stream, x.out)
	}
}

// forward lets a copy of the request go to the server without the client, as a
// gateway does that answers by itself: now, before the client sees anything, or
// late, when it is released.
func (x *life) forward(when string) {
	if when == "" {
		return
	}
	s := x.s
	end, ok := s.begin()
	if !ok {
		return
	}
	s.mu.Lock()
	rec := *x.rec
	rec.Seq, rec.Copy, rec.Send, rec.Start = len(s.log)+1, true, 0, s.now()
	rec.Points, rec.Fault, rec.Left, rec.over = map[Point]time.Time{}, "", false, time.Time{}
	rec.met, rec.script, rec.reply, rec.ahead = nil, "", nil, s.ahead
	s.log = append(s.log, &rec)
	s.count(scope{rec.Caller, rec.Key}, 1, 0)
	s.active++
	c := &life{s: s, r: x.r, rec: &rec, ctx: context.WithoutCancel(x.ctx), end: end, cut: true, start: s.starts}
	var held *hold
	if when == "late" {
		held = s.addHold(rec.Key, rec.Attempt)
	}
	s.notify()
	s.mu.Unlock()
	run := func() {
		defer s.under.Done()
		defer c.finish()
		if held == nil || c.hold(held, 0) {
			c.reach(Received)
			c.perform()
		}
	}
	if held != nil {
		go run()
		return
	}
	run()
}
