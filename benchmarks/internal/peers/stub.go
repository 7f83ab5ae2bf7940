package peers

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Created is the body of an answer that is good.
const Created = `{"id":"ord_1","object":"order"}`

// StubURL is where calls over a Stub go.
const StubURL = "http://127.0.0.1:9"

// A Stub is a transport without a network. It reads each request's body to its
// end and closes it, as a transport does, then answers. It is safe for concurrent
// use; its fields are set before.
type Stub struct {
	Failures int64               // this many of each Failures + 1 requests are answered with 503, the last with 201
	Header   http.Header         // of each 503
	Err      error               // instead of each 503; nil: none
	Look     func(*http.Request) // sees each request when its body is read; nil: nobody does

	down  atomic.Bool
	calls atomic.Int64
}

// Calls returns the number of requests so far.
func (s *Stub) Calls() int64 { return s.calls.Load() }

// Down makes it answer everything with 503 from now on.
func (s *Stub) Down() { s.down.Store(true) }

// Begin makes the next request the first again.
func (s *Stub) Begin() { s.calls.Store(0) }

// RoundTrip answers.
func (s *Stub) RoundTrip(req *http.Request) (*http.Response, error) {
	n := s.calls.Add(1)
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	if s.Look != nil {
		s.Look(req)
	}
	failing := s.down.Load() || n%(s.Failures+1) != 0
	if failing && s.Err != nil {
		return nil, s.Err
	}
	if failing {
		header := s.Header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header["Content-Type"] = []string{"text/plain"}
		return answer(req, http.StatusServiceUnavailable, header, "unavailable"), nil
	}
	return answer(req, http.StatusCreated, http.Header{"Content-Type": {"application/json"}}, Created), nil
}

func answer(req *http.Request, status int, header http.Header, body string) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(body)), Request: req,
		Body: io.NopCloser(strings.NewReader(body)),
	}
}
