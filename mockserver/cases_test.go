package mockserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// networks runs f in memory and over TCP, with each protocol.
func networks(t *testing.T, f func(t *testing.T, c Config)) {
	for _, addr := range []string{"memory", "127.0.0.1:0"} {
		for _, c := range []Config{{}, {TLS: true}, {HTTP2: true}, {TLS: true, HTTP2: true}} {
			c.Addr = addr
			t.Run(fmt.Sprintf("%s tls=%v h2=%v", addr, c.TLS, c.HTTP2), func(t *testing.T) { f(t, c) })
		}
	}
}

// Close blocks while connections are open or a handler stalls.
func TestCase_MOCK_1(t *testing.T) {
	networks(t, func(t *testing.T, c Config) {
		stalled := make(chan struct{})
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(stalled)
			<-r.Context().Done()
		})
		s, err := Start(c)
		require.NoError(t, err)
		idle, err := s.Dial(t.Context(), "tcp", "")
		require.NoError(t, err)
		defer idle.Close()
		got := make(chan error, 1)
		go func() { got <- send(t.Context(), s.Client(), http.MethodPost, s.URL+"/x", "").Err }()
		<-stalled
		begin := time.Now()
		require.NoError(t, s.Close(), "the handler is released")
		assert.Less(t, time.Since(begin), time.Second)
		require.Error(t, <-got, "the client is released")
		require.NoError(t, s.Close(), "a second Close does nothing")
	})

	t.Run("a handler that ignores its context", func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		stalled := make(chan struct{})
		s, err := Start(Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(stalled)
			<-release
		})})
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() { got <- send(t.Context(), s.Client(), http.MethodPost, s.URL+"/x", "").Err }()
		<-stalled
		begin := time.Now()
		require.ErrorContains(t, s.Close(), "a handler has not returned")
		assert.Less(t, time.Since(begin), time.Second)
		require.Error(t, <-got)
	})
}

// Hijacked, held and frozen connections survive the shutdown.
func TestCase_MOCK_2(t *testing.T) {
	networks(t, func(t *testing.T, c Config) {
		for _, f := range []Fault{"hang@received", "hang@stored", "hang@body", "freeze@received", "freeze@body", "delay@head for=1h"} {
			s, err := Start(c)
			require.NoError(t, err)
			s.On("/").Then(f)
			got := make(chan error, 1)
			go func() {
				got <- send(t.Context(), s.Client(), http.MethodPost, s.URL+"/orders", "{}", "Idempotency-Key: k").Err
			}()
			point := Point(strings.Fields(strings.SplitN(string(f), "@", 2)[1])[0])
			require.NoError(t, s.Await(t.Context(), "k", 1, point))
			begin := time.Now()
			require.NoError(t, s.Close(), f)
			assert.Less(t, time.Since(begin), time.Second)
			select {
			case err := <-got:
				require.Error(t, err, f)
			case <-time.After(time.Second):
				t.Fatalf("%s: the client keeps waiting", f)
			}
		}
	})

	t.Run("hijacked by a handler", func(t *testing.T) {
		s, err := Start(Config{Addr: "memory", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			_, _ = io.Copy(c, c)
		})})
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := s.Client().Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
		rw, ok := resp.Body.(io.ReadWriteCloser)
		require.True(t, ok)
		_, err = rw.Write([]byte("ping"))
		require.NoError(t, err)
		b := make([]byte, 4)
		_, err = io.ReadFull(rw, b)
		require.NoError(t, err)
		assert.Equal(t, "ping", string(b))
		require.NoError(t, s.Close())
		_, err = rw.Read(b)
		require.Error(t, err, "the client is not left waiting")
		_ = rw.Close()
	})
}

// A hidden re-send of the transport eats the scripted fault.
func TestCase_MOCK_3(t *testing.T) {
	for _, addr := range []string{"memory", "127.0.0.1:0"} {
		s := New(t, Config{Addr: addr})
		c := s.Client()
		require.NoError(t, send(t.Context(), c, http.MethodGet, s.URL+"/orders", "").Err, "a warm connection")
		s.On("POST /orders").Then("drop@received", "pass")

		require.ErrorIs(t, postOrder(t, c, s, "k", "{}").Err, io.EOF, "the fault holds for the whole attempt")
		require.Equal(t, 201, postOrder(t, c, s, "k", "{}").Status)

		log := s.Requests("k")
		require.Len(t, log, 3, "both hits of the first attempt are there")
		assert.Equal(t, [][2]int{{1, 1}, {1, 2}, {2, 1}}, [][2]int{
			{log[0].Attempt, log[0].Send}, {log[1].Attempt, log[1].Send}, {log[2].Attempt, log[2].Send},
		})
		assert.True(t, log[0].Reused)
		assert.False(t, log[1].Reused)
	}

	t.Run("one send alone", func(t *testing.T) {
		s := New(t, Config{})
		c := s.Client()
		require.NoError(t, send(t.Context(), c, http.MethodGet, s.URL+"/orders", "").Err)
		s.On("POST /orders").Then("drop@stored send=1; 401@received send=2")
		assert.Equal(t, 401, postOrder(t, c, s, "k", "{}").Status, "the answer to the re-send")
		assert.Len(t, s.Effects("k"), 1, "the first send worked")
	})
}

// "Reset" makes the client hang, because no RST leaves the host.
func TestCase_MOCK_4(t *testing.T) {
	for _, point := range []Point{Dial, Received, Claimed, Worked, Stored, Head, Body} {
		s := New(t, Config{Addr: "127.0.0.1:0"})
		s.On("POST /orders").Then(Fault("reset@" + point))
		begin := time.Now()
		got := postOrder(t, s.Client(), s, "k", "{}")
		require.ErrorIs(t, got.Err, syscall.ECONNRESET, point)
		assert.Less(t, time.Since(begin), 500*time.Millisecond, "not after a timeout")
	}
}

