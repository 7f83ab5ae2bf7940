package mockserver

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/idem-go/idem/contract"
)

// refusal is the server's answer with this meaning: as its Kind says it, as the
// contract does, or else as the draft does. kept is the stored answer, if there
// is one. s.mu is held.
func (s *Server) refusal(means contract.Meaning, kept *answer) *answer {
	a := s.refused(means)
	switch {
	case means == contract.InProgress && s.spoken.busy != nil:
		a = s.spoken.busy.about(nil)
	case means == contract.Mismatch && s.spoken.mismatch != nil:
		a = s.spoken.mismatch.about(nil)
	case means == contract.Done && s.spoken.again != nil:
		a = s.spoken.again.about(kept)
	}
	if means != contract.Done {
		s.hint(a, means == contract.InProgress)
	}
	return a
}

// refused is the contract's own answer. Where it names none, the answer must not
// be one that it reads as something else.
func (s *Server) refused(means contract.Meaning) *answer {
	statuses, kind, title := []int{http.StatusConflict, http.StatusServiceUnavailable, http.StatusTooEarly}, Busy, "A request is outstanding for this key"
	switch means {
	case contract.Mismatch:
		statuses, kind, title = []int{http.StatusUnprocessableEntity, http.StatusBadRequest}, Mismatched, "This key is already used with another request"
	case contract.KeyRefused:
		statuses, kind, title = []int{http.StatusBadRequest}, Refused, "This key is not allowed"
	case contract.Final:
		statuses, kind, title = []int{http.StatusPreconditionFailed}, Refused, "This key was first sent too long ago"
	case contract.Done:
		statuses, kind, title = []int{http.StatusConflict}, Replayed, "The work of this key was done before"
	}
	for _, m := range s.contract.Answers {
		if m.Means == means && (means != contract.Final || m.Status != 0) {
			if m.Status == 0 {
				m.Status = statuses[0]
			}
			return problemAnswer(kind, m, title)
		}
	}
	var a *answer
	for _, status := range statuses {
		a = problemAnswer(kind, contract.Match{Status: status, Means: means}, title)
		if read := s.contract.Classify(status, a.header, a.body); read == contract.Unclassified {
			break
		}
	}
	return a
}

// problemAnswer is a problem document that m matches.
func problemAnswer(kind Answer, m contract.Match, title string) *answer {
	problem := map[string]any{"type": "about:blank", "title": title}
	if m.Path != "" {
		put(problem, strings.Split(m.Path, "."), m.Value)
	}
	if _, taken := problem["status"]; !taken {
		problem["status"] = m.Status
	}
	body, _ := json.Marshal(problem) //nolint:errchkjson // a map of strings and a number
	h := http.Header{"Content-Type": {"application/problem+json"}}
	if m.Means == contract.InProgress {
		h.Set("Retry-After", "1")
	}
	return &answer{kind: kind, status: m.Status, header: h, body: append(body, '\n')}
}

// put sets the member at path to value, or to true where any value will do.
func put(object map[string]any, path []string, value string) {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := object[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[path[0]] = inner
		}
		object = inner
	}
	if object[path[0]] = any(value); value == "" {
		object[path[0]] = true
	}
}

// hint says in the contract's way whether to ask again, if the Kind wants it.
func (s *Server) hint(a *answer, again bool) {
	if !s.kind.Hints || len(s.contract.Hints) == 0 {
		return
	}
	h := s.contract.Hints[0]
	value := h.Stop
	if again {
		value = h.Retry
	}
	if value == "" {
		return // silence is how this contract says it
	}
	if h.Header != "" {
		a.header.Set(h.Header, value)
		return
	}
	var body map[string]any
	if decode(a.body, &body) != nil || body == nil {
		return
	}
	put(body, strings.Split(h.Path, "."), value)
	a.body, _ = json.Marshal(body) //nolint:errchkjson // it came from JSON
}
