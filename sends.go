package idem

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"
)

// maxSends bounds how often one attempt may go out. net/http sends a request
// again by itself: with a key once for each pooled connection that turns out to
// be dead, and on HTTP/2 without end and without a key when the server disowns
// the stream (REFUSED_STREAM, PROTOCOL_ERROR, GOAWAY; golang/go#52459).
const maxSends = 32

var errTooManySends = errors.New("idem: one attempt was sent 32 times over dead or refusing connections")

// sends counts the times that one attempt's bytes left, as httptrace shows
// them: GetConn when a connection is looked for, GotConn before the first byte,
// WroteHeaders when a whole head was written. A Base may call the hooks after the
// attempt has ended. The attempt's lock guards the counts.
type sends struct {
	attempt *attempt
	traced  bool // Base shows what it does
	pending bool // handed to a connection, its head not seen written
	sealed  bool // the attempt has ended
	got     int  // connections that the request was handed to
	written int  // heads written
	owed    int  // heads counted at the end that may still be seen written
	hooks   httptrace.ClientTrace
}

// trace returns ctx with the hooks, which end the attempt when it sends too often.
func (s *sends) trace(ctx context.Context) context.Context {
	s.hooks.GetConn, s.hooks.GotConn, s.hooks.WroteHeaders = s.getConn, s.gotConn, s.wroteHeaders
	if !s.attempt.call.body.small() {
		s.hooks.WroteRequest = s.wroteRequest
	}
	return httptrace.WithClientTrace(ctx, &s.hooks)
}

func (s *sends) getConn(string) {
	s.attempt.mu.Lock()
	defer s.attempt.mu.Unlock()
	s.traced = true
	if s.got >= maxSends {
		s.attempt.cancel(errTooManySends)
	}
	if s.got > 0 { // it will be sent again
		s.endWithWindow()
	}
}

// endWithWindow ends the attempt if the key's window is over. Its timer may be
// late: it stands still while the machine sleeps, which the window does not.
func (s *sends) endWithWindow() (over bool) {
	now := time.Now()
	if over = isOver(s.attempt.call.windowEnd(now), now); over {
		s.attempt.cancel(ErrExpired)
	}
	return over
}

func (s *sends) gotConn(info httptrace.GotConnInfo) {
	s.attempt.mu.Lock()
	defer s.attempt.mu.Unlock()
	s.traced = true
	s.got++
	s.pending = true
	if s.sealed {
		s.owed++
		s.attempt.call.book.late()
	}
	over := s.endWithWindow()
	if s.got > maxSends {
		s.attempt.cancel(errTooManySends)
		over = true
	}
	if over && info.Conn != nil && !isShared(info.Conn) {
		_ = info.Conn.Close() // cancelling may come too late for what is handed out already
	}
}

func (s *sends) wroteHeaders() {
	if s.attempt.call.body.small() {
		s.attempt.restart() // the body left with the head
	}
	s.attempt.mu.Lock()
	defer s.attempt.mu.Unlock()
	s.traced, s.pending = true, false
	s.written++
	switch {
	case s.sealed && s.owed > 0:
		s.owed--
	case s.sealed:
		s.attempt.call.book.late()
	}
}

func (s *sends) wroteRequest(httptrace.WroteRequestInfo) { s.attempt.restart() }

// isShared reports whether other requests are known to use the connection too.
func isShared(conn net.Conn) bool {
	t, ok := conn.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// seal ends the counting and returns how many sends the attempt made. cut says
// that a context ended it, so that a head may yet be written; answered that
// there was an answer, so that something was sent. resent is the number of times
// that a body was asked for again, the only sign of a Base that shows no trace;
// such a Base has sent unless nothing proves it.
func (s *sends) seal(cut, answered bool, resent int, provedUnsent bool) int {
	s.attempt.mu.Lock()
	defer s.attempt.mu.Unlock()
	s.sealed = true
	n := s.written
	switch {
	case !s.traced && provedUnsent:
	case !s.traced:
		n = 1 + resent
	case cut && s.pending:
		n++
	case answered:
		n = max(n, 1)
	}
	s.owed = n - s.written
	return n
}

// shown reports whether Base shows what it does.
func (s *sends) shown() bool {
	s.attempt.mu.Lock()
	defer s.attempt.mu.Unlock()
	return s.traced
}

// saysUnsent reports whether an error by itself says that nothing was sent. It
// is asked only of a Base that shows no trace; with one, the trace knows better:
// a keyed request that net/http has sent, and could not send again, ends as a
// dial error. resendable says that it may have done so unseen: there is no body
// that it would have read.
func saysUnsent(err error, resendable bool) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op == "dial" && !resendable
	}
	_, dns := errors.AsType[*net.DNSError](err)
	return dns && !resendable || refusedLocally(err)
}

// refusedLocally reports whether net/http refused a request before it looked for
// a connection. It has no types for that.
func refusedLocally(err error) bool {
	return saysAny(err, "unsupported protocol scheme", "net/http: invalid ", "net/http: nil Context",
		"http: no Host", "http: nil Request.", "http: Request.", "invalid proxy address ")
}

// refusedUnwritten reports whether net/http refused a request when it had a
// connection, or the dialer its address. It is asked only where nothing of the
// request has left.
func refusedUnwritten(err error) bool {
	if addr, ok := errors.AsType[*net.AddrError](err); ok {
		return addr.Err != "no suitable address found" // of a name; what else there is is about how it is written
	}
	return saysAny(err, "http: invalid Host header", "net/http: can't write control character", "invalid Trailer key",
		"idna: ", "http2: idna: ", "http2: invalid ", "http2: request header list larger")
}

// saysAny reports whether the text of err, or of one that it wraps, begins so.
func saysAny(err error, starts ...string) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		text := err.Error()
		if slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) }) {
			return true
		}
	}
	return false
}
