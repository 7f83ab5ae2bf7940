package mockserver

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// memory is a network inside the process: a listener whose connections are
// pairs of bounded buffers. It says FIN and RST with the very errors of a TCP
// socket, and everything in it blocks on condition variables, so that it is
// usable in a testing/synctest bubble, where real sockets hang.
//
// In two things it is kinder than a kernel, so that the same script gives the
// same errors each time: bytes that were written before a reset arrive, and a
// close with unread input is still a FIN.
type memory struct {
	mu     sync.Mutex
	cond   *sync.Cond
	queue  []net.Conn // dialled, not yet accepted
	closed bool
	port   atomic.Int32
}

func newMemory() *memory {
	m := &memory{}
	m.cond = sync.NewCond(&m.mu)
	m.port.Store(49151)
	return m
}

// Accept returns the next dialled connection.
func (m *memory) Accept() (net.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) == 0 && !m.closed {
		m.cond.Wait()
	}
	if m.closed {
		return nil, opError("accept", nil, m.Addr(), net.ErrClosed)
	}
	c := m.queue[0]
	m.queue = m.queue[1:]
	return c, nil
}

// Close refuses what is dialled from now on; what is not yet accepted is reset,
// as a kernel does.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.queue {
		c.(*memConn).reset()
	}
	m.queue, m.closed = nil, true
	m.cond.Broadcast()
	return nil
}

// Addr returns the address that clients see in errors.
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial connects. Like a kernel it does not wait for Accept.
func (m *memory) dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, opError("dial", nil, m.Addr(), err)
	}
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(m.port.Add(1))}
	up, down := newHalf(), newHalf()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, refused(m.Addr())
	}
	m.queue = append(m.queue, &memConn{in: up, out: down, local: m.Addr(), remote: here})
	m.cond.Signal()
	return &memConn{in: down, out: up, local: here, remote: m.Addr()}, nil
}

// refused is the error of a dial that no listener takes.
func refused(to net.Addr) error {
	return opError("dial", nil, to, os.NewSyscallError("connect", syscall.ECONNREFUSED))
}

func opError(op string, from, to net.Addr, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: from, Addr: to, Err: err}
}

// memConn is one end of a connection in memory.
type memConn struct {
	in, out       *half
	local, remote net.Addr
}

func (c *memConn) LocalAddr() net.Addr  { return c.local }
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

func (c *memConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	if err != nil && !errors.Is(err, io.EOF) { // net.TCPConn does not wrap EOF either
		err = opError("read", c.local, c.remote, err)
	}
	return n, err
}

func (c *memConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if err != nil {
		err = opError("write", c.local, c.remote, err)
	}
	return n, err
}

// Close ends both directions; the peer reads what is left, then EOF.
func (c *memConn) Close() error {
	c.in.update(func(h *half) { h.readerGone = true; h.readBy.stop() })
	c.out.update(func(h *half) { h.fin, h.writerGone = true, true; h.writeBy.stop() })
	return nil
}

// CloseWrite sends a FIN and leaves the other direction open.
func (c *memConn) CloseWrite() error {
	c.out.update(func(h *half) { h.fin = true })
	return nil
}

// reset sends a RST: the peer reads what is left, then ECONNRESET. The peer comes
// first: whoever reads here wakes up and may close, and that must find the RST sent.
func (c *memConn) reset() {
	c.out.update(func(h *half) { h.rst, h.writerGone = true, true })
	c.in.update(func(h *half) { h.rst, h.readerGone = true, true })
}

func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// half is one direction of a connection.
type half struct {
	mu                     sync.Mutex
	cond                   *sync.Cond
	buf                    []byte
	fin, rst               bool // the writer is done; the connection is broken
	readerGone, writerGone bool // that end was closed by its owner
	readBy, writeBy        deadline
}

// deadline is past once its time has come; setting it anew makes it future.
type deadline struct {
	timer *time.Timer
	set   int // counts settings, so that a timer that lost the race is ignored
	past  bool
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) update(f func(*half)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h)
	h.cond.Broadcast()
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerGone:
			return 0, net.ErrClosed
		case h.readBy.past:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.cond.Broadcast()
			return n, nil
		case h.rst:
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case h.fin:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (n int, err error) {
	const window = 64 << 10 // bytes in flight before a writer must wait
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writerGone:
			return n, net.ErrClosed
		case h.writeBy.past:
			return n, os.ErrDeadlineExceeded
		case h.rst:
			return n, os.NewSyscallError("write", syscall.ECONNRESET)
		case h.fin, h.readerGone:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(p):
			return n, nil
		case len(h.buf) < window:
			k := min(window-len(h.buf), len(p)-n)
			h.buf = append(h.buf, p[n:n+k]...)
			n += k
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
}

func (h *half) setDeadline(d *deadline, t time.Time) {
	h.update(func(*half) {
		d.stop()
		d.set++
		d.past = false
		if t.IsZero() {
			return
		}
		wait := time.Until(t)
		if wait <= 0 {
			d.past = true
			return
		}
		this := d.set
		d.timer = time.AfterFunc(wait, func() {
			h.update(func(*half) { d.past = d.past || d.set == this })
		})
	})
}
