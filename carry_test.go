package idem_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A read that is redirected is one request to its caller, and about itself: a
// redirect has no effect whose outcome could be unknown.
func TestRedirectedRead(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 4 // over all hops
		var numbers []int
		r.transport.OnAttempt = func(_ context.Context, a idem.Attempt) { numbers = append(numbers, a.Number) }
		res, err := r.api(t).Call(t.Context(), nil, "GET", "/one", nil, nil)
		require.NoError(t, err)
		assert.Equal(t, idem.Result{Status: 200, Outcome: idem.Answered, Attempts: 4, Sends: 4}, res)
		assert.Equal(t, []int{1, 2, 3, 4}, numbers)
	}, moved(307, "/two"), moved(302, "/three"), status(503), statusBody(200, "{}"))

	bubble(t, func(t *testing.T, r *rig) { // of a write, the read says nothing
		r.transport.Contract = contract.Contract{Methods: []string{"PATCH"}}
		resp, err := r.client().Post("http://api/orders", "", nil)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
		assert.Equal(t, 2, idem.ResultOf(resp).Attempts)
	}, moved(303, "/orders/1"), status(200))
}

// A call that is refused before its key was looked for says of its Intent what
// is known of it.
func TestRefusedBeforeTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{Place: contract.InBody, Header: "key"}
		r.transport.MaxAttempts = 1
		in := idem.Open()
		body := `{"key":"` + in.Key() + `"}`
		gone, cancel := context.WithCancel(t.Context())
		cancel()

		_, _, err := r.post(gone, in, body)
		assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
		_, _, err = r.post(t.Context(), in, body)
		assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
		_, _, err = r.post(gone, in, body)
		assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome, "the first may have been received")
		_, _, err = r.post(gone, nil, body)
		assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
	}, drop)
}

// OnAttempt sees what the Layers have put into the context.
func TestOnAttempt_ContextOfTheLayers(t *testing.T) {
	type span struct{}
	for _, around := range []idem.Layer{nil, func(next http.RoundTripper) http.RoundTripper {
		return through(func(r *http.Request) (*http.Response, error) {
			return next.RoundTrip(r.WithContext(context.WithValue(r.Context(), span{}, "mine")))
		})
	}} {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Around = around
			var seen []any
			r.transport.OnAttempt = func(ctx context.Context, _ idem.Attempt) {
				seen = append(seen, ctx.Value(span{}))
				in, _ := idem.IntentFromContext(ctx)
				assert.NotNil(t, in)
			}
			_, _, err := r.post(t.Context(), idem.Open(), "x")
			require.NoError(t, err)
			want := []any{nil, nil}
			if around != nil {
				want = []any{"mine", "mine"}
			}
			assert.Equal(t, want, seen)
		}, drop, created)
	}
}

// Until a call has ended its Intent can be written down with the request, and
// after it if the answer did not settle it.
func TestFingerprint_OfACallUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var during []string
		in := idem.Open()
		r.transport.OnAttempt = func(context.Context, idem.Attempt) { during = append(during, in.State().Fingerprint) }
		_, _, err := r.post(t.Context(), in, "x")
		require.NoError(t, err)
		require.Len(t, during, 2)
		assert.NotEmpty(t, during[0])
		assert.Equal(t, during[0], during[1])

		bound := idem.Open()
		require.NoError(t, bound.Bind(newRequest(t, nil, "POST", "http://api/charges", "x")))
		assert.Equal(t, bound.State().Fingerprint, in.State().Fingerprint)
	}, drop, created)

	file, err := os.Open("go.mod")
	require.NoError(t, err)
	for name, body := range map[string]io.Reader{"none": nil, "a file": file, "a stream": io.LimitReader(strings.NewReader("x"), 1)} {
		in := idem.Open()
		_, err := (&idem.Transport{Base: through(func(*http.Request) (*http.Response, error) {
			return nil, io.ErrUnexpectedEOF
		}), MaxAttempts: 1}).RoundTrip(keyedPost(t, in, "http://api/charges", body))
		require.Error(t, err)
		assert.NotEmpty(t, in.State().Fingerprint, name)
	}
	for _, changed := range []bool{false, true} {
		body, in := []byte("order=1"), idem.Open()
		base := through(func(*http.Request) (*http.Response, error) {
			if changed {
				body[6] = '2'
			}
			return nil, io.ErrUnexpectedEOF
		})
		_, err := (&idem.Transport{Base: base, MaxAttempts: 1}).RoundTrip(keyedPost(t, in, "http://api/charges", bytes.NewReader(body)))
		require.Error(t, err)
		assert.Equal(t, changed, in.State().Fingerprint == "", "what was sent is not known any more")
	}
}
