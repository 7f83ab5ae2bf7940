package idem

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/idem-go/idem/contract"
)

// An attempt is the context of one try, and its clock.
type attempt struct {
	opaque
	context.Context // the call's, until the attempt is cancelled
	cancel          context.CancelCauseFunc
	call            *call
	number          int
	sends           sends
	req             http.Request // what Base gets
	line            [1]string    // the key as its header has it

	mu      sync.Mutex
	timer   *time.Timer // nil: no limit, or the caller's deadline comes first
	fresh   time.Time   // when the attempt was last given its whole time
	clocked bool        // the clock runs
	drained io.Closer   // the body that is read to be thrown away; nil: none yet
	bodyErr error       // of the caller's body
	readers *watched    // of the body, the newest; none of one in memory
	resent  int         // times that net/http asked for the body again
}

func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

func (a *attempt) bodyFailed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bodyErr == nil {
		a.bodyErr = err
	}
}

func (a *attempt) opened(w *watched) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.older, a.readers = a.readers, w
}

// getBody serves net/http when it sends again by itself.
func (a *attempt) getBody() (io.ReadCloser, error) {
	a.mu.Lock()
	a.resent++
	a.mu.Unlock()
	body, err := a.call.body.open(false, a)
	if err != nil {
		a.bodyFailed(err)
	}
	return body, err
}

// roundTrip hands req to Base and returns the response or how the attempt ended
// without one, and the number of sends.
func (a *attempt) roundTrip(req *http.Request) (*http.Response, ended, int) {
	c := a.call
	defer a.closeUntraced()
	body, err := c.body.open(a == &c.first, a)
	if err != nil {
		return nil, ended{how: bodyFailed, err: err}, 0
	}
	req.Body = body
	if !c.body.once && c.body.kind != noBody {
		req.GetBody = a.getBody
	} else {
		req.GetBody = nil
	}
	if !c.body.inMem() && c.body.kind != noBody {
		// Base may wait for a reader that waits for more. Closing it is what
		// wakes it (see http.Request.Body).
		defer context.AfterFunc(a.Context, a.abandonBodies)()
	}
	resp, err := c.settings.base.RoundTrip(req)
	if err != nil && resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
		resp = nil
	}
	if err == nil && resp == nil {
		err = errors.New("idem: Base returned neither a response nor an error")
	}
	a.mu.Lock()
	resent, bodyErr := a.resent, a.bodyErr
	a.mu.Unlock()
	cut := a.Err() != nil
	resendable := c.keyed() && (body == nil || body == http.NoBody)
	sent := a.sends.seal(cut, err == nil, resent, err != nil && !cut && resent == 0 && !a.touched(body) && saysUnsent(err, resendable))
	if err == nil {
		if resp.Body == nil {
			resp.Body = http.NoBody
		}
		return resp, ended{how: answered, status: resp.StatusCode, header: resp.Header}, sent
	}
	if bodyErr != nil && !cut { // else the reader was woken by us
		if !errors.Is(bodyErr, ErrNotRepeatable) {
			bodyErr = &bodyError{bodyErr}
		}
		return nil, ended{how: bodyFailed, err: bodyErr}, sent
	}
	return nil, a.failed(err, sent == 0), sent
}

// failed sorts an error of Base or of reading an answer. The caller's context
// comes first: its deadline looks like any timeout.
func (a *attempt) failed(err error, nothingSent bool) ended {
	if done := a.call.done(); done != nil {
		return ended{how: callerDone, err: done}
	}
	if cause := context.Cause(a.Context); cause != nil {
		err = cause // HTTP/2 would report a bare "context canceled"
	}
	switch {
	case isPermanent(err):
		return ended{how: permanent, err: err}
	case nothingSent && refusedUnwritten(err):
		return ended{how: permanent, err: err}
	case nothingSent:
		return ended{how: unsent, err: err}
	default:
		return ended{how: broken, err: err}
	}
}

func isPermanent(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || ownCertificateRefused(err) || refusedLocally(err)
}

// ownCertificateRefused reports whether the server does not take the certificate of
// the client. It is told by an alert, for which crypto/tls has no type.
func ownCertificateRefused(err error) bool {
	const alert = "remote error: tls: "
	return saysAny(err, alert+"certificate required", alert+"bad certificate", alert+"unsupported certificate",
		alert+"revoked certificate", alert+"expired certificate", alert+"unknown certificate")
}

// touched reports whether Base has read anything of body, which it was given.
func (a *attempt) touched(body io.Reader) bool {
	if mem := lenOf(body); mem != nil {
		return int64(mem.Len()) != a.call.body.size
	}
	for w := a.newestReader(); w != nil; w = w.older {
		if w.n.Load() > 0 {
			return true
		}
	}
	return false
}

func lenOf(body io.Reader) interface{ Len() int } {
	if body == nil {
		return nil
	}
	l, _ := unwrapNopCloser(body).(interface{ Len() int })
	return l
}

// closeUntraced closes the body for a Base that shows no trace, which may not be
// net/http and may have forgotten to.
func (a *attempt) closeUntraced() {
	if a.sends.shown() {
		return
	}
	for w := a.newestReader(); w != nil; w = w.older {
		_ = w.Close()
	}
}

// abandonBodies wakes a reader that waits for more of the body.
func (a *attempt) abandonBodies() {
	for w := a.newestReader(); w != nil; w = w.older {
		_ = w.Close()
		if w.original {
			_ = w.source.closeOriginal()
		}
	}
}

func (a *attempt) newestReader() *watched {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.readers
}

// judgeAnswer classifies resp, decides, and reads of its body what has to be
// read inside the attempt. It returns the verdict and how the attempt ended.
func (a *attempt) judgeAnswer(resp *http.Response, e ended) (ended, verdict) {
	c := a.call
	k := &c.settings.contract
	e.replay = replayOf(k, resp.StatusCode, resp.Header)
	var data []byte
	var cut error
	read := false
	whole := c.keyed() && bufferable(resp, c.settings.maxResponse)
	if c.keyed() && k.Peeks(resp.StatusCode) {
		if read = whole; whole {
			data, cut = buffer(resp, c.settings.maxResponse, &c.answer)
		} else {
			data, cut = peek(resp)
		}
	}
	if c.keyed() { // without a key nothing can be in progress under it
		e.means = k.Classify(resp.StatusCode, resp.Header, data)
	}
	if e.means == contract.Done {
		e.replay = Replayed // the work was another send's
	}
	e.advice = k.Advice(resp.StatusCode, resp.Header, data)
	v := c.decide(e)
	if !v.retry && whole && !read {
		data, cut = buffer(resp, c.settings.maxResponse, &c.answer)
	}
	if cut != nil && !v.retry {
		f := a.failed(cut, false)
		e.how, e.err, c.partial = f.how, f.err, data
		v = c.decide(e)
	}
	return e, v
}

func replayOf(k *contract.Contract, status int, header http.Header) Replay {
	switch replayed, known := k.Marked(status, header); {
	case replayed:
		return Replayed
	case known:
		return NotReplayed
	default:
		return ReplayUnknown
	}
}