// A connection fault is served as HTTP: seen by a client that is only a socket.
func TestCase_MOCK_5(t *testing.T) {
	for _, addr := range []string{"memory", "127.0.0.1:0"} {
		for f, want := range map[Fault]error{
			"drop@received":               io.EOF,
			"reset@received":              syscall.ECONNRESET,
			"drop@stored":                 io.EOF,
			"reset@stored":                syscall.ECONNRESET,
			"crash@worked":                io.EOF,
			"abort@received":              io.EOF,
			`raw@head text="?"`:           io.EOF,
			`raw@head text="?" end=reset`: syscall.ECONNRESET,
		} {
			s := New(t, Config{Addr: addr})
			s.On("/").Then(f)
			c, err := s.Dial(t.Context(), "tcp", "")
			require.NoError(t, err)
			require.NoError(t, c.SetDeadline(time.Now().Add(5*time.Second)))
			_, err = io.WriteString(c, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			require.NoError(t, err)
			var bytes [64]byte
			var got []byte
			for err == nil {
				var n int
				n, err = c.Read(bytes[:])
				got = append(got, bytes[:n]...)
			}
			require.ErrorIs(t, err, want, "%s %s", addr, f)
			assert.Equal(t, strings.Contains(string(f), "raw"), string(got) == "?", "%s: %q", f, got)
			if !strings.Contains(string(f), "raw") {
				assert.Empty(t, got, f)
			}
			_ = c.Close()
		}
		// And before any request: at the first byte.
		for f, want := range map[Fault]error{"drop@dial": io.EOF, "reset@dial": syscall.ECONNRESET} {
			s := New(t, Config{Addr: addr})
			s.On("/").Then(f)
			c, err := s.Dial(t.Context(), "tcp", "")
			require.NoError(t, err)
			_, err = io.WriteString(c, "P")
			require.NoError(t, err)
			_, err = bufio.NewReader(c).ReadByte()
			require.ErrorIs(t, err, want, "%s %s", addr, f)
			_ = c.Close()
		}
		s := New(t, Config{Addr: addr})
		s.On("/").Then("refuse@dial")
		_, err := s.Dial(t.Context(), "tcp", "")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "dial", op.Op)
	}
}

// A race on the script's index: each step is met once, whatever runs beside.
func TestCase_MOCK_6(t *testing.T) {
	s := New(t, Config{})
	var faults []Fault
	for i := range 100 {
		faults = append(faults, Fault(fmt.Sprintf("%d@received", 400+i)))
	}
	s.On("POST /orders").Then(faults...)
	c := s.Client()
	met := make(chan int, len(faults))
	var all sync.WaitGroup
	for range faults {
		all.Go(func() { met <- postOrder(t, c, s, "", "{}").Status })
	}
	all.Wait()
	close(met)
	seen := map[int]int{}
	for status := range met {
		seen[status]++
	}
	assert.Len(t, seen, len(faults), "each step once")
	assert.Equal(t, 201, postOrder(t, c, s, "", "{}").Status, "and none twice")
}

// Closing one mock breaks another test, through a shared transport.
func TestCase_MOCK_7(t *testing.T) {
	one, err := Start(Config{Addr: "memory"})
	require.NoError(t, err)
	other := New(t, Config{})
	other.On("POST /").Then("hang@received")
	got := make(chan seen, 1)
	c := other.Client()
	go func() { got <- postOrder(t, c, other, "k", "{}") }()
	require.NoError(t, other.Await(t.Context(), "k", 1, Received))
	require.NoError(t, postOrder(t, one.Client(), one, "k", "{}").Err)
	require.NoError(t, one.Close())
	other.Release("k")
	assert.Equal(t, 201, (<-got).Status, "in mid-call")
	assert.Equal(t, 200, send(t.Context(), c, http.MethodGet, other.URL+"/orders", "").Status, "and after")
}

// Close races with Serve.
func TestCase_MOCK_8(t *testing.T) {
	for i := range 1000 {
		addr := "memory"
		if i%10 == 0 {
			addr = "127.0.0.1:0"
		}
		s, err := Start(Config{Addr: addr, HTTP2: i%2 == 0})
		require.NoError(t, err)
		hit := make(chan seen, 1)
		ctx, cancel := context.WithCancel(t.Context())
		c := s.Client()
		go func() { hit <- send(ctx, c, http.MethodPost, s.URL+"/orders", "{}", "Idempotency-Key: k") }()
		if i%3 == 0 {
			<-hit // otherwise Close comes at any moment of the hit
		}
		require.NoError(t, s.Close())
		cancel()
		if i%3 != 0 {
			if got := <-hit; got.Err == nil {
				require.Equal(t, 201, got.Status)
			}
		}
		_, err = s.Dial(t.Context(), "tcp", "")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorContains(t, s.Restart(), "closed")
	}
}

// Parallel tests see each other's stubs.
func TestCase_MOCK_9(t *testing.T) {
	for i, f := range []Fault{"418@received", "pass"} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New(t, Config{})
				s.On("POST /orders").Always(f)
				c := s.Client()
				for n := range 20 {
					got := postOrder(t, c, s, fmt.Sprint("k", n), "{}")
					require.Equal(t, []int{418, 201}[i], got.Status)
				}
				assert.Len(t, s.Requests(""), 20, "only its own")
				assert.Len(t, s.Effects(""), 20*i, "only its own")
			})
		})
	}
}
