package idem

import (
	"bytes"
	"hash/maphash"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
)

// unchanged reports whether a body in memory is what it was when it was hashed.
func (s *source) unchanged() bool {
	if !s.hashed {
		return true
	}
	sum, _, _ := s.sumUp()
	return sum == s.sum
}

// open returns a new reader of the whole body for one send by a. first says that
// nothing of the caller's own body was read yet, so that it can serve.
func (s *source) open(first bool, a *attempt) (io.ReadCloser, error) {
	switch s.kind {
	case noBody:
		return s.original, nil // nil or NoBody
	case inBytes, inText:
		if first && !s.buffered {
			return s.original, nil
		}
		if !s.unchanged() {
			return nil, errBodyChanged
		}
		return s.memory(), nil
	case inSections:
		at, _, _ := s.file.Outer()
		if now := statOf(at); s.stat != nil && now != nil && (now.Size() != s.stat.Size() || !now.ModTime().Equal(s.stat.ModTime())) {
			return nil, errBodyChanged
		}
		s.refs.Add(1)
		return s.watch(s.section(), s.release, a), nil
	}
	if first && !s.shared {
		s.refs.Add(1)
		w := s.watch(io.MultiReader(bytes.NewReader(s.readFirst), s.original), s.release, a)
		w.original = true
		return w, nil
	}
	if s.kind == inStream {
		return nil, because(ErrNotRepeatable, "%s", s.whyOnce)
	}
	body, err := s.give()
	if err != nil {
		return nil, &bodyError{err}
	}
	s.opened = true
	return s.watch(body, s.closerOf(body), a), nil
}

// give asks the caller's GetBody.
func (s *source) give() (io.ReadCloser, error) {
	body, err := s.again()
	if err == nil && body == nil {
		body = http.NoBody
	}
	if t := reflect.TypeOf(body); t != nil && t.Comparable() && body == s.original {
		s.shared = true
	}
	return body, err
}

// closerOf returns how a body that GetBody gave is closed. The caller's own body
// is closed at the end of the call, also where it serves each send.
func (s *source) closerOf(body io.Closer) func() error {
	if s.shared {
		return func() error { return nil }
	}
	return body.Close
}

// memory returns a new reader that net/http knows to be in memory.
func (s *source) memory() io.ReadCloser {
	switch {
	case s.size == 0:
		return http.NoBody
	case s.kind == inText:
		return io.NopCloser(strings.NewReader(s.held.text))
	default:
		return io.NopCloser(bytes.NewReader(s.held.data))
	}
}

// reread is GetBody for the layers above the attempts.
func (s *source) reread() (io.ReadCloser, error) {
	switch s.kind {
	case inSections:
		return io.NopCloser(s.section()), nil
	case inGetBody:
		return s.give()
	}
	return s.memory(), nil
}

// release gives back one reference to the caller's body, and closes it with the
// last. A reader of it may still be in use when the call has ended.
func (s *source) release() error {
	if s.refs.Add(-1) == 0 && s.original != nil {
		return s.closeOriginal()
	}
	return nil
}

func (s *source) closeOriginal() error {
	if s.closed.Swap(true) {
		return nil
	}
	return s.original.Close()
}

// restore gives r its body back, after take has read of it.
func (s *source) restore(r *http.Request) {
	if len(s.readFirst) > 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(s.readFirst), s.original), s.original}
	}
	if !s.inMem() {
		return
	}
	if s.buffered {
		_ = s.closeOriginal()
	}
	r.Body = s.memory()
	r.GetBody = func() (io.ReadCloser, error) { return s.memory(), nil }
	r.ContentLength = s.size
}

// unwrapNopCloser returns what io.NopCloser wraps, as net/http does, to see
// whether it is in memory.
func unwrapNopCloser(r io.Reader) io.Reader {
	switch reflect.TypeOf(r) {
	case reflect.TypeOf(io.NopCloser(nil)), reflect.TypeOf(io.NopCloser(&bytes.Reader{})):
		return reflect.ValueOf(r).Field(0).Interface().(io.Reader)
	}
	return r
}

// bodyError is the error of the caller's own body.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "idem: the request body cannot be read: " + plain(e.err) }

func (e *bodyError) Unwrap() error { return e.err }

// watch wraps a reader of the body that is not in memory, for one send by a.
func (s *source) watch(r io.Reader, closeIt func() error, a *attempt) *watched {
	w := &watched{source: s, reader: r, close: closeIt, attempt: a}
	if s.hashed {
		w.hash.SetSeed(s.seed)
	}
	a.opened(w)
	return w
}

// A watched body tells its attempt of progress and of the reader's own errors,
// and lets the last bytes go only if the whole is what it was at first.
type watched struct {
	source   *source
	older    *watched // reader of the same attempt
	original bool     // it reads the caller's own body
	reader   io.Reader
	close    func() error
	closed   atomic.Bool
	attempt  *attempt
	n        atomic.Int64
	hash     maphash.Hash
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.reader.Read(p)
	total := w.n.Add(int64(n))
	w.attempt.progress(n)
	if s := w.source; s.hashed {
		_, _ = w.hash.Write(p[:n])
		switch {
		case total > s.size, err == io.EOF && total < s.size, total == s.size && w.hash.Sum64() != s.sum:
			n, err = 0, errBodyChanged
		}
	}
	if err != nil && err != io.EOF {
		w.attempt.bodyFailed(err)
	}
	return n, err
}

func (w *watched) Close() error {
	if w.closed.Swap(true) {
		return nil
	}
	return w.close()
}
