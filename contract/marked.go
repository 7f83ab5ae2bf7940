package contract

import (
	"net/http"
	"strings"
)

// Marked reports whether an answer is marked as a replay of the stored one, and
// whether anything is known about it: without a mark nothing is, unless the
// contract promises one. Of marks that disagree, the one that says "replay" wins.
func (c Contract) Marked(status int, header http.Header) (replayed, known bool) {
	if c.Replayed == nil {
		c.Replayed = defaultMarkers()
	}
	known = c.PromisesMarker
	// One pass over the headers that are there: looking up each marker by its
	// name would cost several times as much, on every answer.
	for name, values := range header {
		if len(values) == 0 || values[0] == "" {
			continue
		}
		for i := range c.Replayed {
			m := &c.Replayed[i]
			if m.Success && !isSuccess(status) || len(name) != len(m.Header) || !strings.EqualFold(name, m.Header) {
				continue
			}
			yes, no := m.says(values[0], header)
			if yes {
				return true, true
			}
			known = known || no
		}
	}
	return false, known
}

// says reports whether the marker, with this value, marks a replay or a fresh
// answer; neither, if it cannot tell.
func (m *Marker) says(value string, header http.Header) (replay, fresh bool) {
	if m.DiffersFrom != "" {
		other := header.Get(m.DiffersFrom)
		return other != "" && other != value, other == value
	}
	if containsFold(m.No, value) {
		return false, true
	}
	return len(m.Yes) == 0 || containsFold(m.Yes, value), false
}

func containsFold(list []string, s string) bool {
	for _, e := range list {
		if strings.EqualFold(e, s) {
			return true
		}
	}
	return false
}
