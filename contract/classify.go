package contract

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// Advice is the server's own word on whether asking again can help.
type Advice uint8

const (
	NoAdvice    Advice = iota // it says nothing
	AdviseRetry               // it says: ask again
	AdviseStop                // it says: do not
)

// Classify returns what the contract says of an answer, by status and, where
// the contract has codes, by a prefix of the body. The prefix may be cut
// anywhere; a member that lies beyond it does not match.
func (c Contract) Classify(status int, header http.Header, prefix []byte) Meaning {
	if c.Answers == nil {
		c.Answers = defaultAnswers()
	}
	for _, m := range c.Answers {
		if m.Status != status && (m.Status != 0 || isSuccess(status)) {
			continue
		}
		if m.repeats422() || m.Status == 0 && status == http.StatusUnprocessableEntity && m.Path == "" {
			continue
		}
		if m.Path == "" || holds(prefix, m.Path, m.Value) {
			return m.Means
		}
	}
	return Unclassified
}

// Peeks reports whether Classify or Advice can make use of the body of an
// answer with this status.
func (c Contract) Peeks(status int) bool {
	// nil lists need no look: none of Default's entries reads a body.
	for _, m := range c.Answers {
		if m.Path != "" && (m.Status == status || m.Status == 0 && !isSuccess(status)) {
			return true
		}
	}
	for _, h := range c.Hints {
		if h.Path != "" && !isSuccess(status) {
			return true
		}
	}
	return false
}

// Advice returns what the hints of an answer say. Hints are read only on
// answers that are not 2xx.
func (c Contract) Advice(status int, header http.Header, prefix []byte) Advice {
	if isSuccess(status) {
		return NoAdvice
	}
	if c.Hints == nil {
		c.Hints = defaultHints()
	}
	silence := NoAdvice
	for _, h := range c.Hints {
		value := header.Get(h.Header)
		if h.Path != "" {
			find(prefix, h.Path, func(v string) bool { value = v; return true })
		}
		switch {
		case value == "" && h.SilenceStops && IsJSON(header):
			silence = AdviseStop
		case value == "":
		case strings.EqualFold(value, h.Retry):
			return AdviseRetry
		case strings.EqualFold(value, h.Stop):
			return AdviseStop
		}
	}
	return silence
}

// Marked reports whether an answer is marked as a replay of the stored one, and
// whether anything is known about it: without a mark nothing is, unless the
// contract promises one.
func (c Contract) Marked(header http.Header) (replayed, known bool) {
	if c.Replayed == nil {
		c.Replayed = defaultMarkers()
	}
	for _, m := range c.Replayed {
		value := header.Get(m.Header)
		if value == "" {
			continue
		}
		switch {
		case m.DiffersFrom != "":
			if other := header.Get(m.DiffersFrom); other != "" {
				if other != value {
					return true, true
				}
				known = true
			}
		case len(m.Yes) == 0 || containsFold(m.Yes, value):
			return true, true
		case containsFold(m.No, value):
			known = true
		}
	}
	return false, known || c.PromisesMarker
}

// IsJSON reports whether the Content-Type is JSON: application/json or any type
// with the suffix +json (RFC 6839, 3.1).
func IsJSON(header http.Header) bool {
	t, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

func containsFold(list []string, s string) bool {
	for _, e := range list {
		if strings.EqualFold(e, s) {
			return true
		}
	}
	return false
}

// holds reports whether the JSON document that begins with prefix has a member
// at path whose value is want (or any value, if want is empty).
func holds(prefix []byte, path, want string) bool {
	return find(prefix, path, func(value string) bool {
		if want == "" || value == want {
			return true
		}
		rest, ok := strings.CutSuffix(value, want)
		return ok && path == "type" && rest != "" && strings.ContainsRune("/#:", rune(rest[len(rest)-1]))
	})
}

// find calls visit with every scalar at path, in the order of the text, until
// visit returns true or the text ends or breaks; it reports whether visit did.
func find(prefix []byte, path string, visit func(value string) bool) bool {
	if len(prefix) == 0 {
		return false
	}
	w := walker{dec: json.NewDecoder(bytes.NewReader(prefix)), visit: visit}
	w.dec.UseNumber()
	w.value(strings.Split(path, "."))
	return w.found
}

type walker struct {
	dec   *json.Decoder
	visit func(string) bool
	found bool
}

// value reads one value, looking for what is at path below it, and reports
// whether to go on.
func (w *walker) value(path []string) bool {
	token, err := w.dec.Token()
	if err != nil {
		return false
	}
	switch token := token.(type) {
	case json.Delim:
		for w.dec.More() {
			next := path
			if token == '{' {
				name, err := w.dec.Token()
				if err != nil {
					return false
				}
				if len(path) == 0 || name != path[0] {
					if !w.skip() {
						return false
					}
					continue
				}
				next = path[1:]
			}
			if !w.value(next) {
				return false
			}
		}
		_, err = w.dec.Token() // the closing delimiter
		return err == nil
	case nil:
		return true
	default:
		if len(path) == 0 && w.visit(text(token)) {
			w.found = true
			return false
		}
		return true
	}
}

// skip reads one value and throws it away.
func (w *walker) skip() bool {
	for depth := 0; ; {
		token, err := w.dec.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return true
		}
	}
}

func text(token json.Token) string {
	switch token := token.(type) {
	case string:
		return token
	case json.Number:
		return token.String()
	case bool:
		if token {
			return "true"
		}
		return "false"
	}
	return ""
}
