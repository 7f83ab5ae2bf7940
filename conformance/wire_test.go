package conformance_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// wireKey is the key of every story.
const wireKey = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

// A row is what one API shows on the wire. All of it is written from the API's
// own pages and clients; nothing is taken from the contract, so that a wrong
// value in it cannot agree with itself.
type row struct {
	name    string
	line    string        // of the head that has the key; empty: the body has it
	body    string        // that is sent; empty: {"amount":100}
	until   time.Duration // age of the key from which on it is not sent; negative: never
	apart   time.Duration // least time between two requests
	stories []story
}

// A story is what the API answers, one after the other, and what the client
// makes of it.
type story struct {
	about   string
	answers []string
	hits    int
	outcome idem.Outcome
	replay  idem.Replay
	is      error // nil: Call returns no error, unless fails
	fails   bool
}

const (
	lost       = ""                                // the connection ends without an answer
	processing = "HTTP/1.1 102 Processing\r\n\r\n" // and nothing after it
)

// reply is an answer on the wire.
func reply(status int, body string, headers ...string) string {
	kind := "application/json"
	if body == "" {
		kind = "text/plain"
	}
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n", status, kind, len(body))
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + "\r\n" + body
}

// A peer answers raw bytes with raw bytes.
type peer struct {
	mu      sync.Mutex
	answers []string
	heads   []string
	bodies  []string
	at      []time.Time
}

func (p *peer) DialContext(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	go p.serve(there)
	return here, nil
}

func (p *peer) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		head, body, err := request(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.heads, p.bodies, p.at = append(p.heads, head), append(p.bodies, body), append(p.at, time.Now())
		answer := p.answers[min(len(p.heads), len(p.answers))-1]
		p.mu.Unlock()
		if _, err := io.WriteString(conn, answer); err != nil || answer == lost || answer == processing {
			return
		}
	}
}

// request reads a head, as it is, and the body.
func request(in *bufio.Reader) (head, body string, err error) {
	length := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		head += line
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(n))
		}
		if line == "\r\n" {
			break
		}
	}
	data := make([]byte, length)
	_, err = io.ReadFull(in, data)
	return head, string(data), err
}

// head is the one head that every request of the row has, byte for byte.
func (w row) head() string {
	lines := []string{"Accept: application/json, application/problem+json", "Content-Type: application/json"}
	if w.line != "" {
		lines = append(lines, strings.Split(w.line, "\n")...)
	}
	slices.Sort(lines)
	lines = append([]string{
		"POST /v1/things?a=b HTTP/1.1", "Host: api.example", "User-Agent: Go-http-client/1.1", fmt.Sprintf("Content-Length: %d", len(w.content())),
	}, lines...)
	return strings.Join(append(lines, "Accept-Encoding: gzip"), "\r\n") + "\r\n\r\n"
}

func (w row) content() string {
	if w.body == "" {
		return `{"amount":100}`
	}
	return w.body
}

// ask makes one call with the row's contract and a key of this age.
func (w row) ask(t *testing.T, p *peer, age time.Duration) (idem.Result, error) {
	t.Helper()
	c, err := contract.ByName(w.name)
	require.NoError(t, err)
	base := &http.Transport{DialContext: p.DialContext}
	defer base.CloseIdleConnections()
	client, err := idem.NewClient(idem.Config{BaseURL: "http://api.example/v1", Transport: &idem.Transport{Base: base, Contract: c}})
	require.NoError(t, err)
	in, err := idem.Adopt(wireKey, time.Now().Add(-age))
	require.NoError(t, err)
	return client.Call(t.Context(), in, http.MethodPost, "/things?a=b", textMarshaler(w.content()), nil)
}

// textMarshaler is JSON as it is.
type textMarshaler string

func (m textMarshaler) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// The bytes on the wire, and what the client makes of those that come back.
func TestWire(t *testing.T) {
	for _, w := range rows() {
		stories := append([]story{{about: "lost", answers: []string{lost, reply(201, `{"id":"1"}`)}, hits: 2, outcome: idem.Answered, replay: w.unmarked()}}, w.stories...)
		for _, s := range stories {
			t.Run(w.name+"/"+s.about, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &peer{answers: s.answers}
					res, err := w.ask(t, p, 0)
					for i := range p.heads {
						assert.Equal(t, w.head(), p.heads[i])
						assert.Equal(t, w.content(), p.bodies[i])
						if i > 0 {
							assert.GreaterOrEqual(t, p.at[i].Sub(p.at[i-1]), w.apart)
						}
					}
					assert.Len(t, p.heads, s.hits, "hits")
					assert.Equal(t, s.outcome, res.Outcome)
					assert.Equal(t, s.replay, res.Replay)
					assert.Equal(t, s.fails || s.is != nil, err != nil, "%v", err)
					if s.is != nil {
						assert.ErrorIs(t, err, s.is)
					} else if s.fails {
						assert.NoError(t, theError(t, err).Reason, "the answer is final")
					}
				})
			})
		}
	}
}

// unmarked is what is known of an answer without a mark: nothing, but where the
// API promises one.
func (w row) unmarked() idem.Replay {
	switch w.name {
	case "chargebee", "easypay", "epay", "flutterwave", "increase", "mollie", "ppro", "smartretry", "whop":
		return idem.NotReplayed
	}
	return idem.ReplayUnknown
}

// A key is sent until its window ends, less 2 min, or half the window if that is
// less than 4 min.
func TestWireWindow(t *testing.T) {
	for _, w := range rows() {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{answers: []string{reply(201, `{"id":"1"}`)}}
				if w.until < 0 {
					_, err := w.ask(t, p, 100*365*24*time.Hour)
					assert.NoError(t, err)
					return
				}
				_, err := w.ask(t, p, w.until-time.Second)
				assert.NoError(t, err)
				_, err = w.ask(t, p, w.until)
				assert.ErrorIs(t, err, idem.ErrExpired)
				assert.Len(t, p.heads, 1)
			})
		})
	}
}

// Every contract of the catalogue has its row, and every header its spelling.
func TestWireOfAll(t *testing.T) {
	var have, want []string
	for _, w := range rows() {
		have = append(have, w.name)
		for line := range strings.Lines(w.line) {
			name, _, _ := strings.Cut(line, ":")
			assert.Equal(t, textproto.CanonicalMIMEHeaderKey(name), name)
		}
	}
	for _, c := range contract.All() {
		want = append(want, c.Name)
	}
	assert.ElementsMatch(t, want, have)
}
