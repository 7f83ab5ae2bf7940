package mockserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// update writes the tables anew: go test ./mockserver -run TestGolden -update.
var update = flag.Bool("update", false, "write testdata/*.txt")

// TestGolden holds what net/http does with every fault: the error that the
// caller gets, what it matches, and how many requests the server receives for
// one Client.Do. A new Go release that changes a cell shows here.
func TestGolden(t *testing.T) {
	for _, p := range []struct {
		name string
		Config
	}{
		{"http1", Config{}},
		{"http1-tls", Config{TLS: true}},
		{"h2c", Config{HTTP2: true}},
		{"h2-tls", Config{TLS: true, HTTP2: true}},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var table strings.Builder
			fmt.Fprintf(&table, "# %s: fault | connection | request | what the caller sees | what it matches | requests received\n", p.name)
			for _, f := range goldenFaults(p.Config) {
				table.WriteString(goldenRows(t, p.Config, f))
			}
			compareGolden(t, filepath.Join("testdata", p.name+".txt"), table.String())
		})
	}
}

// goldenFaults are all faults that make a difference to one Client.Do.
func goldenFaults(c Config) (list []Fault) {
	list = []Fault{
		"pass", "refuse@dial", "drop@dial", "reset@dial", "delay@dial for=1ms", "hang@dial",
		"drop@received", "reset@received", "freeze@received", "hang@received", "delay@received for=1ms", "crash@received",
		"drop@received send=1", "reset@received send=1",
		"drop@claimed; hang@claimed", "reset@claimed; hang@claimed", "crash@claimed", "drop@worked", "reset@worked", "crash@worked", "hang@worked",
		"drop@stored", "reset@stored", "crash@stored", "503@stored",
		"503@received retry-after=30", "429@received", "307@received header=Location:/elsewhere send=1", "503@claimed", "402@worked", "503@head",
		"drop@head", "reset@head", "cut@head after=1", "cut@head after=1 end=reset", "cut@head after=11", "cut@head after=17", "cut@head after=27", "cut@head after=27 end=reset",
		"malformed@head", "lengths@head", `raw@head text="HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"`,
		`raw@head text="HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more"`,
		"drop@body after=0", "drop@body", "reset@body", "reset@body after=0", "cut@body after=5", "cut@body after=5 end=reset", "hang@body", "freeze@body", "delay@body for=1ms", "badchunk@body", "dribble@body size=7 every=1ms",
		"copy@received", "504@received forward=now",
	}
	if c.TLS {
		list = append(list, "drop@handshake", "reset@handshake", "alert@handshake", "alert@handshake code=80", "garbage@handshake",
			"plain@handshake", "stall@handshake", "untrusted@handshake", "expired@handshake", "wrongname@handshake")
	}
	if !c.HTTP2 {
		return append(list, "abort@received", "goaway@received")
	}
	for code := range 14 {
		list = append(list, Fault(fmt.Sprintf("abort@received code=%d send=1", code)))
	}
	return append(list, "abort@stored", "abort@body code=1", "abort@body code=7", "abort@body code=8",
		"goaway@received send=1", "goaway@received code=2 send=1", "goaway@stored send=1", "goaway@received last=this",
		"goaway@body", "goaway@body last=this",
		"abort@received code=7", // for ever: net/http gives up after 65 s
	)
}

// goldenRows runs one fault in every way and returns its lines. What is the same
// for all requests, and in memory and over TCP, is one line.
func goldenRows(t *testing.T, c Config, f Fault) string {
	requests := []string{"key", "no key", "key, no GetBody"}
	var lines strings.Builder
	for _, conn := range []string{"fresh", "reused"} {
		memory, tcp := make([]string, len(requests)), make([]string, len(requests))
		var all sync.WaitGroup
		for i, r := range requests {
			synctest.Test(t, func(t *testing.T) {
				c := c
				c.Addr = "memory"
				memory[i] = goldenCell(t, c, f, conn, r)
			})
			tcp[i] = memory[i]
			if f != "abort@received code=7" { // that takes 65 s
				all.Go(func() { tcp[i] = goldenCell(t, c, f, conn, r) })
			}
		}
		all.Wait()
		line := func(who, result string) { fmt.Fprintf(&lines, "%s | %s | %s | %s\n", f, conn, who, result) }
		same := slices.Equal(memory, tcp)
		switch {
		case same && len(slices.Compact(slices.Clone(memory))) == 1:
			line("any", memory[0])
		default:
			for i, r := range requests {
				if memory[i] == tcp[i] {
					line(r, memory[i])
					continue
				}
				line("memory: "+r, memory[i])
				line("tcp: "+r, tcp[i])
			}
		}
	}
	return lines.String()
}

