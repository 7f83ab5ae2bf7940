package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
)

// A story is what became of one charge.
type story struct {
	title     string
	exchanges []exchange
	effects   int
}

// verdict says how often the server did the work.
func (s story) verdict() string {
	if s.effects == 1 {
		return "1 effect"
	}
	return fmt.Sprintf("%d effects", s.effects)
}

// An exchange is one request and its answer, as both sides have it.
type exchange struct {
	what     string // method and path
	key      string // a letter for each key; empty: none
	effect   int    // the number of the effect it had; 0: none
	replayed bool   // the server gave a stored answer
	status   int    // what the client got; 0: nothing
}

func (e exchange) asked() string {
	if e.key == "" {
		return e.what + ", no key"
	}
	return e.what + ", key " + e.key
}

func (e exchange) did() string {
	switch {
	case e.effect > 0:
		return fmt.Sprintf("charged: effect %d", e.effect)
	case e.replayed:
		return "stored answer"
	default:
		return "nothing"
	}
}

func (e exchange) met() string {
	if e.status == 0 {
		return "the answer is lost"
	}
	return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
}

const order = `{"amount":500}`

// both lets the same thing happen to a client without an Intent and to one with it.
func both(ctx context.Context) ([]story, error) {
	without, err := tell("Without an Intent", func(base http.RoundTripper, url string) error {
		client := &http.Client{Transport: base}
		for ctx.Err() == nil { // a loop as it is often written
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(order))
			if err != nil {
				return err
			}
			if resp, err := client.Do(req); err == nil {
				return resp.Body.Close()
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	with, err := tell("With an Intent", func(base http.RoundTripper, url string) error {
		charge := idem.Open()
		client := &http.Client{Transport: &idem.Transport{Base: base}}
		req, err := http.NewRequestWithContext(idem.WithIntent(ctx, charge), http.MethodPost, url, strings.NewReader(order))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	return []story{without, with}, err
}

// tell lets the first answer to a charge be lost after the work, and tells what
// the client met and what the server did.
func tell(title string, charge func(base http.RoundTripper, url string) error) (story, error) {
	server, err := mockserver.Start(mockserver.Config{})
	if err != nil {
		return story{}, err
	}
	defer func() { _ = server.Close() }()
	server.On("POST /charges").Then("reset@stored")
	seen := &witness{RoundTripper: server.Transport()}
	if err := charge(seen, server.URL+"/charges"); err != nil {
		return story{}, err
	}
	requests := server.Requests("")
	if len(requests) != len(seen.statuses) {
		return story{}, fmt.Errorf("lostanswer: the client asked %d times, the server was asked %d times", len(seen.statuses), len(requests))
	}
	s := story{title: title, effects: len(server.Effects(""))}
	letters := map[string]string{"": ""}
	for i, r := range requests {
		if _, ok := letters[r.Key]; !ok {
			letters[r.Key] = fmt.Sprintf("%c", 'A'+len(letters)-1)
		}
		e := exchange{
			what: r.Method + " " + r.URL, key: letters[r.Key],
			replayed: r.Answer == mockserver.Replayed, status: seen.statuses[i],
		}
		for _, effect := range server.Effects(r.Key) {
			if effect.Request == r.Seq {
				e.effect = effect.Seq
			}
		}
		s.exchanges = append(s.exchanges, e)
	}
	return s, nil
}

// A witness notes what each attempt of a client came to.
type witness struct {
	http.RoundTripper
	statuses []int // 0: an error
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(r)
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	w.statuses = append(w.statuses, status)
	return resp, err
}
