package idem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// The response's Request is set, and its context is alive after the body was read.
func TestTransport_ResponseRequest(t *testing.T) {
	type key struct{}
	for _, h2 := range []bool{false, true} {
		for name, s := range map[string]step{"buffered": created, "stream": statusBody(200, "x", "Content-Type", "text/event-stream"), "empty": status(204)} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, h2), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					if h2 {
						r.base.Protocols = new(http.Protocols)
						r.base.Protocols.SetUnencryptedHTTP2(true)
					}
					ctx := context.WithValue(t.Context(), key{}, "mine")
					resp, _, err := r.post(ctx, idem.Open(), "{}")
					require.NoError(t, err)
					require.NotNil(t, resp.Request)
					got := resp.Request.Context()
					require.NoError(t, got.Err())
					require.NoError(t, context.Cause(got))
					require.Equal(t, "mine", got.Value(key{}))
					require.Zero(t, idem.AttemptNumber(got), "outside of an attempt")
					require.Equal(t, "http://api/charges", resp.Request.URL.String())
					require.Equal(t, 1, idem.ResultOf(resp).Attempts)
				}, s)
			})
		}
	}
	t.Run("a stub that leaves it nil", func(t *testing.T) {
		virtual(t, func(t *testing.T) {
			tr := &idem.Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
				_, _ = consume(r)
				resp := reply(r, 200, "x")
				resp.Request = nil
				return resp, nil
			})}
			resp, err := tr.RoundTrip(keyedPost(t, idem.Open(), "http://api/x", strings.NewReader("x")))
			require.NoError(t, err)
			resp.Body.Close()
			require.NotNil(t, resp.Request)
			require.Equal(t, 1, idem.ResultOf(resp).Attempts)
		})
	})
	t.Run("the caller cancels afterwards", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			resp, _, err := r.post(ctx, idem.Open(), "{}")
			require.NoError(t, err)
			cancel()
			require.ErrorIs(t, resp.Request.Context().Err(), context.Canceled)
			require.Equal(t, idem.Answered, idem.ResultOf(resp).Outcome)
		}, created)
	})
}

// ResultOf works through http.Client, with and without Timeout, before and after
// the body was read and closed.
func TestTransport_ResultOf(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		for name, s := range map[string]step{"buffered": created, "stream": statusBody(201, "x", "Content-Type", "text/event-stream")} {
			t.Run(fmt.Sprintf("%s, Timeout %v", name, timeout), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					in := idem.Open()
					client := &http.Client{Transport: r.transport, Timeout: timeout}
					resp, err := client.Do(keyedPost(t, in, "http://api/x", strings.NewReader("{}")))
					require.NoError(t, err)
					want := idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Attempts: 2, Sends: 2}
					require.Equal(t, want, idem.ResultOf(resp))
					_, err = io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, want, idem.ResultOf(resp))
					resp.Body.Close()
					require.Equal(t, want, idem.ResultOf(resp))
				}, status(503), s)
			})
		}
	}
	require.Zero(t, idem.ResultOf(nil))
	require.Zero(t, idem.ResultOf(&http.Response{}))
	req, _ := http.NewRequest("GET", "http://api", nil)
	require.Zero(t, idem.ResultOf(&http.Response{Request: req}))
	t.Run("unkeyed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			resp, _, err := r.post(t.Context(), nil, "{}")
			require.NoError(t, err)
			require.Equal(t, idem.Result{Status: 402, Outcome: idem.Answered, Attempts: 1, Sends: 1}, idem.ResultOf(resp))
		}, status(402))
	})
	t.Run("the result of a call stays, whatever a later call brings", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			first, _, err := r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "{}")
			require.NoError(t, err)
			require.Equal(t, 402, idem.ResultOf(first).Status)
			require.Equal(t, idem.Answered, idem.ResultOf(first).Outcome)
		}, status(402), created)
	})
}
