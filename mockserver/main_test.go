package mockserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain silences net/http's own log: it reports faults that are made on purpose.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	code := m.Run()
	if code == 0 {
		if left := goroutinesLeft(); left != "" {
			fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
			code = 1
		}
	}
	os.Exit(code)
}

// goroutinesLeft waits until none of ours is left, and returns those that stay.
func goroutinesLeft() (left string) {
	for range 50 {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		left = ""
		for g := range bytes.SplitSeq(buf, []byte("\n\n")) {
			if bytes.Contains(g, []byte("mockserver.")) && !bytes.Contains(g, []byte("TestMain")) ||
				bytes.Contains(g, []byte("net/http.(*persistConn)")) || bytes.Contains(g, []byte("net/http.(*http2")) {
				left += string(g) + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}

// seen is what a client saw.
type seen struct {
	Status int
	Header http.Header
	Body   string
	Err    error
}

// send makes one request; headers are "Name: value".
func send(ctx context.Context, c *http.Client, method, url, body string, headers ...string) (r seen) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return seen{Err: err}
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		return seen{Err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return seen{resp.StatusCode, resp.Header, string(b), err}
}

// postOrder posts an order under a key; the empty key is none.
func postOrder(t testing.TB, c *http.Client, s *Server, key, body string, headers ...string) seen {
	if key != "" {
		headers = append(headers, "Idempotency-Key: "+key)
	}
	return send(t.Context(), c, http.MethodPost, s.URL+"/orders", body, headers...)
}

// recorder of what a server says to its test.
type fakeTB struct {
	testing.TB
	failed  []string
	fatal   []string
	cleanup []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanup = append(f.cleanup, c) }
func (f *fakeTB) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = append(f.fatal, fmt.Sprintf(format, args...))
	panic(f)
}

// end runs what New left for the end of the test.
func (f *fakeTB) end() {
	for _, c := range f.cleanup {
		c()
	}
}

// fails runs what is to end the test and returns the message.
func (f *fakeTB) fails(t *testing.T, do func()) string {
	t.Helper()
	require.PanicsWithValue(t, f, do)
	require.Len(t, f.fatal, 1)
	return f.fatal[0]
}

// dialer reaches m whatever the address.
func dialer(m *memory) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx) }
}
