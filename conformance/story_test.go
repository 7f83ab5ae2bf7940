package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

const storiesIntro = `## A lost answer

What goes over the wire when the answer to a charge is lost, byte for byte, from
runs of the client against the mock server with the contract of the API on both
sides. In each the charge is made once. Statuses, codes and marks are those of the
contract; the rest of the bodies, ` + "`Retry-After`" + `, and the mark under ietf, which the
draft does not have, are the mock server's.

`

// lostAnswer is the story of a lost answer, as Markdown. Where the contract says
// what a request in progress gets, the answer is lost while the work goes on.
func lostAnswer(t *testing.T, name string) string {
	t.Helper()
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		c, err := contract.ByName(name)
		require.NoError(t, err)
		var s server
		for _, s = range servers() {
			if s.Name == name {
				break
			}
		}
		srv := mockserver.New(t, mockserver.Config{Contract: c, Kind: s.kind})
		faults, long := storyOf(c)
		srv.On("POST /charges").Then(faults...)

		tape := &tape{dial: srv.Dial}
		transport := &idem.Transport{
			Base: &http.Transport{DialContext: tape.DialContext}, Contract: c,
			AttemptTimeout: time.Second, Backoff: idem.Exponential(100*time.Millisecond, 100*time.Millisecond),
		}
		client, err := idem.NewClient(idem.Config{BaseURL: srv.URL, Transport: transport})
		require.NoError(t, err)
		in, err := idem.Adopt(wireKey, time.Now())
		require.NoError(t, err)
		res, err := client.Call(t.Context(), in, http.MethodPost, "/charges", map[string]any{"amount": 100}, nil)
		require.NoError(t, err)
		require.Equal(t, idem.Answered, res.Outcome)
		require.Len(t, srv.Effects(""), 1)

		fmt.Fprintf(&text, "### %s\n\n```http\n%s```\n\n", name, tape.text(long))
		fmt.Fprintf(&text, "Attempts: %d. Outcome: %v. Replay: %v.\n\n", res.Attempts, res.Outcome, res.Replay)
		transport.CloseIdleConnections()
	})
	return text.String()
}

// storyOf is what the attempts meet, and whether the first is given up while the
// server is at work.
func storyOf(c contract.Contract) ([]mockserver.Fault, bool) {
	for _, m := range c.Answers {
		switch m.Means {
		case contract.InProgress:
			return []mockserver.Fault{delay(1500 * time.Millisecond)}, true
		case contract.Done:
			return []mockserver.Fault{"reset@stored", mockserver.Fault(again(m.Status, doneBefore))}, false
		}
	}
	return []mockserver.Fault{"reset@stored"}, false
}

// A tape keeps what goes over connections, in the order of time.
type tape struct {
	dial func(context.Context, string, string) (net.Conn, error)

	mu    sync.Mutex
	parts []part
}

type part struct {
	sent bool
	conn net.Conn
	text string
}

func (t *tape) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.dial(ctx, network, address)
	return &taped{conn, t}, err
}

func (t *tape) add(c net.Conn, sent bool, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.parts); n > 0 && t.parts[n-1].conn == c && t.parts[n-1].sent == sent {
		t.parts[n-1].text += string(data)
		return
	}
	t.parts = append(t.parts, part{sent, c, string(data)})
}

// text is the tape to read: requests and answers with a line between them.
func (t *tape) text(long bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for i, p := range t.parts {
		text := strings.ReplaceAll(p.text, "\r\n", "\n")
		b.WriteString(strings.TrimRight(text, "\n") + "\n\n")
		if p.sent && (i+1 == len(t.parts) || t.parts[i+1].sent) {
			if long {
				b.WriteString("# no answer in time: the client goes, the server works on\n\n")
			} else {
				b.WriteString("# the charge is made; the connection is reset before the answer\n\n")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

type taped struct {
	net.Conn

	tape *tape
}

func (c *taped) Write(p []byte) (int, error) {
	c.tape.add(c, true, p)
	return c.Conn.Write(p)
}

func (c *taped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.tape.add(c, false, p[:n])
	}
	return n, err
}
