package mockserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// conn is the server's end of a connection as http.Server sees it: plain bytes,
// whether or not there is TLS below. It can end in every way that a network
// has, without a hijack and whatever protocol runs on it: after that http.Server
// goes on reading and writing, but nothing it writes leaves, and nothing that
// arrives reaches it.
type conn struct {
	net.Conn          // the bytes: raw, or TLS over it
	raw      net.Conn // memory or TCP
	s        *Server
	id       int
	state    *tls.ConnectionState // nil without TLS
	requests atomic.Int32
	mode     atomic.Uint32
	phase    atomic.Uint32 // of HTTP/1
	refused  atomic.Int32  // the status of http.Server's own answer to a head; zero: none
	gone     atomic.Bool   // the client has ended the connection
	silent   bool          // what comes on it has not reached the server
	wmu      sync.Mutex    // one write at a time, whole frames
	frames   *frames       // nil unless it may carry HTTP/2
	once     sync.Once
	closed   chan struct{}
}

type connKey struct{}

const (
	open   uint32 = iota
	ended         // FIN is sent
	broken        // RST is sent
	frozen        // nothing is sent or read
)

// Read reads what the client sent. At the end of an ended connection it waits
// for the client's own FIN, because a kernel makes a RST of a close with unread
// input.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.read(p)
		switch c.mode.Load() {
		case open:
			c.observe(n, err)
		case ended:
			if err == nil {
				continue
			}
		case frozen:
			<-c.closed
			return 0, net.ErrClosed
		}
		return n, err
	}
}

// observe sees the first byte of a request, and the client's end of the
// connection.
func (c *conn) observe(n int, err error) {
	if n > 0 && !c.h2() && c.phase.CompareAndSwap(idle, heading) {
		c.s.beginHead(c, 0)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && c.isOpen() {
		c.gone.Store(true)
	}
}

// h2 reports whether HTTP/2 runs on the connection.
func (c *conn) h2() bool { return c.frames != nil && c.frames.on() }

func (c *conn) read(p []byte) (int, error) {
	if c.frames == nil {
		return c.Conn.Read(p)
	}
	return c.frames.read(c.Conn, p)
}

func (c *conn) Write(p []byte) (int, error) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.mode.Load() != open {
		return len(p), nil
	}
	if c.h2() {
		return c.frames.write(c.Conn, p)
	}
	if c.phase.Load() == heading && !c.gone.Load() {
		c.refused.CompareAndSwap(0, int32(refusedBy(p))) //nolint:gosec // a status
	}
	return c.Conn.Write(p)
}

// Close ends the connection for good.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		close(c.closed)
		err = c.raw.Close() // no close_notify: that could block
		c.s.forgetConn(c)
		if c.frames != nil {
			c.wmu.Lock()
			c.frames.cond.Broadcast()
			c.wmu.Unlock()
		}
	})
	return err
}

// awaitFirst waits for the first byte, or for the end of the first request of
// HTTP/2, whose clients write a request in pieces.
func (c *conn) awaitFirst() {
	b := make([]byte, 4096)
	for {
		_, err := c.read(b)
		if err != nil || !c.h2() || c.frames.complete {
			return
		}
	}
}

// awaitSent waits until that much of the stream's body is on the wire, or the
// stream has ended.
func (c *conn) awaitSent(ctx context.Context, stream uint32, n int) {
	wake := func() { c.wmu.Lock(); c.frames.cond.Broadcast(); c.wmu.Unlock() }
	defer context.AfterFunc(ctx, wake)()
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for ctx.Err() == nil && c.isOpen() {
		if sent, begun := c.frames.sent[stream]; begun && sent >= n {
			return
		}
		c.frames.cond.Wait()
	}
}

func (c *conn) isOpen() bool {
	select {
	case <-c.closed:
		return false
	default:
		return c.mode.Load() == open
	}
}
