package mockserver

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair returns both ends of a connection of that network.
func pair(t *testing.T, network string) (client, server net.Conn, l net.Listener) {
	t.Helper()
	var err error
	if network == "memory" {
		m := newMemory()
		client, err = m.dial(t.Context())
		l = m
	} else {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		client, err = net.Dial("tcp", l.Addr().String())
	}
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(); _ = server.Close(); _ = l.Close() })
	return client, server, l
}

// chain is the shape of an error: what the caller of a socket can see of it.
type chain struct {
	eof, closed, deadline, timeout bool
	op                             string
	call                           string
	errno                          syscall.Errno
	from, to                       bool
}

func chainOf(err error) (c chain) {
	c.eof, c.closed, c.deadline = err == io.EOF, errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		c.op, c.from, c.to = op.Op+" "+op.Net, op.Source != nil, op.Addr != nil
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		c.call = sys.Syscall
	}
	_ = errors.As(err, &c.errno)
	var ne net.Error
	c.timeout = errors.As(err, &ne) && ne.Timeout()
	return c
}

// Every ending has the same errors in memory as on a socket.
func TestMemoryErrorsAreThoseOfTCP(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, client, server net.Conn, l net.Listener) []error{
		"FIN": func(t *testing.T, client, server net.Conn, _ net.Listener) []error {
			_, _ = server.Write([]byte("last"))
			_ = server.Close()
			b, err := io.ReadAll(client)
			assert.Equal(t, "last", string(b))
			_, again := client.Read(make([]byte, 1))
			return []error{err, again}
		},
		"half close": func(t *testing.T, client, server net.Conn, _ net.Listener) []error {
			_ = server.(interface{ CloseWrite() error }).CloseWrite()
			_, err := client.Read(make([]byte, 1))
			_, _ = client.Write([]byte("still"))
			b := make([]byte, 5)
			_, _ = io.ReadFull(server, b)
			assert.Equal(t, "still", string(b))
			_, werr := server.Write([]byte("x"))
			return []error{err, werr}
		},
		"RST": func(t *testing.T, client, server net.Conn, _ net.Listener) []error {
			reset(server)
			_, err := client.Read(make([]byte, 1))
			return []error{err}
		},
		"RST while reading": func(t *testing.T, client, server net.Conn, _ net.Listener) []error {
			got := make(chan error, 1)
			go func() { _, err := client.Read(make([]byte, 1)); got <- err }()
			time.Sleep(10 * time.Millisecond)
			reset(server)
			return []error{<-got}
		},
		"own close": func(t *testing.T, client, _ net.Conn, _ net.Listener) []error {
			_ = client.Close()
			_, r := client.Read(make([]byte, 1))
			_, w := client.Write([]byte("x"))
			return []error{r, w}
		},
		"read deadline": func(t *testing.T, client, _ net.Conn, _ net.Listener) []error {
			_ = client.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			_, err := client.Read(make([]byte, 1))
			_ = client.SetReadDeadline(time.Now().Add(-time.Second))
			_, past := client.Read(make([]byte, 1))
			return []error{err, past}
		},
		"write deadline": func(t *testing.T, client, _ net.Conn, _ net.Listener) []error {
			_ = client.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := client.Write(make([]byte, 64<<20))
			return []error{err}
		},
		"refused": func(t *testing.T, client, _ net.Conn, l net.Listener) []error {
			_ = l.Close()
			var err error
			if m, ok := l.(*memory); ok {
				_, err = m.dial(t.Context())
			} else {
				_, err = net.Dial("tcp", l.Addr().String())
			}
			_, accept := l.Accept()
			return []error{err, accept}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2][]chain
			for i, network := range []string{"memory", "tcp"} {
				client, server, l := pair(t, network)
				for _, err := range do(t, client, server, l) {
					require.Error(t, orEOF(err))
					got[i] = append(got[i], chainOf(err))
				}
			}
			assert.Equal(t, got[1], got[0], "memory is to show what TCP shows")
		})
	}
}

// orEOF makes the nil of io.ReadAll the EOF that it stands for.
func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

func TestMemoryDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := pair(t, "memory")
		begin := time.Now()
		require.NoError(t, client.SetDeadline(begin.Add(time.Hour)))
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, time.Hour, time.Since(begin))

		require.NoError(t, client.SetDeadline(time.Now().Add(time.Hour)))
		time.Sleep(time.Minute)
		require.NoError(t, client.SetDeadline(time.Time{}), "taken back")
		time.AfterFunc(2*time.Hour, func() { _, _ = server.Write([]byte("x")) })
		n, err := client.Read(make([]byte, 2))
		require.NoError(t, err)
		assert.Equal(t, 1, n)

		_, err = client.Write(make([]byte, 0))
		require.NoError(t, err)
		n, err = client.Read(nil)
		require.NoError(t, err)
		assert.Zero(t, n)
		assert.Equal(t, client.LocalAddr(), server.RemoteAddr())
		assert.Equal(t, client.RemoteAddr(), server.LocalAddr())
	})
}

// A writer waits for its reader: the buffers are bounded.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := pair(t, "memory")
		const size = 1 << 20
		var written int
		var all sync.WaitGroup
		all.Go(func() {
			n, err := client.Write(make([]byte, size))
			assert.NoError(t, err)
			written = n
			_ = client.Close()
		})
		synctest.Wait()
		assert.Zero(t, written, "it has not returned")
		b, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Len(t, b, size)
		all.Wait()
		assert.Equal(t, size, written)
		_, err = server.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestMemoryDial(t *testing.T) {
	m := newMemory()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.dial(ctx)
	require.ErrorIs(t, err, context.Canceled)
	c, err := m.dial(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET, "dialled but never accepted")
}
