package mockserver

import (
	"bufio"
	"bytes"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// answer is a response, whole.
type answer struct {
	kind   Answer
	status int
	header http.Header
	body   []byte
	live   bool // the head is out already, and the body but for these bytes
}

// send writes the answer, with the faults that are scripted on its way out.
func (x *life) send(a *answer) {
	switch {
	case x.cut:
		return
	case x.r.Context().Err() != nil:
		x.leave()
		return
	case a.live:
		_, _ = x.w.Write(a.body)
		return
	}
	a = a.allowed()
	x.out = a
	if v := x.reach(Head); v.answer != nil {
		a = v.answer.allowed()
		x.out = a
	} else if v.over {
		return
	}
	x.write(a)
}

// allowed is the answer without a body where its status has none: net/http would
// send none, but on HTTP/2 the length of it.
func (a *answer) allowed() *answer {
	if hasBody(a.status) || len(a.body) == 0 {
		return a
	}
	b := *a
	b.body = nil
	return &b
}

// hasBody reports whether answers with this status may have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// write puts the answer on the wire. The log has it before the client can.
func (x *life) write(a *answer) {
	due, held := x.mark(Body)
	x.note(a)
	for _, c := range due {
		if c.action == "badchunk" {
			x.sever(c)
			return
		}
	}
	x.head(a)
	body, sent := a.body, 0
	if x.r.Method == http.MethodHead {
		body = nil // of which nothing is sent but the length
	}
	until := func(n int) {
		if n = min(n, len(body)); n > sent {
			_, _ = x.w.Write(body[sent:n])
			sent = n
		}
	}
	for _, c := range due {
		if c.action == "dribble" {
			for until(c.size); sent < len(body) && !x.dead(); until(sent + c.size) {
				x.flush(sent)
				x.hold(nil, c.wait)
			}
			continue
		}
		if c.after < 0 {
			c.after = len(body) / 2
		}
		until(c.after)
		x.flush(sent)
		if c.action != "hang" && c.action != "delay" {
			x.sever(c)
			return
		}
		if !x.hold(held, c.wait) {
			return
		}
	}
	until(len(body))
}

// note writes the answer into the log.
func (x *life) note(a *answer) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.rec.Status, x.rec.Answer, x.rec.reply = a.status, a.kind, a
	x.rec.retryAfter = a.header.Get("Retry-After")
	x.rec.settleTimes(x.s.now())
}

// head writes the answer's head.
func (x *life) head(a *answer) {
	h := x.w.Header()
	maps.Copy(h, a.header)
	bare := !hasBody(a.status) || x.r.Method == http.MethodHead
	if !a.live && (!bare || len(a.body) > 0) {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	x.w.WriteHeader(a.status)
}

// flush brings what is written, of which sent bytes are body, onto the wire.
func (x *life) flush(sent int) {
	_ = http.NewResponseController(x.w).Flush()
	if x.conn != nil && x.stream != 0 {
		x.conn.awaitSent(x.r.Context(), x.stream, sent)
	}
}

// head is the answer's head as HTTP/1.1 spells it, with these values of the
// header that tells where the body ends.
func (a *answer) head(framing string, values ...string) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 " + strconv.Itoa(a.status) + " " + http.StatusText(a.status) + "\r\n")
	h := a.header.Clone()
	h.Del("Content-Length")
	h[framing] = values
	_ = h.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// block is the answer's head as HTTP/2 spells it (HPACK), and these names and
// values after it.
func (a *answer) block(more ...string) []byte {
	b := literal(":status", strconv.Itoa(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		for _, v := range a.header[name] {
			if name != "Content-Length" {
				b = append(b, literal(strings.ToLower(name), v)...)
			}
		}
	}
	for ; len(more) > 1; more = more[2:] {
		b = append(b, literal(more[0], more[1])...)
	}
	return b
}

// recorder collects the handler's answer. Without a key to keep the answer for,
// a handler that flushes writes straight through, so that streams flow.
type recorder struct {
	x      *life
	header http.Header
	sent   http.Header // the header at the time of WriteHeader: what comes later is too late
	status int
	body   bytes.Buffer
	whole  bool // the answer is kept: nothing is written before it is whole
	live   bool // the head is out
}

// Header is the map that the handler fills.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader takes the final status; 1xx are not passed on.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.sent = w.header.Clone()
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	return w.body.Write(p)
}

// Flush lets an answer out at once that is not kept.
func (w *recorder) Flush() {
	if w.whole || w.x.cut {
		return
	}
	a := w.answer(slices.Clone(w.body.Bytes())) // more will be written
	if w.live {
		_, _ = w.x.w.Write(a.body)
	} else {
		w.live, a.live, w.x.out = true, true, a
		if v := w.x.reach(Head); v.over || v.answer != nil {
			w.x.sever(clause{action: "drop"})
			return
		}
		w.x.note(a)
		w.x.head(a)
		_, _ = w.x.w.Write(a.body)
	}
	w.body.Reset()
	_ = http.NewResponseController(w.x.w).Flush()
}

// Hijack gives the handler the connection, where no answer is kept and the
// protocol allows it: for an upgrade.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.whole || w.x.cut {
		return nil, nil, http.ErrNotSupported
	}
	c, rw, err := http.NewResponseController(w.x.w).Hijack()
	if err == nil {
		w.x.cut = true
		if w.x.conn != nil {
			w.x.conn.phase.Store(upgraded)
		}
	}
	return c, rw, err
}

// answer is what the handler has written since the last Flush; body is that of it.
func (w *recorder) answer(body []byte) *answer {
	w.WriteHeader(http.StatusOK)
	return &answer{kind: Fresh, status: w.status, header: w.sent, body: body, live: w.live}
}
