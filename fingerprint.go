package idem

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
)

// quick returns an in-process hash of method, URL and body. A body that can be
// read only once does not count.
func (s *source) quick(r *http.Request, seed maphash.Seed) (uint64, error) {
	s.seed = seed
	sum, n, err := s.sumUp()
	if s.kind == inGetBody && (err != nil || r.ContentLength > 0 && n != r.ContentLength) {
		// This GetBody does not give the body that is there, as when a layer
		// above has put another body into the request. Go by the body.
		if err = s.buffer(r); err == nil {
			sum, n, err = s.sumUp()
		}
	}
	if err != nil {
		return 0, err
	}
	s.sum, s.size, s.hashed = sum, n, !s.once
	return maphash.Comparable(seed, struct {
		identity [6]string
		body     uint64
	}{identity(r), sum}), nil
}

// fingerprint returns the same as a text that can be written down, or "" for a
// body that can be read only once.
func (s *source) fingerprint(r *http.Request) (string, error) {
	if s.once {
		return "", nil
	}
	h := sha256.New()
	for _, part := range identity(r) {
		_, _ = io.WriteString(h, part+"\x00")
	}
	if _, err := s.writeTo(h); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// identity is what tells requests apart besides the body. The user's name and
// password in the URL do not: credentials may be renewed.
func identity(r *http.Request) [6]string {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	return [6]string{methodOf(r), r.URL.Scheme, strings.ToLower(host), r.URL.Opaque, r.URL.EscapedPath(), r.URL.RawQuery}
}

// sumUp returns the hash and the length of the whole body, 0 if it can be read
// only once.
func (s *source) sumUp() (sum uint64, n int64, err error) {
	switch s.kind {
	case inBytes:
		return maphash.Bytes(s.seed, s.held.data), s.size, nil
	case inText:
		return maphash.String(s.seed, s.held.text), s.size, nil
	}
	var hash maphash.Hash
	hash.SetSeed(s.seed)
	if n, err = s.writeTo(&hash); err != nil {
		return 0, n, err
	}
	return hash.Sum64(), n, nil
}

// writeTo writes the whole body without using it up; a body that can be read
// only once is not written. A send may be under way: nothing
// that it uses is changed.
func (s *source) writeTo(w io.Writer) (n int64, err error) {
	switch s.kind {
	case inBytes:
		return io.Copy(w, bytes.NewReader(s.held.data))
	case inText:
		return io.Copy(w, strings.NewReader(s.held.text))
	case inSections:
		return io.Copy(w, s.section())
	case inGetBody:
		if s.shared && s.opened {
			return 0, because(ErrNotRepeatable, "its GetBody gives a reader that a send may still use")
		}
		body, err := s.give()
		if err != nil {
			return 0, err
		}
		n, err = io.Copy(w, body)
		return n, errors.Join(err, s.closerOf(body)())
	}
	return 0, nil
}
