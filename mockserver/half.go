package mockserver

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a connection.
type half struct {
	mu                     sync.Mutex
	cond                   *sync.Cond
	buf                    []byte // used again and again; from taken on it is not read yet
	taken                  int
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
		case h.taken < len(h.buf):
			n := copy(p, h.buf[h.taken:])
			h.taken += n
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
		case len(h.buf)-h.taken < window:
			h.buf, h.taken = append(h.buf[:0], h.buf[h.taken:]...), 0
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
