package idem_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A spy is a Base that watches what holds for every row: bodies of answers are
// closed, and no 422 is followed by another attempt of the same call.
type spy struct {
	next http.RoundTripper

	mu     sync.Mutex
	open   int
	heads  []http.Header // of each attempt, as it reaches the Base
	got422 map[string]bool
	again  []string // URLs sent again after a 422
	may422 bool     // the contract says that a 422 may be sent again
}

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	id := r.Method + " " + r.URL.String()
	s.mu.Lock()
	s.heads = append(s.heads, r.Header.Clone())
	if s.got422[id] {
		s.again = append(s.again, id)
	}
	s.mu.Unlock()
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got422[id] = s.got422[id] || resp.StatusCode == http.StatusUnprocessableEntity
	if resp.Body != http.NoBody {
		s.open++
		resp.Body = &spied{ReadCloser: resp.Body, spy: s}
	}
	return resp, nil
}

type spied struct {
	io.ReadCloser
	spy  *spy
	once sync.Once
}

func (b *spied) Close() error {
	b.once.Do(func() {
		b.spy.mu.Lock()
		b.spy.open--
		b.spy.mu.Unlock()
	})
	return b.ReadCloser.Close()
}

// row runs one case in virtual time, over a rig whose Base is watched, and
// checks afterwards what holds for every case. The bubble itself fails if a
// goroutine is left.
func row(t *testing.T, f func(t *testing.T, r *rig), steps ...step) {
	t.Helper()
	mixedRow(t, func(t *testing.T, r *rig) {
		f(t, r)
		r.oneKey()
	}, steps...)
}

// mixedRow is row for cases whose hits do not all belong to one Intent.
func mixedRow(t *testing.T, f func(t *testing.T, r *rig), steps ...step) {
	t.Helper()
	bubble(t, func(t *testing.T, r *rig) {
		s := &spy{next: r.base, got422: map[string]bool{}}
		r.transport.Base = s
		f(t, r)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Zero(t, s.open, "bodies of answers that were not closed")
		if !s.may422 {
			assert.Empty(t, s.again, "sent again after a 422")
		}
	}, steps...)
}

// watching is the spy of a row.
func (r *rig) watching() *spy { return r.transport.Base.(*spy) }

// caller is an idem.Client over the rig's Transport.
func (r *rig) caller(t testing.TB) *idem.Client {
	t.Helper()
	c, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
	require.NoError(t, err)
	return c
}

// restarted gives the rig the Transport of a process that has just begun.
func (r *rig) restarted() {
	old := r.transport
	r.transport = &idem.Transport{
		Base: old.Base, Contract: old.Contract, MaxAttempts: old.MaxAttempts,
		Backoff: old.Backoff, AttemptTimeout: old.AttemptTimeout,
	}
}

// newRequest is a request of one of in (nil: without an Intent), with header pairs.
func newRequest(t testing.TB, in *idem.Intent, method, url, body string, pairs ...string) *http.Request {
	t.Helper()
	ctx := context.Background()
	if in != nil {
		ctx = idem.WithIntent(ctx, in)
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, reader)
	require.NoError(t, err)
	for i := 0; i < len(pairs); i += 2 {
		req.Header[pairs[i]] = append(req.Header[pairs[i]], pairs[i+1]) // the map key as it is
	}
	return req
}

// execThen does the work, once a key, and goes on with another step.
func execThen(then step) step {
	return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		s.exec(h)
		then(s, w, r, h)
	}
}

// hold keeps the request for d, or until the client leaves, and answers 201.
func hold(d time.Duration) step {
	return func(s *server, w http.ResponseWriter, r *http.Request, h hit) {
		select {
		case <-time.After(d):
			created(s, w, r, h)
		case <-r.Context().Done():
		}
	}
}

// attempts is a list that fills up while calls are made.
type attempts struct {
	mu   sync.Mutex
	list []idem.Attempt
}

// attempts collects what OnAttempt is told.
func (r *rig) attempts() *attempts {
	a := &attempts{}
	r.transport.OnAttempt = func(_ context.Context, made idem.Attempt) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list = append(a.list, made)
	}
	return a
}

func (a *attempts) all() []idem.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]idem.Attempt(nil), a.list...)
}

// written records the bytes that leave on the rig's connections.
type written struct {
	mu    sync.Mutex
	bytes []byte
}

func (r *rig) written() *written {
	w := &written{}
	dial := r.base.DialContext
	r.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tapped{c, w}, nil
	}
	return w
}

type tapped struct {
	net.Conn
	to *written
}

func (c *tapped) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.bytes = append(c.to.bytes, p...)
	c.to.mu.Unlock()
	return c.Conn.Write(p)
}

// lines returns the raw header lines whose name contains part, of any case.
func (w *written) lines(part string) (found []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.SplitSeq(string(w.bytes), "\r\n") {
		name, _, ok := strings.Cut(line, ":")
		if ok && strings.Contains(strings.ToLower(name), strings.ToLower(part)) {
			found = append(found, line)
		}
	}
	return found
}

// problem is the JSON body of an answer with a code.
func problem(code string) string { return `{"code":"` + code + `","message":"m"}` }

var asJSON = []string{"Content-Type", "application/json"}

// coded answers with a status and a code in a JSON body.
func coded(status int, code string, pairs ...string) step {
	return statusBody(status, problem(code), append(append([]string(nil), asJSON...), pairs...)...)
}

// codes is a contract in which codes tell the answers 409 apart and a bare one
// is final.
func codes() contract.Contract {
	return contract.Contract{Answers: []contract.Match{
		{Status: http.StatusConflict, Path: "code", Value: "in_progress", Means: contract.InProgress},
		{Status: http.StatusConflict, Path: "code", Value: "key_reused", Means: contract.Mismatch},
		{Status: http.StatusBadRequest, Path: "code", Value: "IdempotentParameterMismatch", Means: contract.Mismatch},
		{Status: http.StatusConflict, Means: contract.Final},
		{Status: http.StatusUnprocessableEntity, Means: contract.Mismatch},
	}}
}

// writtenDown carries an Intent over as another process would find it.
func writtenDown(t testing.TB, data []byte) *idem.Intent {
	t.Helper()
	in := new(idem.Intent)
	require.NoError(t, json.Unmarshal(data, in))
	return in
}

// toJSON is v as JSON.
func toJSON(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}
