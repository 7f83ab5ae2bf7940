package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// command is a running idem-mock.
type command struct {
	api, control string
	out          *bufio.Scanner
	errs         bytes.Buffer
	stop         context.CancelFunc
	status       chan int
}

// start runs the command on free ports.
func start(t *testing.T, args ...string) *command {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := &command{out: bufio.NewScanner(r), stop: stop, status: make(chan int, 1)}
	go func() {
		c.status <- run(ctx, append([]string{"-addr", "127.0.0.1:0", "-control", "127.0.0.1:0"}, args...), w, &c.errs)
		_ = w.Close()
	}()
	c.api = regexp.MustCompile(`https?://\S+`).FindString(c.line())
	c.control = strings.TrimSuffix(regexp.MustCompile(`http://\S+`).FindString(c.line()), "/")
	require.NotEmpty(t, c.control)
	t.Cleanup(func() {
		stop()
		for c.out.Scan() { // until the command has ended
			continue
		}
	})
	return c
}

func (c *command) line() string {
	c.out.Scan()
	return c.out.Text()
}

// post makes a request of its own connection and returns the status; 0: none.
func post(t *testing.T, url, body string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Close = true
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestStory(t *testing.T) {
	c := start(t, "-on", "POST /charges", "-then", "reset@stored,pass", "-sometimes", "0.1", "-seed", "7")
	assert.Equal(t, 0, post(t, c.api+"/charges", "{}", "Idempotency-Key", "k"))
	assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} #1 POST /charges key k attempt 1 met reset@stored no answer after \d`, c.line())
	time.Sleep(2 * time.Millisecond) // or Verify calls it hurried
	assert.Equal(t, 201, post(t, c.api+"/charges", "{}", "Idempotency-Key", "k"))
	assert.Regexp(t, `#2 POST /charges key k attempt 2 answer 201 replayed after \d`, c.line())
	assert.Equal(t, 503, post(t, c.api+"/charges", "{}", "Mock-Scope", "mine", "Mock-Fault", "503@received"))
	assert.Regexp(t, `#1 POST /charges scope mine met 503@received answer 503 injected`, c.line())
	raw, err := net.Dial("tcp", strings.TrimPrefix(c.api, "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(raw, "POST /charges HT")
	require.NoError(t, err)
	require.NoError(t, raw.Close())
	assert.Regexp(t, `#3 no whole head no answer, the client had left after \d`, c.line())
	assert.Equal(t, 200, post(t, c.control+"/verify", ""))
	c.stop()
	assert.Equal(t, "idem-mock: no breach", c.line())
	assert.Equal(t, 0, <-c.status, c.errs.String())
}

func TestBreach(t *testing.T) {
	c := start(t, "-quiet", "-then", "reset@stored", "-contract", "stripe", "-http2")
	for _, key := range []string{"a", "b"} { // the same charge under a new key
		post(t, c.api+"/charges", `{"amount":1}`, "Idempotency-Key", key)
	}
	c.stop()
	assert.Equal(t, 1, <-c.status)
	assert.Contains(t, c.errs.String(), `mockserver: rekeyed: request 2 under key "b"`)
}

func TestFlags(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	for _, row := range []struct{ args, want string }{
		{"-then rset@stored", `did you mean "reset"?`},
		{"-then reset@stored,503@nowhere", `right is 503@received`},
		{"-always reset", `reset cannot be at`},
		{"-faults nope", `no action "nope"`},
		{"-then untrusted@handshake", `the fault "untrusted@handshake" wants -tls`},
		{"-on POST", `-on "POST": parsing "POST": at offset`},
		{"-sometimes 2", "a number from 0 to 1 is wanted"},
		{"-seed -1", "a number from 0 on is wanted"},
		{"-contract strip", "-contract strip: there are default, ietf, adyen"},
		{"-control 0.0.0.0:1", "for this machine alone; right is 127.0.0.1:8081"},
		{"-control x", "-control x: address x: missing port"},
		{"-addr " + taken, "-addr " + taken + ": the address is in use; port 0 takes a free one"},
		{"-addr 127.0.0.1:0 -control " + taken, "-control " + taken + ": the address is in use"},
		{"-nope", "flag provided but not defined: -nope; -help lists the flags"},
		{"more", `there is no argument "more"`},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), strings.Fields(row.args), &out, &errs), row.args)
		assert.Contains(t, errs.String(), row.want)
		assert.True(t, strings.HasPrefix(errs.String(), "idem-mock: "), errs.String())
		assert.Equal(t, 1, strings.Count(errs.String(), "\n"), "one line: %s", errs.String())
	}
	for _, name := range contracts() {
		o, err := parse([]string{"-contract", name}, io.Discard)
		require.NoError(t, err)
		assert.NoError(t, o.config.Contract.Validate())
	}
	assert.Len(t, contracts(), len(contract.All()))
}

func TestFaults(t *testing.T) {
	got, err := faults("reset@stored, 503@received body=\"a,\\\"b\" ,402@worked body=`{\"a\":1,\"b\":2}`")
	require.NoError(t, err)
	assert.Equal(t, []mockserver.Fault{"reset@stored", `503@received body="a,\"b"`, "402@worked body=`{\"a\":1,\"b\":2}`"}, got)
	got, err = faults(`503@received body="C:\\",drop@received`)
	require.NoError(t, err)
	assert.Equal(t, []mockserver.Fault{`503@received body="C:\\"`, "drop@received"}, got, "a backslash that is escaped")
	got, err = faults(`503@received body=it's,402@worked body='',drop@received`)
	require.NoError(t, err)
	assert.Len(t, got, 3, "what is no quote")
	_, err = faults("503@received body=`a,drop@received")
	require.ErrorContains(t, err, "the quotes of")
	_, err = faults("drop@received,,drop@received")
	require.ErrorContains(t, err, "it is empty")
	_, err = parse([]string{"-sometimes", "0.5", "-faults", ""}, io.Discard)
	require.EqualError(t, err, "-sometimes wants -faults to draw from")
}

func TestHelp(t *testing.T) {
	var errs bytes.Buffer
	assert.Equal(t, 0, run(t.Context(), []string{"-help"}, io.Discard, &errs))
	for _, want := range []string{"-then reset@stored,503@received", "-contract name", "exit status is 1"} {
		assert.Contains(t, errs.String(), want)
	}
}

// Nothing but the standard library and this module goes into the command.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no go command here")
	}
	require.NoError(t, err)
	for dep := range strings.FieldsSeq(string(out)) {
		if dep != "github.com/google/uuid" { // of the contracts
			assert.True(t, strings.HasPrefix(dep, "github.com/idem-go/idem/"), dep)
		}
	}
}
