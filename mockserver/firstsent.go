package mockserver

import (
	"net/http"
	"time"

	"github.com/idem-go/idem/contract"
)

// untimely judges the time of the first send that a contract with a
// FirstSentHeader asks for: it is there, once, as an IMF-fixdate; not in the
// future, and no longer ago than the window, whatever is kept. Unclassified:
// nothing is wrong with it. It is not compared with that of earlier requests:
// another process that shares the key may know only when it began itself.
func (s *Server) untimely(h http.Header) contract.Meaning {
	if s.contract.FirstSentHeader == "" {
		return contract.Unclassified
	}
	values := h.Values(s.contract.FirstSentHeader)
	if len(values) != 1 {
		return contract.KeyRefused
	}
	at, err := time.Parse(http.TimeFormat, values[0])
	if err != nil {
		return contract.KeyRefused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.now().Sub(at)
	if age >= 0 && (s.contract.Window <= 0 || age < s.contract.Window+time.Second) { // the header has whole seconds
		return contract.Unclassified
	}
	for _, m := range s.contract.Answers {
		if m.Means == contract.Final && m.Status != 0 {
			return contract.Final
		}
	}
	return contract.Unclassified
}
