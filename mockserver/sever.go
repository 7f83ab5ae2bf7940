package mockserver

import (
	"net"
	"strconv"
	"time"
)

// sever ends the connection, or the stream, as f says. out is the answer that
// was about to be written, if the request came so far.
func (c *conn) sever(f clause, stream uint32, out *answer) {
	h2 := stream != 0
	if h2 {
		c.settle()
	}
	switch {
	case f.action == "freeze":
		c.mode.CompareAndSwap(open, frozen)
		return
	case f.action == "abort" && h2:
		c.put(stream, rstStream(stream, f.code))
		return
	case f.action == "goaway" && h2:
		last := stream
		if !f.this {
			last -= min(last, 2)
		}
		c.put(stream, goAway(last, f.code))
		if !f.this {
			return
		}
	case f.action == "malformed" && h2:
		c.put(stream, headers(stream, endStream, literal("x", "no status")))
		return
	case f.action == "lengths" && h2:
		n := len(out.body)
		b := headers(stream, 0, out.block("content-length", strconv.Itoa(n), "content-length", strconv.Itoa(n+1)))
		for _, piece := range pieces(out.body) {
			b = append(b, frame(data, 0, stream, piece)...)
		}
		c.put(stream, append(b, frame(data, endStream, stream, nil)...))
		return
	case f.action == "badchunk" && h2:
		huge := frame(data, 0, stream, nil) // a head that promises more than any client allows
		huge[0], huge[1], huge[2] = 0xff, 0xff, 0xff
		c.put(stream, append(headers(stream, 0, out.block()), huge...))
	case f.action == "badchunk":
		c.put(0, append(out.head("Transfer-Encoding", "chunked"), "zz\r\n"...))
	case f.action == "malformed":
		c.put(0, []byte("HTTP/1.1 2x0 OK\r\n\r\n"))
	case f.action == "lengths":
		n := len(out.body)
		c.put(0, append(out.head("Content-Length", strconv.Itoa(n), strconv.Itoa(n+1)), out.body...))
	case f.action == "raw":
		c.put(stream, []byte(f.raw))
	case f.action == "cut" && f.at == Head:
		head := out.head("Content-Length", strconv.Itoa(len(out.body)))
		if h2 { // never the whole frame
			head = headers(stream, 0, out.block())
			f.after = min(f.after, len(head)-1)
		}
		if f.after < 0 {
			f.after = len(head) / 2
		}
		c.put(stream, head[:min(f.after, len(head))])
	}
	if f.reset || f.action == "reset" {
		c.rst()
	} else {
		c.fin()
	}
}

// put writes bytes of its own between two frames; the stream, if any, is silent
// from then on, whatever http.Server still has to say on it.
func (c *conn) put(stream uint32, b []byte) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.mode.Load() != open {
		return
	}
	if stream != 0 {
		c.frames.muted[stream] = true
	}
	_, _ = c.Conn.Write(b)
}

// fin sends a FIN. http.Server's next read waits for the client's.
func (c *conn) fin() {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if !c.mode.CompareAndSwap(open, ended) {
		return
	}
	if w, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}

// rst sends a RST.
func (c *conn) rst() {
	if c.mode.CompareAndSwap(open, broken) {
		reset(c.raw)
		_ = c.Close()
	}
}

// settle waits until both sides of a new HTTP/2 connection have exchanged their
// settings. They must come first, and a client that still writes its answer to
// ours would see a reset there and not where it reads.
func (c *conn) settle() {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-c.frames.settled:
	case <-c.closed:
	case <-limit.C:
	}
}

// reset closes a raw connection by a RST.
func reset(raw net.Conn) {
	switch raw := raw.(type) {
	case *memConn:
		raw.reset()
	case *net.TCPConn:
		_ = raw.SetLinger(0)
		_ = raw.Close()
	}
}
