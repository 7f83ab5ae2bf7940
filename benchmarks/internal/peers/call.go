package peers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// KeyHeader is the header that carries the key, in canonical form.
const KeyHeader = "Idempotency-Key"

// A Call is one POST of JSON.
type Call struct {
	URL  string
	Body []byte // in memory; nil: only Stream has it
	Key  string // goes out in KeyHeader; empty: the caller gives none

	Stream func() io.Reader // gives the body from its start, to clients that take a reader; nil: Body is all there is
	Length int64            // of the stream; zero: not known
	Again  bool             // the request gets a GetBody
}

// Order returns a body of 512 bytes for the order of that number.
func Order(number int) []byte {
	const size = 512
	head := fmt.Sprintf(`{"order":"%s","amount":1999,"currency":"eur","note":"`, OrderID(number))
	return []byte(head + strings.Repeat("x", size-len(head)-2) + `"}`)
}

// OrderID returns the name of an order.
func OrderID(number int) string { return fmt.Sprintf("o-%08d", number) }

// request returns the call as net/http has it.
func (c Call) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, c.reader())
	if err != nil {
		return nil, err
	}
	if c.Length > 0 {
		req.ContentLength = c.Length
	}
	if c.Again {
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(c.Stream()), nil }
	}
	setHeaders(req.Header, c.Key)
	return req, nil
}

// reader returns the body, once.
func (c Call) reader() io.Reader {
	if c.Body != nil {
		return bytes.NewReader(c.Body)
	}
	return c.Stream()
}

// plain reports whether the body says no more of itself than a reader does, for
// clients that cannot be told its length or how to open it again.
func (c Call) plain() bool { return c.Length == 0 && !c.Again }

func setHeaders(h http.Header, key string) {
	h.Set("Content-Type", "application/json")
	if key != "" {
		h.Set(KeyHeader, key)
	}
}

// finish reads the answer to its end.
func finish(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, err
}
