package peers

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/google/uuid"
)

// floor is the least code that does on the wire what idem does: one key for all
// attempts, minted if the caller gives none; a limit of time for each attempt; a
// count of what is sent; the answer read inside the attempt. It refuses nothing,
// knows no outcome and tells the caller nothing. What idem costs above it is the
// price of the guards and of the truth.
type floor struct {
	base     http.RoundTripper
	attempts int
	wait     time.Duration
	without  concession
}

// A concession is something that the floor can do without, to see what it costs.
type concession uint8

const (
	nothing concession = iota
	theLimit
	theCount
	theReading // only over a stub: the answer's context has ended when the caller reads it
)

func newFloor(without concession) func(Config) Client {
	return func(cfg Config) Client {
		return doer((&http.Client{Transport: floor{cfg.Transport, cfg.Attempts, cfg.Wait, without}}).Do)
	}
}

func (f floor) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.Header[KeyHeader]
	if len(key) == 0 {
		key = []string{uuid.NewString()}
	}
	for attempt := 1; ; attempt++ {
		resp, err := f.attempt(req, key, attempt)
		if attempt == f.attempts || err == nil && !retried(resp.StatusCode) {
			return resp, err
		}
		if f.wait <= 0 {
			continue
		}
		select {
		case <-time.After(f.wait):
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

func (f floor) attempt(req *http.Request, key []string, number int) (*http.Response, error) {
	ctx := req.Context()
	if f.without != theLimit {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	if f.without != theCount {
		sends := 0
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sends++ }})
	}
	out := req.WithContext(ctx)
	out.Header = maps.Clone(req.Header)
	out.Header[KeyHeader] = key
	if number > 1 {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	resp, err := f.base.RoundTrip(out)
	if err != nil || f.without == theReading {
		return resp, err
	}
	data := make([]byte, max(resp.ContentLength, 0))
	_, err = io.ReadFull(resp.Body, data)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, err
}
