package mockserver

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A request begins with its first byte, but http.Server shows it only when its
// head is whole. Until then it is a head: so the log also has those that never
// become more, because the client left or http.Server refused them.
type head struct {
	at     time.Time // by the clock of the machine
	conn   int
	reused bool
}

// headID says where a head is being read: on a connection of HTTP/1 (stream 0),
// or on a stream of HTTP/2.
type headID struct {
	c      *conn
	stream uint32
}

// phase is what a connection of HTTP/1 carries.
type phase = uint32

const (
	idle     phase = iota // nothing since the last answer
	heading               // a head that is not whole
	serving               // a request in ServeHTTP's hands
	upgraded              // a hijacker's bytes, not requests
)

// beginHead notes the first byte of a request.
func (s *Server) beginHead(c *conn, stream uint32) {
	if c.silent {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads[headID{c, stream}] = head{at: time.Now(), conn: c.id, reused: c.requests.Add(1) > 1}
}

// takeHead takes the head out when it is whole. For a request whose first byte
// was not seen as one (it came before the last answer, or over a foreign
// http.Server) it is made now.
func (s *Server) takeHead(c *conn, stream uint32) head {
	if c == nil {
		return head{at: time.Now()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := headID{c, stream}
	h, ok := s.heads[id]
	if !ok {
		return head{at: time.Now(), conn: c.id, reused: c.requests.Add(1) > 1}
	}
	delete(s.heads, id)
	return h
}

// endHead logs a head that will not be whole any more, if there is one; status
// is what http.Server answered, zero if nothing.
func (s *Server) endHead(id headID, status int, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.heads[id]
	if !ok {
		return
	}
	delete(s.heads, id)
	r := h.request(s.ahead)
	r.Seq, r.Left, r.done = len(s.log)+1, left, true
	if status != 0 {
		r.Status, r.Answer = status, Refused
	}
	r.settleTimes(s.now())
	s.log = append(s.log, r)
	s.notify()
}

// headsUnderWay returns the requests whose heads are not whole, in the order of
// their first bytes. s.mu is held.
func (s *Server) headsUnderWay() (list []Request) {
	for _, h := range slices.SortedFunc(maps.Values(s.heads), func(a, b head) int {
		return cmp.Or(a.at.Compare(b.at), a.conn-b.conn)
	}) {
		list = append(list, *h.request(s.ahead))
	}
	return list
}

// request is the head as the log has it on a clock that is so far ahead.
func (h head) request(ahead time.Duration) *Request {
	return &Request{
		Conn: h.conn, Reused: h.reused, Start: h.at.Add(ahead), ahead: ahead, Points: map[Point]time.Time{},
	}
}

// refusedBy returns the status of an answer that http.Server gives by itself to a
// head that it cannot read.
func refusedBy(answer []byte) int {
	line, _, _ := strings.Cut(string(answer), "\r\n")
	version, rest, _ := strings.Cut(line, " ")
	if _, _, ok := http.ParseHTTPVersion(version); !ok {
		return 0
	}
	code, _, _ := strings.Cut(rest, " ")
	status, _ := strconv.Atoi(code)
	return status
}
