// Quickstart places one order through a network that breaks in five ways, first
// with an Intent, then by a plain retry loop, and counts what the server did.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -url http://127.0.0.1:8080
//
// With -url it asks another server, whose side it cannot see. It exits with 1
// unless the order with an Intent had exactly one effect.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

func main() {
	url := flag.String("url", "", "base URL of a server to ask instead of one that is started here")
	flag.Parse()
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout, *url, mockserver.Config{}); err != nil {
		log.Fatal(err)
	}
}

// faults is what happens to the attempts of an order, in turn; the sixth gets
// through.
func faults() []mockserver.Fault {
	return []mockserver.Fault{
		"drop@received",              // the connection ends before the work
		"reset@stored",               // the work is done, the answer is lost
		"503@received retry-after=1", // overloaded
		"409@received retry-after=1", // "the first request is still in progress"
		"cut@body after=9",           // the answer breaks off half way
	}
}

var errNotOnce = errors.New("quickstart: the order with an Intent did not have exactly one effect")

func run(ctx context.Context, out io.Writer, url string, config mockserver.Config) error {
	p := printer{out: out, start: time.Now()}
	base := http.DefaultTransport
	if url == "" {
		server, err := mockserver.Start(config)
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		server.On("POST /orders").Then(faults()...)
		p.server, url, base = server, server.URL, server.Transport()
		p.linef("A server of orders at %s breaks five times before it lets an order through.", url)
	}

	p.linef("\nWith an Intent")
	order := idem.Open() // once, where the decision is made
	if err := p.place(ctx, order, url, base); err != nil {
		return err
	}
	once := p.effects(order.Key())

	p.linef("\nBy a plain retry loop, without one")
	p.start = time.Now()
	if err := p.plainLoop(ctx, url, base); err != nil {
		return err
	}
	p.effects("")
	if p.server != nil && once != 1 {
		return errNotOnce
	}
	return nil
}

// A printer tells the story as it happens, the server's side beside the client's.
type printer struct {
	out    io.Writer
	start  time.Time
	server *mockserver.Server // nil: somebody else's
}

func (p *printer) linef(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

// place places an order through idem.
func (p *printer) place(ctx context.Context, order *idem.Intent, url string, base http.RoundTripper) error {
	asked := &askedWait{RoundTripper: base}
	client, err := idem.NewClient(idem.Config{BaseURL: url, Transport: &idem.Transport{
		Base:        asked,
		MaxAttempts: 8,
		OnAttempt: func(_ context.Context, a idem.Attempt) {
			then := ""
			if a.Retry {
				then = fmt.Sprintf("waits %.3fs (%s)", a.Wait.Seconds(), asked.why)
			}
			p.attempt(order.Key(), a.Number, met(a.Status, a.Err), then)
		},
	}})
	if err != nil {
		return err
	}
	var receipt struct{ ID string }
	res, err := client.Call(ctx, order, http.MethodPost, "/orders", map[string]int{"amount": 4200}, &receipt)
	p.linef("  order %s, key %.8s…: %d attempts, %d sends, %v, outcome: %v",
		receipt.ID, order.Key(), res.Attempts, res.Sends, res.Replay, res.Outcome)
	return err
}

// plainLoop is what is often written instead. Every lost answer is one more order.
func (p *printer) plainLoop(ctx context.Context, url string, base http.RoundTripper) error {
	client := &http.Client{Transport: base}
	for attempt := 1; attempt <= 8; attempt++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(`{"amount":4200}`))
		if err != nil {
			return err
		}
		status := 0
		resp, err := client.Do(req)
		if err == nil {
			status = resp.StatusCode
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		p.attempt("", attempt, met(status, err), "")
		if err == nil && status == http.StatusCreated {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("quickstart: the plain loop did not get through")
}

// attempt prints one attempt, as the client and as the server saw it.
func (p *printer) attempt(key string, number int, met, then string) {
	there := ""
	if p.server != nil {
		for _, r := range p.server.Requests(key) {
			if r.Key != key || r.Attempt != number {
				continue
			}
			there = fmt.Sprintf("| server: %-27s %s", r.Fault, effectOf(p.server, r))
		}
	}
	p.linef("  %6.3fs  attempt %d: %-24s %-31s %s", time.Since(p.start).Seconds(), number, met, then, there)
}

// effectOf says what a request did there.
func effectOf(server *mockserver.Server, r mockserver.Request) string {
	for _, e := range server.Effects(r.Key) {
		if e.Request == r.Seq {
			return fmt.Sprintf("EFFECT %d", e.Seq)
		}
	}
	return string(r.Answer)
}

// effects prints and returns how often the server did the work of a key.
func (p *printer) effects(key string) (n int) {
	if p.server == nil {
		return 0
	}
	for _, e := range p.server.Effects(key) {
		if e.Key == key {
			n++
		}
	}
	p.linef("  effects: %d", n)
	return n
}

// askedWait notes why the next wait is as long as it is.
type askedWait struct {
	http.RoundTripper
	why string
}

func (a *askedWait) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	a.why = "backoff"
	if err == nil && resp.Header.Get("Retry-After") != "" {
		a.why = "the server asked"
	}
	return resp, err
}

// met is what an attempt met, in a few words.
func met(status int, err error) string {
	if err == nil {
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
	text := err.Error()
	return strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])
}
