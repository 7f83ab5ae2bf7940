// Package chaos is an order service that breaks its connections, with a ledger
// that knows what was really done, and callers who want each order done once.
package chaos

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/idem-go/idem/benchmarks/internal/peers"
)

// A Service takes orders. Its keys work as Stripe's do: the first request of a
// key does the work, later ones get its answer again, 409 while it is in progress,
// and 422 if their body is another. Make it with NewService.
type Service struct {
	fault func(order string, attempt int) Fault
	work  func()

	mu      sync.Mutex
	ledger  map[string]Entry
	keys    map[string]*record
	refused int // requests that were no orders, or another order under the same key
	busy    int // requests that came while the first with their key was at work
	behind  sync.WaitGroup
}

// An Entry is what the ledger says about one order.
type Entry struct{ Attempts, Effects int }

type record struct {
	body []byte
	done bool
}

// NewService returns one with an empty ledger. fault plans each attempt at an
// order, counted from 1; work is what an order takes.
func NewService(fault func(order string, attempt int) Fault, work func()) *Service {
	return &Service{fault: fault, work: work, ledger: map[string]Entry{}, keys: map[string]*record{}}
}

// Entry returns what the ledger says about an order, when no work goes on behind
// a dropped connection any more.
func (s *Service) Entry(order string) Entry {
	s.behind.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger[order]
}

// Refused returns the number of requests that no client should make: with a body
// that is not one of ours, or with another than came before under the same key.
func (s *Service) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Busy returns the number of requests that were answered with 409.
func (s *Service) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// ServeHTTP meets the fault that is planned for the attempt.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var order struct {
		Order string `json:"order"`
	}
	if err != nil || json.Unmarshal(body, &order) != nil || order.Order == "" {
		s.count(&s.refused)
		reply(w, http.StatusBadRequest, failure("no order"), whole)
		return
	}
	key := r.Header.Get(peers.KeyHeader)
	fault := s.fault(order.Order, s.attempt(order.Order))
	switch fault {
	case DropBefore:
		panic(http.ErrAbortHandler)
	case Unavailable:
		w.Header().Set("Content-Type", "text/plain")
		reply(w, http.StatusServiceUnavailable, "unavailable", whole)
		return
	case DropDuring:
		s.behind.Go(func() { s.handle(order.Order, key, body) })
		panic(http.ErrAbortHandler)
	default:
	}
	status, text := s.handle(order.Order, key, body)
	switch fault {
	case DropAfter:
		panic(http.ErrAbortHandler)
	case CutBody:
		reply(w, status, text, half)
		panic(http.ErrAbortHandler)
	default:
		reply(w, status, text, whole)
	}
}

// attempt counts one more and returns its number.
func (s *Service) attempt(order string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.ledger[order]
	e.Attempts++
	s.ledger[order] = e
	return e.Attempts
}

// handle is the service behind its faults: the keys, and the work.
func (s *Service) handle(order, key string, body []byte) (status int, text string) {
	mine := &record{body: body}
	if old := s.claim(key, mine); old != nil {
		switch {
		case !bytes.Equal(old.body, body):
			s.count(&s.refused)
			return http.StatusUnprocessableEntity, failure("the key came with another body")
		case !old.done:
			s.count(&s.busy)
			return http.StatusConflict, failure("the key is in use")
		}
		return http.StatusCreated, peers.Created
	}
	s.work()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.ledger[order]
	e.Effects++
	s.ledger[order] = e
	mine.done = true
	return http.StatusCreated, peers.Created
}

// claim makes the key mine, or returns whose it is, as it is now.
func (s *Service) claim(key string, mine *record) *record {
	if key == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.keys[key]; old != nil {
		return &record{old.body, old.done}
	}
	s.keys[key] = mine
	return nil
}

func (s *Service) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func failure(message string) string {
	return `{"error":{"type":"idempotency_error","message":"` + message + `"}}`
}

// How much of a body is sent: all of it, or one part of two.
const (
	whole = 1
	half  = 2
)

// reply sends a part of text under the length of all of it.
func reply(w http.ResponseWriter, status int, text string, part int) {
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text[:len(text)/part])
	if part != whole {
		_ = http.NewResponseController(w).Flush()
	}
}
