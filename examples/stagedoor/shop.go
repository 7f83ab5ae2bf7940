package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/journal"
)

// Config is what a Shop is made of.
type Config struct {
	Provider string            // base URL of the payment provider; required
	Base     http.RoundTripper // sends to the provider; nil: http.DefaultTransport
	Lock     *Lock             // is asked before the table of claims; nil: there is none
	Stale    time.Duration     // how long work may take, and a claim holds when its process has died; zero: 30 s
	Keep     time.Duration     // how long a key is remembered at least; zero: 24 h
	At       func(step string) // is told of each step of an order, so that tests can stop there; nil: nobody is
	OnError  func(error)       // is told what a buyer is not; nil: nobody is
}

// A Shop sells seats, each once, and charges once for each. It is safe for
// concurrent use, in one process or in many over one database.
type Shop struct {
	Config // with its defaults

	store    *Store
	journal  *journal.Journal
	provider *idem.Client
}

// newShop returns a Shop on store.
func newShop(store *Store, cfg Config) (*Shop, error) {
	cfg.Stale = cmp.Or(cfg.Stale, 30*time.Second)
	cfg.Keep = cmp.Or(cfg.Keep, 24*time.Hour)
	if cfg.At == nil {
		cfg.At = func(string) {}
	}
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	j, err := newJournal(store, cfg)
	if err != nil {
		return nil, err
	}
	provider, err := newProviderClient(cfg)
	return &Shop{cfg, store, j, provider}, err
}

// openShop returns a Shop on an empty store, with its tables made and seats on sale.
func openShop(ctx context.Context, store *Store, cfg Config, seats int) (*Shop, error) {
	s, err := newShop(store, cfg)
	if err != nil {
		return nil, err
	}
	if err = s.journal.Migrate(ctx); err == nil {
		_, err = store.exec(ctx, schema)
	}
	for i := 1; i <= seats && err == nil; i++ {
		_, err = store.exec(ctx, `INSERT INTO seats (id, price) VALUES ($1, 4500)`, seat(i))
	}
	return s, err
}

// seat is the name of the n-th: S01, S02 and so on.
func seat(n int) string { return fmt.Sprintf("S%02d", n) }

// Handler serves the shop's API.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	mux.HandleFunc("GET /orders/{id}", s.getOrder)
	mux.HandleFunc("POST /webhooks", s.receive("wallet", credit))
	mux.HandleFunc("POST /events", s.receive("mailer", mail)) // another service, in a larger house
	return mux
}

// postOrder answers POST /orders.
func (s *Shop) postOrder(w http.ResponseWriter, r *http.Request) {
	c, o, refusal := readRequest(w, r)
	if refusal != nil { // before any claim: what is malformed uses no key up
		refusal.write(w)
		return
	}
	// The work belongs to the claim and not to the connection: a buyer who leaves
	// does not stop it half way. When the claim is stale, it is another's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.Stale)
	defer cancel()
	a, err := s.serve(ctx, c, o)
	switch {
	case errors.Is(err, errFenced), errors.Is(err, journal.ErrLeased):
		a = busy() // with another process
	case err != nil:
		s.OnError(err)
		a = problem(http.StatusServiceUnavailable, notYet, "The order is not decided yet; ask again with the same key")
	}
	a.write(w)
}

// serve gives the answer to an order: a stored one, or the one that it brings
// about. An error means that there is none yet.
func (s *Shop) serve(ctx context.Context, c claim, o order) (known *answer, err error) {
	won := false
	if unlock, ok := s.Lock.try(ctx, c, s.OnError); ok {
		defer unlock()
		won, known, err = s.placeOrder(ctx, c, o)
	}
	if err == nil && !won {
		known, c, err = s.lost(ctx, c)
	}
	if err != nil || known != nil {
		return known, err
	}
	s.At("committed")
	return s.goOn(ctx, c)
}

// goOn brings the order of a claim that is ours to its end: fresh or taken over,
// it is the same order and the same Intent.
func (s *Shop) goOn(ctx context.Context, c claim) (*answer, error) {
	o, err := s.readOrder(ctx, c.orderID)
	if err != nil {
		return nil, err
	}
	paid, err := s.pay(ctx, o)
	if err != nil {
		return nil, errors.Join(err, s.giveUp(ctx, c))
	}
	s.At("charged")
	a, err := s.settleOrder(ctx, c, o, paid)
	if err == nil {
		s.At("stored")
	}
	return a, err
}

const maxBody = 4 << 10 // of a request

// readRequest takes the request apart, or says what is wrong with it.
func readRequest(w http.ResponseWriter, r *http.Request) (c claim, o order, refusal *answer) {
	buyer := buyerOf(r)
	if buyer == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return c, o, problem(http.StatusUnauthorized, badRequest, "Authorization: Bearer, and who you are")
	}
	header := r.Header.Values("Idempotency-Key")
	if len(header) == 0 {
		return c, o, problem(http.StatusBadRequest, keyMissing, "An order needs an Idempotency-Key")
	}
	key, err := contract.Default().Unwire(header[0])
	if err != nil || len(header) > 1 {
		return c, o, problem(http.StatusBadRequest, badRequest, "Idempotency-Key is one value of 1 to 255 visible ASCII characters")
	}
	var want struct {
		Seat string `json:"seat"`
		Card string `json:"card"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &want)
	}
	if err != nil || want.Seat == "" || want.Card == "" {
		return c, o, problem(http.StatusBadRequest, badRequest, "The body is a JSON object with a seat and a card")
	}
	o = order{id: strings.ToLower(rand.Text()), buyer: buyer, seat: want.Seat, card: want.Card}
	return claim{buyer: buyer, key: key, print: printOf(r.Method, r.URL.EscapedPath(), body), orderID: o.id, token: 1}, o, nil
}
