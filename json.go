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
	"reflect"
	"strings"
	"time"
)

// A patientReader reads a body that Call could not read inside the attempt, and
// waits for each piece of it as long as an attempt may take.
type patientReader struct {
	body    io.ReadCloser
	timeout time.Duration // negative: without end
	head    []byte        // of what was read, unless it is in memory
}

func (p *patientReader) Read(b []byte) (int, error) {
	if _, here := p.body.(*memory); here {
		return p.body.Read(b)
	}
	n, err := p.read(b)
	p.head = append(p.head, b[:min(n, maxErrorBody-len(p.head))]...)
	return n, err
}

// soFar returns what was read of the body, as far as an Error keeps it.
func (p *patientReader) soFar() []byte {
	m, here := p.body.(*memory)
	if !here {
		return p.head
	}
	data, _ := io.ReadAll(io.NewSectionReader(m, 0, maxErrorBody)) // it is in memory: it cannot fail
	return data
}

func (p *patientReader) read(b []byte) (int, error) {
	if p.timeout <= 0 {
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

// encode refuses what is JSON already, or is no value: encoding/json would make a
// text in base64 of bytes, and nothing of a reader.
func encode(body any) ([]byte, error) {
	if _, ok := body.(json.Marshaler); !ok {
		switch body.(type) {
		case []byte:
			return nil, errors.New("idem: the body is bytes; if they are JSON, say so with json.RawMessage")
		case io.Reader:
			return nil, errors.New("idem: the body is a reader, and Call encodes values; make a request of it for Do")
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("idem: the body does not encode: %w", err)
	}
	return data, nil
}

// isTarget reports whether decode can write to out. Of a buffer it would fill no
// field.
func isTarget(out any) bool {
	_, decodes := out.(json.Unmarshaler)
	_, writes := out.(io.Writer)
	v := reflect.ValueOf(out)
	return v.Kind() == reflect.Pointer && !v.IsNil() && (decodes || !writes)
}

// decode reads JSON into out. An answer without a body leaves out as it is.
func decode(resp *http.Response, body io.Reader, out any) error {
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	dec := json.NewDecoder(body)
	switch err := dec.Decode(out); {
	case errors.Is(err, io.EOF): // no value has begun
		return nil
	case err != nil:
		return fmt.Errorf("idem: the answer does not decode: %w", err)
	}
	_, err := dec.Token()
	_, malformed := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == io.EOF:
		return nil
	case err == nil || malformed:
		return errors.New("idem: the answer has more than one JSON value")
	}
	return fmt.Errorf("idem: the answer does not end: %w", err)
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
	switch {
	case err != nil:
		return nil, errors.New("idem: the path is not one; escape it with url.PathEscape")
	case ref.Host != "" || ref.User != nil:
		return nil, errors.New("idem: the path has a host; that is BaseURL's")
	case ref.Fragment != "":
		return nil, errors.New("idem: the path has a fragment (#), which is never sent")
	}
	u := c.base.JoinPath()
	u.Path = strings.TrimSuffix(c.base.Path, "/") + ref.Path
	u.RawPath = strings.TrimSuffix(c.base.EscapedPath(), "/") + ref.EscapedPath()
	u.RawQuery = ref.RawQuery
	var reader io.Reader // stays nil without a body, which is not the same as an empty one
	if body != nil {
		data, err := encode(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), reader)
	if err != nil || method == "" {
		return nil, errors.New("idem: the method or the URL is not valid")
	}
	for name, values := range c.header {
		name = http.CanonicalHeaderKey(name)
		req.Header[name] = append(req.Header[name], values...) // it may be there in two spellings
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host // net/http reads it nowhere else
		req.Header.Del("Host")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, application/problem+json")
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
