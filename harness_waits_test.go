package idem_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// resets makes a connection that the server closes look like one that it reset,
// as it is on a real network.
func (r *rig) resets() {
	r.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := r.net.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return resetConn{conn}, nil
	}
}

type resetConn struct{ net.Conn }

func (c resetConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = &net.OpError{Op: "read", Net: "tcp", Addr: c.RemoteAddr(), Err: syscall.ECONNRESET}
	}
	return n, err
}

// constant is a Backoff of always d.
func constant(d time.Duration) idem.Backoff {
	return func(int) time.Duration { return d }
}

// slow waits d and goes on with next, or leaves with the client.
func slow(d time.Duration, next step) step {
	return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		select {
		case <-time.After(d):
			next(s, w, r, h)
		case <-r.Context().Done():
		}
	}
}

// jsonClient is an idem.Client over the rig's Transport.
func (r *rig) jsonClient(t testing.TB) *idem.Client {
	t.Helper()
	c, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
	require.NoError(t, err)
	return c
}

// lastAttempt is the newest attempt of in.
func lastAttempt(t testing.TB, in *idem.Intent) idem.Attempt {
	t.Helper()
	all := in.Attempts()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// within checks that each gap lies in [from, to].
func within(t testing.TB, gaps []time.Duration, from, to time.Duration) {
	t.Helper()
	for i, g := range gaps {
		require.GreaterOrEqual(t, g, from, "gap %d of %v", i+1, gaps)
		require.LessOrEqual(t, g, to, "gap %d of %v", i+1, gaps)
	}
}

// took returns how long f takes in virtual time.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
