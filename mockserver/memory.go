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
