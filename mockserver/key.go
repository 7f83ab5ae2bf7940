package mockserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/idem-go/idem/contract"
)

// keyOf returns the key of a request as the client knows it, whether or not the
// contract asks for one here, and "" if there is none or it is not allowed.
func (s *Server) keyOf(h http.Header, body []byte) string {
	value, err := s.wireKey(h, body)
	if value == "" || err != nil {
		return ""
	}
	key, err := s.contract.Unwire(value)
	if err != nil {
		return ""
	}
	return key
}

// wireKey returns the key in its wire form.
func (s *Server) wireKey(h http.Header, body []byte) (string, error) {
	if s.contract.Place == contract.InBody {
		return s.contract.FromBody(body)
	}
	switch values := h.Values(s.contract.Header); len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", errors.New("mockserver: there is more than one key")
	}
}

// credential names the caller: Authorization without its scheme, or X-Api-Key.
func credential(h http.Header) string {
	if _, c, ok := strings.Cut(h.Get("Authorization"), " "); ok {
		return c
	}
	if c := h.Get("Authorization"); c != "" {
		return c
	}
	return h.Get("X-Api-Key")
}

// digest is the fingerprint of a request.
func digest(method, url string, body []byte) string {
	sum := sha256.New()
	sum.Write([]byte(method + " " + url + "\n"))
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
