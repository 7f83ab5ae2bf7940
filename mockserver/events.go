package mockserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// What happens within one beat is sent together, so that a busy server neither
// floods its watchers nor serves them before its clients. Breaches are looked for
// more seldom, because all of the log is read for it.
const (
	beat       = 40 * time.Millisecond
	slowBeat   = time.Second
	heartbeats = 15 * time.Second
)

// serveEvents tells what happens as server-sent events, first all that has
// happened. The events are: server, when its clock or the list of scopes changed;
// request, effect and key, each the document of one; scripts and breaches, the
// whole list; clean, when everything before is void.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	e := &events{s: s, w: w, cursor: &cursor{start: -1}, last: map[string][]byte{}}
	defer s.hub.watch()()
	slow := time.NewTicker(slowBeat)
	defer slow.Stop()
	alive := time.NewTicker(heartbeats)
	defer alive.Stop()
	stale := true
	for {
		changed := s.hub.next()
		if e.tell(); stale {
			e.list("breaches", s.breachDocs())
		}
		if stale = false; e.flush() != nil {
			return nil
		}
		pause := time.NewTimer(beat)
		select {
		case <-pause.C:
		case <-r.Context().Done():
		}
		pause.Stop()
	wait:
		for {
			select {
			case <-changed:
				e.behind = true
				break wait
			case <-slow.C:
				if stale = e.behind; stale {
					e.behind = false
					break wait
				}
			case <-alive.C:
				_, _ = e.out.WriteString(":\n\n")
				break wait
			case <-r.Context().Done():
				return nil
			case <-s.closed.Done():
				return nil
			}
		}
	}
}

// events is one stream of events.
type events struct {
	s      *Server
	w      http.ResponseWriter
	out    bytes.Buffer
	cursor *cursor
	last   map[string][]byte // of the lists: what was sent last
	behind bool              // the breaches may be others by now
}

// tell writes what has changed.
func (e *events) tell() {
	s := e.s
	requests, anew := e.cursor.take(s)
	if anew {
		clear(e.last)
		e.event("clean", struct{}{})
	}
	doc := s.doc()
	doc.Now = instant{}
	e.list("server", doc)
	for i := range requests {
		e.event("request", requests[i].doc())
	}
	s.mu.Lock()
	effects := slices.Clone(s.effects[min(e.cursor.effects, len(s.effects)):])
	e.cursor.effects += len(effects)
	touched, all := map[scope]bool{}, e.cursor.shift != s.shifts
	e.cursor.shift = s.shifts
	for _, r := range requests {
		touched[scope{r.Caller, r.Key}] = true
	}
	if all {
		for who := range s.attempts {
			touched[who] = true
		}
	}
	delete(touched, scope{})
	var keys []keyDoc
	if len(touched) > 0 {
		claims := s.claimsByKey()
		for who := range touched {
			if who.key != "" {
				keys = append(keys, s.keyDoc(who, claims[who]))
			}
		}
	}
	s.mu.Unlock()
	for _, d := range effects {
		e.event("effect", d.doc(s.scope))
	}
	for _, d := range keys {
		e.event("key", d)
	}
	e.list("scripts", s.scriptDocs())
}

// list writes an event if it differs from the last one of that name.
func (e *events) list(name string, v any) bool {
	data, _ := json.Marshal(v) //nolint:errchkjson // documents of ours
	if bytes.Equal(e.last[name], data) {
		return false
	}
	e.last[name] = data
	e.write(name, data)
	return true
}

func (e *events) event(name string, v any) {
	data, _ := json.Marshal(v) //nolint:errchkjson // documents of ours
	e.write(name, data)
}

func (e *events) write(name string, data []byte) {
	_, _ = e.out.WriteString("event: " + name + "\ndata: ")
	_, _ = e.out.Write(data)
	_, _ = e.out.WriteString("\n\n")
}

func (e *events) flush() error {
	_, err := e.w.Write(e.out.Bytes())
	e.out.Reset()
	if err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}