// goldenCell makes one request and says what came of it.
func goldenCell(t *testing.T, c Config, f Fault, conn, request string) string {
	s, err := Start(c)
	if err != nil {
		return err.Error()
	}
	defer func() { assert.NoError(t, s.Close()) }()
	s.On("POST /orders").Then(f)
	s.On("POST /elsewhere").Always("pass")
	client := s.Client()
	base := client.Transport.(*transport).base
	if strings.HasPrefix(string(f), "stall") {
		base.TLSHandshakeTimeout = 200 * time.Millisecond
	}
	if conn == "reused" {
		resp, err := client.Get(s.URL + "/orders")
		if err != nil {
			return err.Error()
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	ctx := &scriptedDeadline{Context: t.Context(), done: make(chan struct{})}
	silent := strings.HasPrefix(string(f), "hang") || strings.HasPrefix(string(f), "freeze")
	if silent && !strings.Contains(string(f), "@body") {
		go func() {
			_ = s.until(nil, func() bool {
				return len(s.connected) > 0 || slices.ContainsFunc(s.log, func(r *Request) bool { return r.Fault != "" })
			})
			time.Sleep(20 * time.Millisecond)
			close(ctx.done)
		}()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/orders", strings.NewReader(`{"amount":500}`))
	if err != nil {
		return err.Error()
	}
	if strings.HasPrefix(request, "key") {
		req.Header.Set("Idempotency-Key", "k-1")
	}
	if strings.HasSuffix(request, "no GetBody") {
		req.GetBody = nil
	}
	seen := "Do"
	resp, err := client.Do(req)
	if err == nil {
		seen = strconv.Itoa(resp.StatusCode)
		if silent {
			time.AfterFunc(50*time.Millisecond, func() { close(ctx.done) })
		}
		var b []byte
		b, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			seen += fmt.Sprintf(", after %d bytes", len(b))
		}
	}
	received := 0
	for _, r := range s.Requests("") {
		if r.Method == http.MethodPost && !r.Copy {
			received++
		}
	}
	what := seen
	if err != nil {
		what += ": " + normalise(err.Error())
	}
	return fmt.Sprintf("%s | %s | %d", what, cmp.Or(matches(err), "-"), received)
}

// scriptedDeadline is a context whose deadline comes when a test says so.
type scriptedDeadline struct {
	context.Context
	done chan struct{}
}

func (c *scriptedDeadline) Done() <-chan struct{} { return c.done }

func (c *scriptedDeadline) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// normalise takes out what differs from run to run.
func normalise(text string) string {
	for _, r := range []struct{ pattern, with string }{
		{`^Post "[^"]*": `, ""},
		{`127\.0\.0\.1:\d+->127\.0\.0\.1:\d+`, "A->B"},
		{`127\.0\.0\.1:\d+`, "B"},
		{`stream ID \d+`, "stream ID n"},
		{`LastStreamID=\d+`, "LastStreamID=n"},
		{`current time .*`, "…"},
		{`certificate is valid for wrong.invalid, not .*|cannot validate certificate for 127.0.0.1 .*`, "wrong name"},
		{`\(possibly because of .*`, "…"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// matches lists what errors.Is and errors.As find.
func matches(err error) string {
	var list []string
	for _, is := range []struct {
		error
		name string
	}{
		{io.EOF, "io.EOF"}, {io.ErrUnexpectedEOF, "io.ErrUnexpectedEOF"}, {net.ErrClosed, "net.ErrClosed"},
		{syscall.ECONNRESET, "ECONNRESET"}, {syscall.ECONNREFUSED, "ECONNREFUSED"}, {syscall.EPIPE, "EPIPE"},
		{context.DeadlineExceeded, "DeadlineExceeded"}, {context.Canceled, "Canceled"}, {http.ErrSchemeMismatch, "ErrSchemeMismatch"},
	} {
		if errors.Is(err, is.error) {
			list = append(list, is.name)
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		list = append(list, "OpError("+op.Op+")")
	}
	// The StreamError of net/http matches any struct of its shape.
	if stream, ok := errors.AsType[StreamError](err); ok {
		list = append(list, fmt.Sprintf("StreamError(%d)", stream.Code))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		list = append(list, "RecordHeaderError")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		list = append(list, "CertificateVerificationError")
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		list = append(list, "UnknownAuthorityError")
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		list = append(list, "timeout")
	}
	return strings.Join(list, ", ")
}

// StreamError has the shape of net/http's own, which is not exported.
type StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e StreamError) Error() string { return fmt.Sprintf("stream %d: code %d", e.StreamID, e.Code) }

// compareGolden says line by line what differs.
func compareGolden(t *testing.T, file, got string) {
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err, "write it with -update")
	if string(b) == got {
		return
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		want[line] = true
	}
	for line := range strings.Lines(got) {
		if !want[line] {
			t.Errorf("%s: new: %s", file, line)
		}
		delete(want, line)
	}
	for line := range strings.Lines(string(b)) {
		if want[line] {
			t.Errorf("%s: gone: %s", file, line)
		}
	}
}
