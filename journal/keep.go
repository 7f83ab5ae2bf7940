package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem/contract"
)

// A Sealer encrypts what is stored of requests and answers. Both methods may be
// called by several goroutines. ref is not secret: bind it to the bytes (as
// additional data of an AEAD), so that what was moved to another row does not
// open. An error of Seal keeps the request from being sent.
type Sealer interface {
	Seal(ctx context.Context, ref Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref Ref, sealed []byte) ([]byte, error)
}

// keeper turns requests and answers into the bytes that are stored and back: a
// byte that says whether they are sealed, a line of JSON for the head, the body
// as it is.
type keeper struct {
	seal     Sealer
	most     int64
	headers  []string // canonical names of those that are kept
	unstored string   // the key header, which the row has already
}

const (
	asIs   = 'p'
	sealed = 's'
)

// kept are the headers worth keeping that hold no credentials. What is not
// named here, or in Config.Headers, is not stored.
func kept() []string {
	return []string{
		"Accept", "Accept-Language", "Content-Encoding", "Content-Language", "Content-Type", "User-Agent", "Prefer",
		"If-Match", "If-None-Match", "If-Unmodified-Since", // without its condition a write is another one
		"Stripe-Account", "Stripe-Context", "Stripe-Version", // without them it goes to another account
		"Date", "Etag", "Last-Modified", "Link", "Location", "Request-Id", "X-Request-Id", "Original-Request", "Traceparent",
	}
}

func newKeeper(cfg Config, k contract.Contract) keeper {
	names := slices.Concat(kept(), cfg.Headers)
	for _, m := range k.Replayed { // an answer from the row is a replay, and says so
		names = append(names, m.Header, m.DiffersFrom)
	}
	for i := range names {
		names[i] = textproto.CanonicalMIMEHeaderKey(names[i])
	}
	// One less than the most there is: a reader's limit is one more than most.
	most := min(cmp.Or(cfg.MaxBody, 1<<20), math.MaxInt64-1)
	keep := keeper{seal: cfg.Seal, most: most, headers: names}
	if k.Place == contract.InHeader {
		keep.unstored = textproto.CanonicalMIMEHeaderKey(k.Header)
	}
	return keep
}

// isCredential reports whether a header of this name may hold credentials.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"auth", "cookie", "token", "secret", "password", "api-key", "apikey", "signature", "credential"},
		func(part string) bool { return strings.Contains(name, part) })
}

// requestHead is the head of a stored request, and answerHead that of an answer.
type (
	requestHead struct {
		Method string             `json:"method"`
		URL    exact              `json:"url"`
		Host   string             `json:"host,omitempty"` // where it is not the URL's
		Header map[string][]exact `json:"header"`
	}
	answerHead struct {
		Status int                `json:"status"`
		Header map[string][]exact `json:"header"`
	}
)

// exact is a string of which JSON keeps every byte. A query and the value of a
// header need not be UTF-8, and another query would be another request.
type exact string

// MarshalJSON writes a string, or where that would change it a list of its bytes
// in base64.
func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal([][]byte{[]byte(e)})
}

// UnmarshalJSON reads both.
func (e *exact) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(e))
	}
	var parts [][]byte
	err := json.Unmarshal(data, &parts)
	*e = exact(bytes.Join(parts, nil))
	return err
}

// request returns the bytes of a request whose body can be read again, or nil if
// it is too long to be stored.
func (k keeper) request(ctx context.Context, ref Ref, r *http.Request) ([]byte, error) {
	hasBody := r.Body != nil && r.Body != http.NoBody
	if k.most < 0 || r.ContentLength > k.most || hasBody && r.GetBody == nil {
		return nil, nil
	}
	var body []byte
	if hasBody {
		reader, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer func() { _ = reader.Close() }()
		if body, err = io.ReadAll(io.LimitReader(reader, k.most+1)); err != nil {
			return nil, err
		}
	}
	if int64(len(body)) > k.most {
		return nil, nil
	}
	u := *r.URL
	u.User = nil // credentials
	head := requestHead{Method: r.Method, URL: exact(u.String()), Header: k.filter(r.Header)}
	if r.Host != r.URL.Host {
		head.Host = r.Host
	}
	return k.pack(ctx, ref, head, body)
}

// stored makes a request of its stored bytes. Credentials are not in them: a
// transport below has to sign.
func (k keeper) stored(ctx context.Context, ref Ref, data []byte) (*http.Request, error) {
	var head requestHead
	body, err := k.unpack(ctx, ref, data, &head)
	if err != nil {
		return nil, err
	}
	if _, err := url.Parse(string(head.URL)); err != nil {
		return nil, errors.New("journal: the stored request has no valid URL")
	}
	r, err := http.NewRequestWithContext(ctx, head.Method, string(head.URL), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("journal: the stored request is not valid")
	}
	if len(body) == 0 {
		r.Body, r.GetBody = nil, nil
	}
	r.Header = headerOf(head.Header)
	r.Host = cmp.Or(head.Host, r.Host)
	return r, nil
}

// answer returns the bytes of an answer.
func (k keeper) answer(ctx context.Context, ref Ref, status int, header http.Header, body []byte) ([]byte, error) {
	return k.pack(ctx, ref, answerHead{Status: status, Header: k.filter(header)}, body)
}

// answered makes a response of the stored bytes of an answer.
func (k keeper) answered(ctx context.Context, ref Ref, data []byte) (*http.Response, error) {
	var head answerHead
	body, err := k.unpack(ctx, ref, data, &head)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", head.Status, http.StatusText(head.Status)), StatusCode: head.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: headerOf(head.Header),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (k keeper) filter(h http.Header) map[string][]exact {
	out := map[string][]exact{}
	for name, values := range h {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if name != k.unstored && slices.Contains(k.headers, name) {
			list := make([]exact, len(values))
			for i, v := range values {
				list[i] = exact(v)
			}
			out[name] = list
		}
	}
	return out
}

func headerOf(stored map[string][]exact) http.Header {
	h := make(http.Header, len(stored))
	for name, list := range stored {
		for _, v := range list {
			h[name] = append(h[name], string(v))
		}
	}
	return h
}

func (k keeper) pack(ctx context.Context, ref Ref, head any, body []byte) ([]byte, error) {
	line, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("journal: the head does not encode: %w", err)
	}
	plain := slices.Concat([]byte{asIs}, line, []byte{'\n'}, body)
	if k.seal == nil {
		return plain, nil
	}
	box, err := k.seal.Seal(ctx, ref, plain[1:])
	if err != nil {
		return nil, fmt.Errorf("journal: the Sealer failed: %w", err)
	}
	return slices.Concat([]byte{sealed}, box), nil
}

func (k keeper) unpack(ctx context.Context, ref Ref, data []byte, head any) (body []byte, err error) {
	if len(data) == 0 {
		return nil, errors.New("journal: nothing is stored")
	}
	plain := data[1:]
	switch {
	case data[0] == sealed && k.seal == nil:
		return nil, errors.New("journal: the stored bytes are sealed, and Config.Seal is nil")
	case data[0] == sealed:
		if plain, err = k.seal.Open(ctx, ref, plain); err != nil {
			return nil, fmt.Errorf("journal: the Sealer failed: %w", err)
		}
	case data[0] != asIs:
		return nil, errors.New("journal: the stored bytes are of a version that is not known")
	}
	line, body, found := bytes.Cut(plain, []byte{'\n'})
	if !found || json.Unmarshal(line, head) != nil {
		return nil, errors.New("journal: the stored bytes are damaged")
	}
	return body, nil
}
