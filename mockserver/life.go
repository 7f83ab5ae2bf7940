package mockserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/idem-go/idem/contract"
)

// life is one request on its way through the server: received, claimed, worked,
// stored, answered. The faults of its step are met on the way.
type life struct {
	s         *Server
	w         http.ResponseWriter // nil for a copy
	r         *http.Request
	rec       *Request // in the log; guarded by s.mu
	step      *step
	conn      *conn  // nil if it did not come over the server's own network
	stream    uint32 // of HTTP/2; zero for HTTP/1
	ctx       context.Context
	end       <-chan struct{} // closed when the server's process ends: Close, Restart
	start     int             // which clean start of the server it belongs to
	cut       bool            // nobody can be answered any more
	lost      *clause         // breaks the connection as soon as the answer is stored
	out       *answer         // what is about to be written
	claim     claimID         // which claim it is about; of a request with a key
	committed bool            // an effect is recorded; guarded by s.mu
	print     string          // what makes it the same request as another under its key
}

type lifeKey struct{}

// ServeHTTP serves one request: the server is an [http.Handler] too. Behind a
// foreign http.Server every fault that ends a connection is an
// http.ErrAbortHandler, because nothing else is in a handler's power.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &life{s: s, w: w, r: r, ctx: r.Context()}
	x.conn, _ = x.ctx.Value(connKey{}).(*conn)
	if x.conn != nil {
		r.TLS = x.conn.state
		if x.conn.h2() {
			id, _ := strconv.ParseUint(r.Header.Get(streamHeader), 10, 32)
			x.stream = uint32(id)
		}
		x.conn.phase.CompareAndSwap(heading, serving)
		defer x.conn.phase.CompareAndSwap(serving, idle)
	}
	h := s.takeHead(x.conn, x.stream)
	if name := r.Header.Get(scopeHeader); name != "" {
		s.serveScope(name, x, h)
		return
	}
	x.serve(h)
}

// serve takes the request, whose head is whole, through the server.
func (x *life) serve(h head) {
	s, r := x.s, x.r
	stamp, own := r.Header.Get(stampHeader), r.Header.Get(faultHeader)
	for _, name := range []string{streamHeader, stampHeader, faultHeader, scopeHeader} {
		r.Header.Del(name)
	}

	var ok bool
	if x.end, ok = s.begin(); !ok {
		panic(http.ErrAbortHandler)
	}
	defer s.under.Done()
	x.rec, x.start = s.arrive(r, h)
	defer x.finish()
	body, err := readAll(r) // whole, or the kernel makes a RST of every close
	x.step = s.number(r, x.rec, body, err == nil, stamp, own != "")
	if err != nil {
		x.leave()
		return
	}
	if own != "" {
		if x.step, err = s.step(faultHeader, Fault(own)); err != nil {
			x.send(wrongFault(err))
			return
		}
	}
	if v := x.reach(Received); !v.over {
		if a, alive := x.perform(); alive {
			x.send(a)
		}
	} else if v.answer != nil {
		x.send(v.answer)
	}
	// On HTTP/2 a head that is written but not sent would spoil the compression of
	// the heads of other streams.
	if x.cut && (x.conn == nil || x.stream != 0) || x.dead() {
		panic(http.ErrAbortHandler)
	}
}

// readAll reads the body, as far as it comes.
func readAll(r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n >= 0 && n <= 1<<20 { // one buffer, and no larger than it must be
		body := make([]byte, n)
		got, err := io.ReadFull(r.Body, body)
		return body[:got], err
	}
	return io.ReadAll(r.Body)
}

// perform takes the request through the key layer and the handler. It reports
// false if nothing is to be answered because the process died on the way.
func (x *life) perform() (*answer, bool) {
	s := x.s
	guarded := s.contract.Keys(x.rec.Method)
	if guarded {
		value, err := s.wireKey(x.rec.Header, x.rec.Body)
		if err != nil || value != "" && x.rec.Key == "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.refusal(contract.KeyRefused, nil), true
		}
		guarded = value != ""
	}
	if guarded {
		if means := s.untimely(x.rec.Header); means != contract.Unclassified {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.refusal(means, nil), true
		}
	}
	if guarded {
		if a, alive := s.enter(x); a != nil || !alive {
			return a, alive
		}
	}
	v := x.reach(Claimed)
	if v.dead {
		return nil, false
	}
	a := v.answer
	if a == nil {
		var ok bool
		if a, ok = x.work(guarded); !ok {
			return nil, false
		}
	}
	if v = x.reach(Worked); v.dead {
		return nil, false
	}
	if v.answer != nil {
		a = v.answer
	}
	if guarded {
		s.mu.Lock()
		s.mark(a.status, a.header, false, x.rec.Key)
		s.mu.Unlock()
		s.settle(x, a)
	}
	if v = x.reach(Stored); v.answer != nil {
		a = v.answer
	}
	return a, !v.over || v.answer != nil
}

// work runs the handler. It reports false if the handler panics: then the claim
// stays, as after a crash.
func (x *life) work(guarded bool) (a *answer, ok bool) {
	rec := &recorder{x: x, header: http.Header{}, whole: guarded}
	x.s.mu.Lock()
	handler := x.s.handler
	x.s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			if r != http.ErrAbortHandler { //nolint:errorlint // the very value is the sign
				x.s.complainf("mockserver: the handler panicked: %v\n%s", r, debug.Stack())
			}
			x.sever(clause{action: "drop"})
			a, ok = nil, false
		}
	}()
	r := x.r.WithContext(context.WithValue(x.ctx, lifeKey{}, x))
	r.Header, r.Body = r.Header.Clone(), io.NopCloser(bytes.NewReader(x.rec.Body))
	handler.ServeHTTP(rec, r)
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.dead() && !x.committed {
		return nil, false
	}
	return rec.answer(rec.body.Bytes()), true // the handler has returned: nobody writes to it any more
}

// hold waits for the release, or for the time if there is no hold. It reports
// false if the process ended first. A client that leaves changes nothing: the
// request has arrived.
func (x *life) hold(held *hold, wait time.Duration) bool {
	var released chan struct{}
	var elapsed <-chan time.Time
	if held != nil && wait == 0 {
		released = held.released
		defer x.s.dropHold(held)
	} else {
		t := time.NewTimer(wait)
		defer t.Stop()
		elapsed = t.C
	}
	gone := x.ctx.Done()
	x.ctx = context.WithoutCancel(x.ctx)
	for {
		select {
		case <-released:
			return true
		case <-elapsed:
			return true
		case <-x.end:
			return false
		case <-gone:
			x.leave()
			gone = nil
		}
	}
}

// leave notes that the client has gone.
func (x *life) leave() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.rec.Left = true
	if x.rec.over.IsZero() {
		x.rec.over = x.s.now()
	}
	x.s.notify()
}

// finish notes the end of the request.
func (x *life) finish() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.rec.settleTimes(x.s.now())
	x.rec.done = true
	x.s.active--
	x.s.notify()
}

func (r *Request) settleTimes(now time.Time) {
	if r.over.IsZero() {
		r.over = now
	}
	if r.End.IsZero() {
		r.End = now
	}
}

// dead reports whether the process that took the request has ended.
func (x *life) dead() bool {
	select {
	case <-x.end:
		return true
	default:
		return false
	}
}
