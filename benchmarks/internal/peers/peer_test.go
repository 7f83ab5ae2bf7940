package peers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen notes what arrives below a client.
type seen struct {
	next   http.RoundTripper
	keys   []string
	bodies [][]byte
	header http.Header
}

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.keys = append(s.keys, r.Header.Get(KeyHeader))
	s.bodies = append(s.bodies, body)
	s.header = r.Header
	return s.next.RoundTrip(r)
}

func newSeen(failures int64) *seen { return &seen{next: &Stub{Failures: failures}} }

func (s *seen) client(p Peer) Client {
	return p.New(Config{Transport: s, BaseURL: StubURL, Attempts: 3})
}

var order = Call{URL: StubURL + "/v1/orders", Body: Order(7), Key: "order-7-key"}

// Every client sends the body whole, as JSON, and under the key that it is given;
// it attempts a 503 again with the same, if it is one that attempts again at all.
func TestAttempts(t *testing.T) {
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			below := newSeen(1)
			status, err := below.client(p).Do(t.Context(), order)
			require.NoError(t, err)
			want, attempts := http.StatusCreated, 2
			if p.Name == Bare || p.Name == BareTimeout {
				want, attempts = http.StatusServiceUnavailable, 1
			}
			assert.Equal(t, want, status)
			require.Len(t, below.bodies, attempts)
			for i := range attempts {
				assert.Equal(t, order.Body, below.bodies[i], "attempt %d", i+1)
				assert.Equal(t, order.Key, below.keys[i], "attempt %d", i+1)
			}
			if p.Name != Stripe { // it calls everything under /v1 a form
				assert.Contains(t, below.header.Get("Content-Type"), "json")
			}
		})
	}
}

// Without a key of the caller's each client keeps its own rule.
func TestKeys(t *testing.T) {
	for _, p := range All() {
		t.Run(p.Name, func(t *testing.T) {
			below := newSeen(0)
			client := below.client(p)
			c := order
			c.Key = ""
			for range 2 {
				status, err := client.Do(t.Context(), c)
				require.NoError(t, err)
				assert.Equal(t, http.StatusCreated, status)
			}
			require.Len(t, below.keys, 2)
			if p.Keys != OwnKey {
				assert.Equal(t, []string{"", ""}, below.keys)
				return
			}
			assert.NotEqual(t, below.keys[0], below.keys[1], "a key for each call")
			for _, key := range below.keys {
				assert.GreaterOrEqual(t, len(key), 26)
			}
		})
	}
}

// idem without a key is sent once.
func TestUnkeyedIsNotRepeated(t *testing.T) {
	below := newSeen(1)
	c := order
	c.Key = ""
	status, err := below.client(Named(IdemUnkeyed)).Do(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Len(t, below.keys, 1)
}

// What Open opens is one key for all calls, and an outcome.
func TestKeeper(t *testing.T) {
	for _, name := range []string{Idem, IdemClient} {
		below := newSeen(0)
		client := below.client(Named(name)).(Keeper)
		ctx := client.Open(t.Context())
		assert.Equal(t, idem.NotExecuted, client.Outcome(ctx))
		c := order
		c.Key = ""
		for range 2 {
			_, err := client.Do(ctx, c)
			require.NoError(t, err)
		}
		assert.Equal(t, below.keys[0], below.keys[1])
		assert.NotEmpty(t, below.keys[0])
		assert.Equal(t, idem.Answered, client.Outcome(ctx))
	}
}

// A client takes a stream, or says that it does not; what it takes arrives whole.
func TestStreams(t *testing.T) {
	stream := func() io.Reader { return io.MultiReader(bytes.NewReader(order.Body)) }
	length := int64(len(order.Body))
	taken := map[string]int{}
	for form, c := range map[string]Call{
		"GetBody": {Stream: stream, Length: length, Again: true},
		"known":   {Stream: stream, Length: length},
		"unknown": {Stream: stream},
	} {
		for _, p := range Of("D") {
			below := newSeen(0)
			c.URL, c.Key = order.URL, order.Key
			_, err := below.client(p).Do(t.Context(), c)
			if errors.Is(err, ErrNoSuchBody) {
				continue
			}
			taken[form]++
			if len(below.bodies) == 0 { // resty 3 and aws want to seek
				assert.Error(t, err, "%s, %s", p.Name, form)
				continue
			}
			assert.NoError(t, err, "%s, %s", p.Name, form)
			assert.Equal(t, order.Body, below.bodies[0], "%s, %s", p.Name, form)
		}
	}
	assert.Equal(t, map[string]int{"GetBody": 7, "known": 6, "unknown": 11}, taken)
}

// The clients report the error of a call that never succeeds.
func TestGivingUp(t *testing.T) {
	lost := errors.New("lost")
	for _, p := range All() {
		stub := &Stub{Failures: 1 << 30, Err: lost}
		client := p.New(Config{Transport: stub, BaseURL: StubURL, Attempts: 3})
		_, err := client.Do(context.Background(), order)
		assert.Error(t, err, p.Name)
		assert.LessOrEqual(t, stub.Calls(), int64(3), p.Name)
	}
}

func TestOrder(t *testing.T) {
	assert.Len(t, Order(1), 512)
	assert.NotEqual(t, Order(1), Order(2))
	assert.Contains(t, string(Order(3)), OrderID(3))
}
