package idem

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem/contract"
)

const (
	maxPeek   = 16 << 10 // of a body that is looked into for a code
	maxDrain  = 64 << 10 // of a body that is thrown away, so that its connection is used again
	drainTime = 100 * time.Millisecond
)

// bufferable reports whether an answer is read inside the attempt, so that a
// body cut half way is asked for again: bodies of known length up to most, and
// JSON of unknown length. Event streams, upgrades and larger bodies pass through.
func bufferable(resp *http.Response, most int64) bool {
	if most < 0 || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		return false
	}
	if isEventStream(resp.Header) {
		return false
	}
	if resp.ContentLength > 0 { // 0 with a body is what a Base that is no net/http leaves unset
		return resp.ContentLength <= most
	}
	return contract.IsJSON(resp.Header)
}

func isEventStream(h http.Header) bool {
	const media = "text/event-stream"
	v := h["Content-Type"]
	return len(v) > 0 && len(v[0]) >= len(media) && strings.EqualFold(v[0][:len(media)], media)
}

// buffer reads the body into memory, to EOF, and puts m in its place. A body of
// unknown length that turns out longer than most becomes a stream again.
func buffer(resp *http.Response, most int64, m *memory) ([]byte, error) {
	var data []byte
	var err error
	if n := resp.ContentLength; n > 0 {
		data, err = readWhole(resp.Body, make([]byte, n))
	} else {
		data, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
		if err == nil && int64(len(data)) > most {
			unread(resp, data)
			return data, nil
		}
		if err == nil && silentlyCut(resp, data) {
			err = io.ErrUnexpectedEOF
		}
	}
	_ = resp.Body.Close()
	m.Reset(data)
	resp.Body = m
	return data, err
}

// readWhole fills data, to EOF: only then does net/http use the connection again.
// It returns what came, and why that is not the whole.
func readWhole(body io.Reader, data []byte) ([]byte, error) {
	got := 0
	var err error
	for got < len(data) && err == nil {
		var n int
		n, err = body.Read(data[got:])
		got += n
	}
	switch {
	case err == nil:
		err = expectEOF(body)
	case errors.Is(err, io.EOF) && got == len(data): // net/http tells of the end with the last bytes
		err = nil
	}
	switch {
	case errors.Is(err, errTooLong):
		err = nil // net/http would have cut it off; a stub need not be exact
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return data[:got], err
}

// silentlyCut reports whether JSON that only the end of its connection delimits
// has begun and is not whole: nothing else shows that such a body was cut. What is
// not JSON, or in a coding, tells nothing.
func silentlyCut(resp *http.Response, data []byte) bool {
	framed := resp.ProtoMajor != 1 || len(resp.TransferEncoding) > 0 || resp.Uncompressed
	if framed || len(data) == 0 || resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	err := dec.Decode(&value)
	for err == nil {
		err = dec.Decode(&value)
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || value == nil && errors.Is(err, io.EOF)
}

// peek reads a prefix of the body; the caller will still read every byte.
func peek(resp *http.Response) ([]byte, error) {
	prefix, err := io.ReadAll(io.LimitReader(resp.Body, maxPeek))
	unread(resp, prefix)
	return prefix, err
}

// unread puts what was read back in front of the rest.
func unread(resp *http.Response, prefix []byte) {
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(prefix), resp.Body), resp.Body}
}

// memory is a body that is in memory.
type memory struct{ bytes.Reader }

func (*memory) Close() error { return nil }

// discard throws the body away: to EOF if that is near, so that the connection
// can be used again, and never unbounded in bytes or in time.
func (a *attempt) discard(resp *http.Response) {
	if resp.ContentLength <= maxDrain {
		a.drain(resp.Body)
		if resp.ContentLength > 0 { // net/http keeps to it
			_, _ = io.Copy(io.Discard, resp.Body)
		} else {
			_, _ = io.CopyN(io.Discard, resp.Body, maxDrain+1)
		}
	}
	_ = resp.Body.Close()
	a.over()
}

// handOver gives the response to the caller. A body that is still on the wire
// keeps the attempt's context until its end or its Close, but not its clock.
func (a *attempt) handOver(resp *http.Response) {
	a.stopClock()
	switch body := resp.Body.(type) {
	case *memory:
		a.over()
	case io.ReadWriteCloser: // 101 (RFC 9110, 15.2.2)
		resp.Body = struct {
			*stream
			io.Writer
		}{&stream{body, a}, body}
	default:
		if body == http.NoBody {
			a.over()
			return
		}
		resp.Body = &stream{body, a}
	}
}

// stream is a body on the wire.
type stream struct {
	body    io.ReadCloser
	attempt *attempt
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err != nil {
		s.attempt.over()
	}
	return n, err
}

func (s *stream) Close() error {
	// HTTP/2 closes with a frame, for which a dead connection has no room.
	stop := time.AfterFunc(drainTime, s.attempt.over)
	err := s.body.Close()
	stop.Stop()
	s.attempt.over()
	return err
}
