package contract

import (
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

// String returns the name of the constant.
func (a Advice) String() string {
	return name(a, "NoAdvice", "AdviseRetry", "AdviseStop")
}

// Advice returns what the hints of an answer say: the first that speaks wins.
// Silence that counts gives way to any hint that speaks, and to an answer that
// the contract knows as InProgress or Transient. Hints are read only on answers
// that are not 2xx.
func (c Contract) Advice(status int, header http.Header, prefix []byte) Advice {
	if isSuccess(status) {
		return NoAdvice
	}
	if c.Hints == nil {
		c.Hints = defaultHints()
	}
	silent := false
	for _, h := range c.Hints {
		value := h.read(header, prefix)
		switch {
		case value == "":
			silent = silent || h.SilenceStops
		case strings.EqualFold(value, h.Retry):
			return AdviseRetry
		case strings.EqualFold(value, h.Stop):
			return AdviseStop
		}
	}
	if !silent || !IsJSON(header) {
		return NoAdvice
	}
	switch c.Classify(status, header, prefix) {
	case InProgress, Transient:
		return NoAdvice
	}
	return AdviseStop
}

// read returns what stands at the hint's place, or "".
func (h Hint) read(header http.Header, prefix []byte) string {
	if h.Path == "" {
		return header.Get(h.Header)
	}
	for _, v := range scalars(prefix, h.Path) {
		if v != "" {
			return v
		}
	}
	return ""
}

// IsJSON reports whether the Content-Type is JSON: application/json, text/json
// or any type with the suffix +json (RFC 6839, 3.1).
func IsJSON(header http.Header) bool {
	t, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}
