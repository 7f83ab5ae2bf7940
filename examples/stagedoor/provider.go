package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/idem-go/idem/mockserver"
)

// A charge is what the provider keeps of one.
type charge struct {
	chargeRequest

	Status string `json:"status"` // succeeded or declined
}

// A Provider is the payment provider. The mock server keeps the keys, breaks the
// network and counts what was done; this does the work.
type Provider struct {
	*mockserver.Server

	mu      sync.Mutex
	charges map[string]charge // by order
	due     []event           // webhooks that were not sent, or not taken
}

// startProvider starts one on a free port of the loopback interface. Of every
// charge it loses the first request, and the answer to the second.
func startProvider() (p *Provider, err error) {
	p = &Provider{charges: make(map[string]charge)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", p.create)
	mux.HandleFunc("GET /charges/{order}", p.get)
	if p.Server, err = mockserver.Start(mockserver.Config{Handler: mux}); err != nil {
		return nil, err
	}
	p.On("POST /charges").Then("drop@received", "reset@stored")
	return p, nil
}

// create charges a card. It looks at no earlier charge: asked twice it charges
// twice, unless the key prevents it.
func (p *Provider) create(w http.ResponseWriter, r *http.Request) {
	c := charge{Status: "succeeded"}
	if err := json.NewDecoder(r.Body).Decode(&c.chargeRequest); err != nil {
		problem(http.StatusBadRequest, badRequest, "The body is no charge").write(w)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Card == "declined" {
		c.Status = "declined"
		p.charges[c.Order] = c
		problem(http.StatusPaymentRequired, declined, "The card was declined").write(w)
		return
	}
	if !mockserver.Did(r.Context(), "charge", c) {
		return // the provider's process has ended: nothing is committed
	}
	p.charges[c.Order] = c
	p.due = append(p.due, event{ID: "charged-" + c.Order, Kind: "charged", Order: c.Order, Buyer: c.Buyer})
	answer{status: http.StatusCreated, body: `{"status":"succeeded"}`}.write(w)
}

// get tells what became of the charge for an order.
func (p *Provider) get(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	c, ok := p.charges[r.PathValue("order")]
	p.mu.Unlock()
	if !ok {
		problem(http.StatusNotFound, notFound, "There is no such charge").write(w)
		return
	}
	answer{status: http.StatusOK, body: `{"status":"` + c.Status + `"}`}.write(w)
}

// notify sends each webhook that is due twice, the second while the first is still
// at work, and returns how many it has sent. What fails is due again.
func (p *Provider) notify(ctx context.Context, client *http.Client, url string) (sent int, err error) {
	p.mu.Lock()
	due := p.due
	p.due = nil
	p.mu.Unlock()
	for _, hook := range due {
		answers := make(chan error)
		for range 2 {
			go func() { answers <- deliver(ctx, client, url, hook) }()
		}
		sent += 2
		if failed := errors.Join(<-answers, <-answers); failed != nil {
			err = errors.Join(err, failed)
			p.mu.Lock()
			p.due = append(p.due, hook)
			p.mu.Unlock()
		}
	}
	return sent, err
}
