package mockserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// serveClean makes a clean start.
func (s *Server) serveClean(w http.ResponseWriter, _ *http.Request) error {
	s.clean()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// serveAwait answers once an attempt has reached a point, with its request.
func (s *Server) serveAwait(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	n, timeout, point := 1, 30*time.Second, Received
	var err error
	if v := q.Get("n"); v != "" {
		if n, err = strconv.Atoi(v); err != nil || n < 1 {
			return fmt.Errorf("mockserver: n=%s is no number of an attempt", v)
		}
	}
	if v := q.Get("timeout"); v != "" {
		if timeout, err = time.ParseDuration(v); err != nil || timeout <= 0 {
			return fmt.Errorf("mockserver: timeout=%s is no duration; right is 10s or 500ms", v)
		}
	}
	if v := q.Get("point"); v != "" {
		point = Point(v)
	}
	if !slices.Contains(points(), point) {
		return fmt.Errorf("mockserver: there is no point %q; there are %v", point, points())
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if err := s.Await(ctx, q.Get("key"), n, point); err != nil {
		return &refusedError{http.StatusGatewayTimeout, err}
	}
	for _, rec := range s.Requests(q.Get("key")) {
		_, there := rec.Points[point]
		if rec.Attempt == n && rec.Key == q.Get("key") && there {
			reply(w, http.StatusOK, rec.doc())
			return nil
		}
	}
	reply(w, http.StatusOK, struct{}{}) // a point of a connection, whose request is still to come
	return nil
}

func (s *Server) serveRelease(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key      *string `json:"key"` // none: of every key
		Attempts []int   `json:"attempts"`
	}
	if err := receive(r, &body); err != nil {
		return err
	}
	n := s.release(func(h *hold) bool {
		return (body.Key == nil || *body.Key == h.key) && (len(body.Attempts) == 0 || slices.Contains(body.Attempts, h.attempt))
	})
	reply(w, http.StatusOK, map[string]int{"released": n})
	return nil
}

func (s *Server) serveAdvance(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		By string `json:"by"`
	}
	if err := receive(r, &body); err != nil {
		return err
	}
	d, err := time.ParseDuration(body.By)
	if err != nil || d < 0 {
		return fmt.Errorf("mockserver: by %q is no time to go forward; right is \"24h\" or \"90s\"", body.By)
	}
	s.Advance(d)
	reply(w, http.StatusOK, s.doc())
	return nil
}

func (s *Server) serveRestart(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Forget bool `json:"forget"`
	}
	if err := receive(r, &body); err != nil {
		return err
	}
	if body.Forget {
		s.Forget()
	}
	if err := s.Restart(); err != nil {
		return &refusedError{http.StatusInternalServerError, err}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) serveBelieve(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Key    string `json:"key"`
		Belief string `json:"belief"`
	}
	if err := receive(r, &body); err != nil {
		return err
	}
	belief, ok := map[string]Belief{"unsure": Unsure, "done": Done, "notdone": NotDone}[body.Belief]
	if !ok || body.Key == "" {
		return errors.New(`mockserver: a key and a belief are wanted: "unsure", "done" or "notdone"`)
	}
	s.Believe(body.Key, belief)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// breachDoc is a Breach in the control API.
type breachDoc struct {
	Scope string `json:"scope,omitempty"`
	Kind  string `json:"kind"`
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"`
}

func (s *Server) serveVerify(w http.ResponseWriter, _ *http.Request) error {
	s.settled()
	list := s.breachDocs()
	reply(w, http.StatusOK, map[string]any{"ok": len(list) == 0, "breaches": list})
	return nil
}

func (s *Server) breachDocs() []breachDoc {
	list := []breachDoc{}
	for _, err := range s.check() {
		if b, ok := errors.AsType[*Breach](err); ok {
			list = append(list, breachDoc{s.scope, b.Kind, b.Key, b.Text})
		}
	}
	return list
}
