package proof_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// reader reads the payload, unless it is to fail.
func (r *run) reader() io.Reader { return &failingReader{r, strings.NewReader(payload)} }

type failingReader struct {
	run *run
	r   *strings.Reader
}

var errBody = errors.New("the body's reader has failed")

func (f *failingReader) Read(p []byte) (int, error) {
	if !f.run.failing.Load() {
		return f.r.Read(p)
	}
	if f.r.Len() < len(payload) {
		return 0, errBody
	}
	return f.r.Read(p[:min(len(p), 5)])
}

// countedBody counts its Closes.
type countedBody struct {
	io.Reader
	mu     sync.Mutex
	closes int
}

func (b *countedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closes++
	return nil
}

func (b *countedBody) closed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closes
}

// refusedDial is the error of a dial that no listener takes.
func refusedDial(addr string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: textAddr(addr), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

type textAddr string

func (textAddr) Network() string  { return "tcp" }
func (a textAddr) String() string { return string(a) }
