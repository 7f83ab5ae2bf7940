package idem

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idem-go/idem/contract"
)

// A Client calls a JSON API with the Intent as a parameter, so that it cannot be
// forgotten, and with every answer that is not 2xx as an error. Make it with
// NewClient; the zero Client returns an error from every call. It is safe for
// concurrent use and cannot be changed.
type Client struct {
	base    *url.URL
	header  http.Header
	http    *http.Client
	timeout time.Duration // of an attempt; negative: none
}

// Call sends body as JSON and reads the answer's JSON into out, in as many
// attempts as it takes and the Transport allows. path begins with a slash, may
// have a query, and is put behind BaseURL. A nil body sends none; a nil out reads
// none. What is encoded already goes in and out as a json.RawMessage.
//
// in is the Intent that the request belongs to; it may be nil only for GET, HEAD,
// OPTIONS and TRACE (else ErrNoIntent).
//
// Every error is an [*Error]: an answer that is not 2xx, one that cannot be read,
// no answer, or a refusal before anything was sent. The Result is filled in
// every case; see Error for the switch to write. An answer that the contract
// knows as "done before" is no error, whatever its status: Result.Replay is
// Replayed, and out is read from what it holds.
func (c *Client) Call(ctx context.Context, in *Intent, method, path string, body, out any) (Result, error) {
	req, err := c.request(ctx, method, path, body)
	if err == nil && out != nil && !isTarget(out) {
		err = errors.New("idem: out is not a pointer to a value, or nil inside, so that the answer would be lost")
	}
	if err != nil {
		return refusal(in, err)
	}
	resp, err := c.Do(in, req)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Result, e
		}
		return refusal(in, err)
	}
	defer func() { _ = resp.Body.Close() }()
	res := ResultOf(resp)
	made := callOf(resp.Request.Context())
	text := &patientReader{body: resp.Body, timeout: c.timeout}
	if made.succeeded() {
		if err := decode(resp, text, out); err != nil {
			return res, &Error{Result: res, Last: err, Header: resp.Header, Body: text.soFar()}
		}
		return res, nil
	}
	data, err := io.ReadAll(io.LimitReader(text, maxErrorBody))
	e := &Error{
		Result: res, Reason: made.verdict.reason, Last: err,
		Header: resp.Header, Body: data, Problem: parseProblem(resp.Header, data),
	}
	if err == nil && made.ended.means == contract.InProgress {
		e.Last = ErrInProgress
	}
	return res, e
}

// refusal is the error of a request of in that could not be built. It may be the
// one that the Intent is bound to, for all that is known.
func refusal(in *Intent, err error) (Result, error) {
	res := Result{Outcome: NotExecuted}
	if in.usable() == nil && !in.book.untouched() {
		res.Outcome, res.Status = in.book.state(0)
	}
	return res, &Error{Result: res, Reason: err}
}

// Do sends r as one of in, as http.Client.Do does: an answer of any status is no
// error, and the caller closes its body. ResultOf gives the Result. Every error
// is an [*Error]. in may be nil only for GET, HEAD, OPTIONS and TRACE. Do does not
// use BaseURL and Header.
func (c *Client) Do(in *Intent, r *http.Request) (*http.Response, error) {
	var err error
	switch {
	case c.http == nil:
		err = errors.New("idem: this Client was not made by NewClient")
	case r == nil:
		err = errors.New("idem: the request is nil")
	}
	if err != nil {
		if r != nil && r.Body != nil {
			_ = r.Body.Close()
		}
		_, err = refusal(in, err)
		return nil, err
	}
	rec := &recorder{Context: r.Context(), in: in, intended: in != nil || !isSafe(methodOf(r))}
	resp, err := c.http.Do(r.WithContext(rec))
	if err == nil {
		return resp, nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return nil, e // without the *url.Error around it, which shows the whole URL
	}
	return nil, rec.failure(err)
}

// A recorder is the context of one Client.Do: it carries the Intent, a nil one
// too where one is needed, and learns of the last call that the Transport made.
type recorder struct {
	opaque
	context.Context
	in       *Intent
	intended bool
	last     *call
}

type recorderKey struct{}

// recorderOf returns the recorder of the Client.Do that a request with this
// context is sent by; nil: none, or the request is another that a layer makes in
// the course of that one's call.
func recorderOf(ctx context.Context) *recorder {
	rec, _ := ctx.Value(recorderKey{}).(*recorder)
	if within := callOf(ctx); rec != nil && within != nil && within.Value(recorderKey{}) == any(rec) {
		return nil
	}
	return rec
}

func (rec *recorder) Value(key any) any {
	switch {
	case key == (recorderKey{}):
		return rec
	case key == (intentKey{}) && rec.intended:
		return rec.in
	}
	return rec.Context.Value(key)
}

// failure is the error of what http.Client itself did not like: a request that
// never reached the Transport, or a redirect.
func (rec *recorder) failure(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") {
		err = errors.New("idem: the redirect's Location is not a URL") // the text holds all of it
	}
	e := &Error{Result: Result{Outcome: NotExecuted}, Reason: err}
	if rec.last != nil {
		e.Result, e.Header = rec.last.result(), rec.last.ended.header
	}
	return e
}

// HTTP returns the http.Client below, for generated clients: there the Intent
// travels in the context (see WithIntent). It follows no 301, 302 or 303 from a
// write with a key. Do not set its Timeout, which replaces errors and so loses
// *Error; use a context.
func (c *Client) HTTP() *http.Client { return c.http }
