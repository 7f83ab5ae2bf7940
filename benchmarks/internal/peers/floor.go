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
	header := maps.Clone(req.Header)
	if len(header[KeyHeader]) == 0 {
		header[KeyHeader] = []string{uuid.NewString()}
	}
	ctx := req.Context()
	if f.without != theCount {
		sends := 0
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sends++ }})
	}
	var l limit
	defer l.end()
	for number := 1; ; number++ {
		if f.without != theLimit {
			l.begin(ctx)
		} else {
			l.ctx = ctx
		}
		out := req.WithContext(l.ctx)
		out.Header = header
		if number > 1 {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			out.Body = body
		}
		resp, err := f.attempt(out)
		if number == f.attempts || err == nil && !retried(resp.StatusCode) {
			return resp, err
		}
		l.pause()
		if err := sleep(req.Context(), f.wait); err != nil {
			return nil, err
		}
	}
}

func (f floor) attempt(out *http.Request) (*http.Response, error) {
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

// A limit is a context that ends when an attempt takes too long. Attempts share
// it until one did.
type limit struct {
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
}

func (l *limit) begin(parent context.Context) {
	if l.timer != nil && l.ctx.Err() == nil {
		l.timer.Reset(timeout)
		return
	}
	l.end()
	l.ctx, l.cancel = context.WithCancel(parent)
	l.timer = time.AfterFunc(timeout, l.cancel)
}

func (l *limit) pause() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *limit) end() {
	if l.timer != nil {
		l.timer.Stop()
		l.cancel()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
