package chaos

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/idem-go/idem/benchmarks/internal/peers"
	"github.com/stretchr/testify/assert"
)

// lost is the status of a request whose connection was dropped.
const lost = 0

// ask makes one request and returns the status and how much of the answer came.
func ask(s *Service, number int, key string) (status int, body string) {
	return send(s, peers.Order(number), key)
}

func send(s *Service, order []byte, key string) (status int, body string) {
	r := httptest.NewRequest(http.MethodPost, "/v1/orders", bytes.NewReader(order))
	if key != "" {
		r.Header.Set(peers.KeyHeader, key)
	}
	w := httptest.NewRecorder()
	defer func() {
		if dropped := recover(); dropped != nil && w.Body.Len() == 0 {
			status, body = lost, ""
		} else if dropped != nil {
			status, body = w.Code, w.Body.String()
		}
	}()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// script plans the same faults for each order.
func script(faults ...Fault) func(string, int) Fault {
	return func(_ string, attempt int) Fault {
		if attempt > len(faults) {
			return None
		}
		return faults[attempt-1]
	}
}

func idle() {}

// The ledger counts what was done, not what was said.
func TestLedger(t *testing.T) {
	for name, c := range map[string]struct {
		fault           Fault
		status          int
		body            string
		effects, unkeyd int // after the second attempt, with a key and without
	}{
		"none":        {None, 201, peers.Created, 1, 2},
		"drop before": {DropBefore, lost, "", 1, 1},
		"drop after":  {DropAfter, lost, "", 1, 2},
		"drop during": {DropDuring, lost, "", 1, 2},
		"unavailable": {Unavailable, 503, "unavailable", 1, 1},
		"cut":         {CutBody, 201, peers.Created[:len(peers.Created)/2], 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for key, effects := range map[string]int{"k": c.effects, "": c.unkeyd} {
				s := NewService(script(c.fault), idle)
				status, body := ask(s, 1, key)
				assert.Equal(t, c.status, status)
				assert.Equal(t, c.body, body)
				s.behind.Wait()
				status, body = ask(s, 1, key)
				assert.Equal(t, http.StatusCreated, status)
				assert.Equal(t, peers.Created, body)
				assert.Equal(t, Entry{Attempts: 2, Effects: effects}, s.Entry(peers.OrderID(1)), "key %q", key)
				assert.Zero(t, s.Refused())
			}
		})
	}
}

func TestOrdersAreApart(t *testing.T) {
	s := NewService(script(DropAfter), idle)
	ask(s, 1, "k1")
	ask(s, 2, "k2")
	ask(s, 2, "k2")
	assert.Equal(t, Entry{1, 1}, s.Entry(peers.OrderID(1)))
	assert.Equal(t, Entry{2, 1}, s.Entry(peers.OrderID(2)))
	assert.Equal(t, Entry{}, s.Entry(peers.OrderID(3)))
}

// While the first request works, the next with its key gets 409.
func TestInProgress(t *testing.T) {
	working, finish := make(chan bool), make(chan bool)
	s := NewService(script(DropDuring), func() { working <- true; <-finish })
	status, _ := ask(s, 1, "k")
	assert.Equal(t, lost, status)
	<-working
	status, _ = ask(s, 1, "k")
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, 1, s.Busy())
	close(finish)
	assert.Equal(t, Entry{2, 1}, s.Entry(peers.OrderID(1)))
	status, body := ask(s, 1, "k")
	assert.Equal(t, http.StatusCreated, status)
	assert.Equal(t, peers.Created, body)
}

// What no client should send is counted and not done.
func TestRefused(t *testing.T) {
	s := NewService(script(), idle)
	ask(s, 1, "k")
	status, _ := ask(s, 2, "k")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	for _, body := range []string{"", "{}", string(peers.Order(3)[:100])} {
		status, _ = send(s, []byte(body), "k3")
		assert.Equal(t, http.StatusBadRequest, status, body)
	}
	assert.Equal(t, 4, s.Refused())
	assert.Equal(t, 0, s.Entry(peers.OrderID(2)).Effects)
	assert.Equal(t, Entry{}, s.Entry(peers.OrderID(3)))
}
