package mockserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// scriptDoc is a Script in the control API.
type scriptDoc struct {
	ID        int      `json:"id"`
	On        string   `json:"on"`
	Key       *string  `json:"key,omitempty"`
	Caller    *string  `json:"caller,omitempty"`
	Then      []Fault  `json:"then,omitempty"`
	Always    Fault    `json:"always,omitempty"`
	Sometimes []Fault  `json:"sometimes,omitempty"`
	P         float64  `json:"p,omitempty"`
	Seed      uint64   `json:"seed,omitempty"`
	Hits      int      `json:"hits"`   // how often a fault of it was met
	Unused    []string `json:"unused"` // what no attempt has met yet
	Scope     string   `json:"scope,omitempty"`
}

func (s *Server) serveNewScript(w http.ResponseWriter, r *http.Request) error {
	var d scriptDoc
	if err := receive(r, &d); err != nil {
		return err
	}
	if d.Scope != "" && d.Scope != s.scope { // it is told, and not asked for
		return fmt.Errorf("mockserver: the body names the scope %q; right is ?scope= or the header %s", d.Scope, scopeHeader)
	}
	if d.On == "" {
		d.On = "/"
	}
	sc, err := s.newScript(d.On)
	if err != nil {
		return err
	}
	sc.key, sc.caller, sc.odds, sc.seed = d.Key, d.Caller, d.P, d.Seed
	if !(d.P >= 0 && d.P <= 1) || (d.P > 0) != (len(d.Sometimes) > 0) {
		return fmt.Errorf("mockserver: sometimes with %d faults and p %v: faults and a probability from 0 to 1 go together", len(d.Sometimes), d.P)
	}
	if len(d.Then)+len(d.Sometimes) == 0 && d.Always == "" {
		return fmt.Errorf("mockserver: a script without a fault: then, always or sometimes is wanted")
	}
	for _, f := range d.Then {
		if sc.then, err = s.appendStep(sc.then, d.On, f); err != nil {
			return err
		}
	}
	for _, f := range d.Sometimes {
		if sc.sometimes, err = s.appendStep(sc.sometimes, d.On, f); err != nil {
			return err
		}
	}
	if d.Always != "" {
		if sc.always, err = s.step(d.On, d.Always); err != nil {
			return err
		}
	}
	s.enlist(sc)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Location", "/scripts/"+strconv.Itoa(sc.id))
	reply(w, http.StatusCreated, sc.doc())
	return nil
}

func (s *Server) appendStep(list []*step, pattern string, f Fault) ([]*step, error) {
	st, err := s.step(pattern, f)
	return append(list, st), err
}

func (s *Server) serveScripts(w http.ResponseWriter, _ *http.Request) error {
	reply(w, http.StatusOK, s.scriptDocs())
	return nil
}

func (s *Server) scriptDocs() []scriptDoc {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]scriptDoc, len(s.scripts))
	for i, sc := range s.scripts {
		list[i] = sc.doc()
	}
	return list
}

func (s *Server) serveEndScript(w http.ResponseWriter, r *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.scripts, func(sc *Script) bool { return strconv.Itoa(sc.id) == r.PathValue("id") })
	if i < 0 {
		return notFound("there is no script %s", r.PathValue("id"))
	}
	s.scripts = slices.Delete(s.scripts, i, i+1)
	s.notify()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// doc is the script as it stands. s.mu is held.
func (sc *Script) doc() scriptDoc {
	d := scriptDoc{
		ID: sc.id, On: sc.pattern, Key: sc.key, Caller: sc.caller, P: sc.odds, Seed: sc.seed, Unused: []string{}, Scope: sc.s.scope,
	}
	for _, st := range sc.then {
		d.Then = append(d.Then, st.text)
		d.Hits += st.hits
	}
	for _, st := range sc.sometimes {
		d.Sometimes = append(d.Sometimes, st.text)
		d.Hits += st.hits
	}
	if sc.always != nil {
		d.Always = sc.always.text
		d.Hits += sc.always.hits
	}
	for _, st := range sc.unused() {
		d.Unused = append(d.Unused, string(st.text))
	}
	return d
}
