package idem_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call that is refused before the network says what became of the Intent's
// earlier sends, unless it is another request than they were. "Not executed" would
// invite a new Intent for what may have been done.
func TestRefused_TellsOfEarlierSends(t *testing.T) {
	unreadable := errors.New("disk failure")
	request := func(t *testing.T, in *idem.Intent) *http.Request {
		return postUnder(t, t.Context(), in, "http://api/charges", strings.NewReader("a"))
	}
	refusals := map[string]struct {
		change  func(r *http.Request)
		another bool
	}{
		"its body cannot be read": {func(r *http.Request) { r.Body, r.GetBody = io.NopCloser(iotest.ErrReader(unreadable)), nil }, false},
		"a length of another":     {func(r *http.Request) { r.ContentLength, r.GetBody = 7, nil }, false},
		"two keys":                {func(r *http.Request) { r.Header.Set("Idempotency-Key", "another") }, false},
		"no host":                 {func(r *http.Request) { r.URL.Host = "" }, false},
		"another body": {func(r *http.Request) {
			r.Body, r.GetBody = io.NopCloser(strings.NewReader("b")), nil
		}, true},
	}
	for name, c := range refusals {
		for before, b := range map[string]struct {
			step step
			want idem.Outcome
		}{"never sent": {nil, idem.NotExecuted}, "lost": {lost, idem.OutcomeUnknown}, "refused": {status(429), idem.NotExecuted}, "done": {created, idem.Answered}} {
			if c.another && b.step == nil {
				continue // the first request is no other
			}
			t.Run(name+"/"+before, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.transport.MaxAttempts = 1
					charge := idem.Open()
					if b.step != nil {
						_, _, _ = r.send(request(t, charge))
						require.Equal(t, b.want, charge.Outcome())
					}
					hits := r.count()
					req := request(t, charge)
					c.change(req)
					_, _, err := r.send(req)
					e := theError(t, err)
					assert.Zero(t, e.Attempts)
					assert.Equal(t, hits, r.count())
					if c.another {
						require.ErrorIs(t, err, idem.ErrIntentReused, before)
						b.want = idem.NotExecuted
					}
					assert.Equal(t, b.want, e.Outcome, "%v", err)
					assert.Equal(t, b.want == idem.Answered, e.Status == http.StatusCreated, "%v", err)
				}, b.step)
			})
		}
	}
}

// The same of a Client's call that does not come as far as the Transport, and of an
// Intent from another process.
func TestRefused_ByTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.MaxAttempts = 1
		client, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
		require.NoError(t, err)
		call := func(in *idem.Intent, body any) idem.Outcome {
			res, err := client.Call(t.Context(), in, "POST", "/charges", body, nil)
			require.Error(t, err)
			assert.Equal(t, theError(t, err).Result, res)
			return res.Outcome
		}
		doesNotEncode := make(chan int)
		charge := idem.Open()
		assert.Equal(t, idem.NotExecuted, call(charge, doesNotEncode))
		assert.Equal(t, idem.OutcomeUnknown, call(charge, "a"))
		assert.Equal(t, idem.OutcomeUnknown, call(charge, doesNotEncode))
		assert.Equal(t, 1, r.count())

		derived, err := idem.Derive("charge", "order-42", time.Now())
		require.NoError(t, err)
		assert.Equal(t, idem.NotExecuted, call(derived, doesNotEncode), "nothing was sent that this process knows of")
		sent, err := idem.Resume(charge.State(), nil)
		require.NoError(t, err)
		assert.Equal(t, idem.OutcomeUnknown, call(sent, doesNotEncode))
		settled, err := idem.Resume(idem.State{Key: "order-43", Since: time.Now(), Outcome: idem.Answered}, nil)
		require.NoError(t, err)
		assert.Equal(t, idem.Answered, call(settled, doesNotEncode))
	}, lost)
}

// A read is no request of the Intent in its context, refused or not.
func TestRefused_Read(t *testing.T) {
	_, err := new(idem.Transport).RoundTrip(&http.Request{Method: http.MethodPost, Header: http.Header{}})
	assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
	_, err = new(idem.Transport).RoundTrip((&http.Request{Header: http.Header{}}).WithContext(idem.WithIntent(context.Background(), idem.Open())))
	assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
}
