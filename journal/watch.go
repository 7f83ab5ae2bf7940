package journal

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// watch returns the context of a call that holds the lease: it ends with the
// key's window, and when the lease is lost. The lease is extended until end is
// called, which may happen more than once.
func (c *claim) watch(parent context.Context, deadline time.Time) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(parent)
	release := func() {}
	if !deadline.IsZero() {
		ctx, release = context.WithDeadlineCause(ctx, deadline, because(idem.ErrExpired, "%v", c.ref))
	}
	w := &watcher{claim: c, ctx: ctx, cancel: cancel}
	w.mu.Lock()
	w.timer = time.AfterFunc(c.j.set.lease/3, w.beat)
	w.mu.Unlock()
	return ctx, func() { w.stop(); release(); cancel(nil) }
}

// A watcher extends a lease while a call is under way.
type watcher struct {
	claim  *claim
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex // held during a beat, so that none outlives the call
	timer *time.Timer
	over  bool
}

func (w *watcher) stop() {
	w.cancel(nil) // wakes a beat that waits for the database
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// beat extends the lease. A database that cannot be asked is asked again soon; if
// that goes on until the lease is over, another may have the Intent.
func (w *watcher) beat() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.ctx.Err() != nil {
		return
	}
	c := w.claim
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil || !c.held {
		return // another call of this claim has ended it
	}
	asked, lease := time.Now(), c.j.set.lease
	ok, err := c.write(w.ctx, false, c.j.q.extend, lease.Milliseconds())
	wait := lease / 3
	switch {
	case err == nil && ok:
		c.ends = asked.Add(lease)
	case err != nil && c.mine():
		wait = min(lease/10, time.Until(c.ends))
	case w.ctx.Err() == nil:
		w.cancel(because(ErrLeaseLost, "%v", c.ref))
		return
	}
	w.timer.Reset(max(wait, time.Millisecond))
}

// readBody reads the body of an answer that is to be stored, and puts it back. It
// returns nothing if the body is too long, a stream, or cannot be read. end is
// called when nothing more of the answer can come.
func (c *claim) readBody(resp *http.Response, end func()) [][]byte {
	most := c.j.set.keep.most
	stream := resp.StatusCode == http.StatusSwitchingProtocols || resp.ContentLength > most ||
		resp.ContentLength < 0 && !contract.IsJSON(resp.Header) ||
		strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream")
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if most < 0 || stream {
		onClose(resp, resp.Body, end)
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil || int64(len(data)) > most {
		onClose(resp, io.MultiReader(bytes.NewReader(data), errReader{err}, resp.Body), end)
		return nil
	}
	_ = resp.Body.Close()
	end()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return [][]byte{data}
}

// errReader gives its error, or nothing.
type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

// onClose lets reader be read in the place of resp's body, whose Close also calls
// end. An upgraded connection keeps its writer.
func onClose(resp *http.Response, reader io.Reader, end func()) {
	body := &streamed{Reader: reader, body: resp.Body, end: end}
	if w, ok := resp.Body.(io.Writer); ok {
		resp.Body = struct {
			*streamed
			io.Writer
		}{body, w}
		return
	}
	resp.Body = body
}

type streamed struct {
	io.Reader
	body io.Closer
	end  func()
}

func (s *streamed) Close() error {
	err := s.body.Close()
	s.end()
	return err
}
