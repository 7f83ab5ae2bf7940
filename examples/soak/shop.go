package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/idem-go/idem/mockserver"
)

// A shop takes orders. The order and the record of its key are one fact, as with
// a unique column in the table of orders: a process that dies has done both or
// neither. The server's own memory of claims and answers lies in front of it.
type shop struct {
	mu    sync.Mutex
	taken map[string][]byte // key: the answer
	last  int
}

func newShop() *shop { return &shop{taken: map[string][]byte{}} }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o struct {
		ID     string `json:"id"`
		Number int    `json:"number"`
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, "no order", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	text, known := s.taken[key]
	if !known {
		s.last++
		o.ID = fmt.Sprint(s.last)
		text = fmt.Appendf(nil, `{"id":%q,"number":%d}`, o.ID, o.Number)
		if mockserver.Did(r.Context(), "order", o.Number) && key != "" {
			s.taken[key] = text
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(text)
}
