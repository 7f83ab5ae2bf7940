package idem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem/contract"
)

// Config is what a [Client] is made of.
type Config struct {
	// BaseURL is scheme, host and, if need be, the path under which the API
	// lives: "https://api.example.com/v1". Required; no query, no fragment.
	BaseURL string
	// Header is sent with every request, such as an API version; nil: nothing.
	// The key does not belong here.
	Header http.Header
	// Transport sends; nil: &Transport{}. It may be shared between Clients.
	Transport *Transport

	_ [0]func() // forbids comparison and literals without field names
}

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

// NewClient returns a Client. It checks everything and returns all faults at
// once; it copies cfg.
func NewClient(cfg Config) (*Client, error) {
	transport := cfg.Transport
	if transport == nil {
		transport = &Transport{}
	}
	base, err := parseBase(cfg.BaseURL)
	faults := []error{err}
	resolved, err := transport.settings()
	faults = append(faults, err)
	for name, values := range cfg.Header {
		if strings.EqualFold(name, resolved.contract.Header) {
			faults = append(faults, fmt.Errorf("idem: Config.Header holds %s: one key for all requests is the wrong way round", name))
		}
		if !isToken(name) || slices.ContainsFunc(values, isNoFieldValue) {
			faults = append(faults, fmt.Errorf("idem: Config.Header: %q is no valid header", name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Client{
		base: base, header: cfg.Header.Clone(), timeout: resolved.attemptTimeout,
		http: &http.Client{Transport: transport, CheckRedirect: checkRedirect(resolved.contract)},
	}, nil
}

// isToken reports whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		alnum := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isNoFieldValue reports whether v cannot be the value of a header (RFC 9110, 5.5).
func isNoFieldValue(v string) bool {
	return strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("idem: Config.BaseURL is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("idem: Config.BaseURL needs http or https and a host")
	case u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return nil, errors.New("idem: Config.BaseURL must have no query and no fragment")
	}
	return u, nil
}

// checkRedirect does not follow 301, 302 and 303 from a write with a key: they
// turn it into a GET, whose answer is not that of the write.
func checkRedirect(k contract.Contract) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("idem: stopped after 10 redirects")
		}
		if first := methodOf(via[0]); k.Keys(first) && methodOf(req) != first {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// Call sends body as JSON and reads the answer's JSON into out, in as many
// attempts as it takes. path begins with a slash, may have a query, and is put
// behind BaseURL. A nil body sends none; a nil out reads none.
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
	if err != nil {
		return refusal(err)
	}
	resp, err := c.Do(in, req)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			return e.Result, e
		}
		return refusal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	res := ResultOf(resp)
	made := callOf(resp.Request.Context())
	text := &patientReader{body: resp.Body, timeout: c.timeout}
	if made.succeeded() {
		if err := decode(resp, text, out); err != nil {
			return res, &Error{Result: res, Last: err, Header: resp.Header}
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

// refusal is the error of a request that could not be built.
func refusal(err error) (Result, error) {
	res := Result{Outcome: NotExecuted}
	return res, &Error{Result: res, Reason: err}
}

// A patientReader reads a body that Call could not read inside the attempt, and
// waits for each piece of it as long as an attempt may take.
type patientReader struct {
	body    io.ReadCloser
	timeout time.Duration // negative: without end
}

func (p *patientReader) Read(b []byte) (int, error) {
	if _, here := p.body.(*memory); here || p.timeout <= 0 {
		return p.body.Read(b)
	}
	late := make(chan struct{})
	timer := time.AfterFunc(p.timeout, func() {
		close(late)
		_ = p.body.Close()
	})
	n, err := p.body.Read(b)
	if !timer.Stop() && err != nil {
		<-late
		err = attemptTimeoutError(p.timeout)
	}
	return n, err
}

// decode reads JSON into out. An answer without a body leaves out as it is.
func decode(resp *http.Response, body io.Reader, out any) error {
	if out == nil || resp.StatusCode == http.StatusNoContent || resp.ContentLength == 0 {
		return nil
	}
	dec := json.NewDecoder(body)
	switch err := dec.Decode(out); {
	case errors.Is(err, io.EOF): // no value has begun
		return nil
	case err != nil:
		return fmt.Errorf("idem: the answer does not decode: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("idem: the answer has more than one JSON value")
	}
	return nil
}

// request builds the request for Call.
func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	if c.base == nil {
		return nil, errors.New("idem: this Client was not made by NewClient")
	}
	if ctx == nil {
		return nil, errors.New("idem: the context is nil")
	}
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("idem: the path must begin with a slash (is it swapped with the method?)")
	}
	ref, err := url.Parse(path)
	if err != nil || ref.Host != "" || ref.User != nil || ref.Fragment != "" {
		return nil, errors.New("idem: the path is not one")
	}
	u := c.base.JoinPath()
	u.Path = strings.TrimSuffix(c.base.Path, "/") + ref.Path
	u.RawPath = strings.TrimSuffix(c.base.EscapedPath(), "/") + ref.EscapedPath()
	u.RawQuery = ref.RawQuery
	var reader io.Reader // stays nil without a body, which is not the same as an empty one
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("idem: the body does not encode: %w", err)
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil || method == "" {
		return nil, errors.New("idem: the method or the URL is not valid")
	}
	for name, values := range c.header {
		req.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, application/problem+json")
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
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
		_, err = refusal(err)
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
