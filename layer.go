package idem

import (
	"errors"
	"net/http"
)

// A Layer wraps one whole call: the request as it is frozen, with its key, on
// the way in, and the final response or error on the way out. It may answer
// without calling next, and calls it at most once. It may change the context and
// the headers of the request that it passes on, but not its method, URL, body
// or key. When the context that it passes on ends, the call ends with its cause.
// next returns a response or an *Error, never both. A Layer with a store may return
// an *Error of its own, whose Outcome the Intent takes over: OutcomeUnknown if
// others may have sent, Answered if the store knows that there is an answer.
// The body is read with GetBody. A hop of a redirect comes through the Layer
// again, with Request.Response set; it is the same request.
type Layer func(next http.RoundTripper) http.RoundTripper

// roundTripper makes an http.RoundTripper of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// throughLayers makes the call and brings what the layers return into form.
func (c *call) throughLayers(next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(&c.req)
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, c.layersError(err)
	case resp == nil:
		return nil, c.layersError(errors.New("idem: a Layer returned neither a response nor an error"))
	}
	if resp.Body == nil {
		resp.Body = http.NoBody // as http.RoundTripper asks
	}
	if c.layered == nil { // next was not called: it is from the layer's own store
		c.fromStore(resp)
	}
	return resp, nil
}

// layersError brings the error of a layer into form. The loop's own passes. What
// another *Error says of the outcome is what the layer's store knows.
func (c *call) layersError(err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case ok && e == c.failed:
		return err
	case ok:
		switch e.Outcome {
		case OutcomeUnknown:
			c.book.disown()
		case Answered:
			c.book.settle(e.Status)
		}
		c.verdict.reason, c.ended.err = e.Reason, e.Last
		if e.Header != nil {
			c.ended.header = e.Header
		}
	default:
		c.verdict.reason = err
	}
	return c.failure()
}

// fromStore takes the answer of a layer that did not send: a decision that it has
// kept. What would decide nothing if it came from the server does not either.
func (c *call) fromStore(resp *http.Response) {
	k := &c.settings.contract
	c.ended = ended{how: answered, status: resp.StatusCode, header: resp.Header}
	var prefix []byte
	if k.Peeks(resp.StatusCode) && resp.Body != nil {
		prefix, _ = peek(resp) // the caller meets the same error
	}
	c.ended.means = k.Classify(resp.StatusCode, resp.Header, prefix)
	switch answerOf(k, c.ended) {
	case settled, decided:
		c.book.settle(resp.StatusCode)
	default:
		c.book.disown()
	}
	c.ended.replay = Replayed
}
