package idem_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// A read whose context carries an Intent has no key, and is still one request: the
// loops of two Transports do not multiply.
func TestNested_ReadWithAnIntent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		outer := &idem.Transport{Base: r.transport, MaxAttempts: 3, Backoff: idem.Exponential(time.Millisecond, time.Millisecond)}
		req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), idem.Open()), "GET", "http://api/x", nil)
		require.NoError(t, err)
		resp, err := outer.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, 3, r.count())
		require.Equal(t, 3, idem.ResultOf(resp).Attempts)
	}, status(503))
}

// A Base that fetches a token with the context of the attempt makes a call of its
// own, and is told of that one.
func TestNested_ClientInAnAttempt(t *testing.T) {
	const token = `{"token":"t"}`
	around := func(t *testing.T, r *rig, fetch func(*idem.Client, *http.Request) error) *idem.Client {
		inner, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
		require.NoError(t, err)
		outer, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: &idem.Transport{
			Base: baseFunc(func(q *http.Request) (*http.Response, error) {
				if err := fetch(inner, q); err != nil {
					return nil, err
				}
				return r.base.RoundTrip(q)
			}),
		}})
		require.NoError(t, err)
		return outer
	}
	t.Run("a read", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			c := around(t, r, func(c *idem.Client, q *http.Request) error {
				var out struct{ Token string }
				res, err := c.Call(q.Context(), nil, "GET", "/token", nil, &out)
				require.NoError(t, err)
				require.Equal(t, "t", out.Token)
				require.Equal(t, idem.Result{Status: 200, Outcome: idem.Answered, Attempts: 2, Sends: 2}, res)
				return nil
			})
			in := idem.Open()
			res, err := c.Call(t.Context(), in, "POST", "/charges", 1, nil)
			require.NoError(t, err)
			require.Equal(t, in.Key(), res.Key)
			require.Equal(t, 1, res.Attempts)
			require.Empty(t, r.all()[1].keys)
			require.Equal(t, []string{in.Key()}, r.all()[2].keys)
		}, status(503), statusBody(200, token, "Content-Type", "application/json"), created)
	})
	t.Run("a write without an Intent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			c := around(t, r, func(c *idem.Client, q *http.Request) error {
				_, err := c.Call(q.Context(), nil, "POST", "/token", 1, nil)
				require.ErrorIs(t, err, idem.ErrNoIntent)
				return nil
			})
			_, err := c.Call(t.Context(), nil, "GET", "/charges", nil, nil)
			require.NoError(t, err)
			require.Equal(t, 1, r.count(), "only the read")
		}, status(200))
	})
	t.Run("the same read is passed on", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			inner, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: r.transport})
			require.NoError(t, err)
			outer := &idem.Transport{
				Base:        baseFunc(func(q *http.Request) (*http.Response, error) { return inner.Do(nil, q.Clone(q.Context())) }),
				MaxAttempts: 3, Backoff: idem.Exponential(time.Millisecond, time.Millisecond),
			}
			resp, err := (&http.Client{Transport: outer}).Get("http://api/x")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 3, r.count())
		}, status(503))
	})
}

// What a Client tells of a call is of that call, also when a layer below or above
// the attempt has made another in the meantime: here the redirect is at fault, and
// the other's 200 is no answer to the charge.
func TestNested_ErrorIsOfTheOwnCall(t *testing.T) {
	other := func(t *testing.T, r *rig, q *http.Request) {
		req, err := http.NewRequestWithContext(idem.WithIntent(q.Context(), idem.Open()), "POST", "http://api/token", strings.NewReader("x"))
		require.NoError(t, err)
		_, _, err = r.send(req)
		require.NoError(t, err)
	}
	for name, transport := range map[string]func(*testing.T, *rig) *idem.Transport{
		"in Base": func(t *testing.T, r *rig) *idem.Transport {
			return &idem.Transport{Base: baseFunc(func(q *http.Request) (*http.Response, error) {
				other(t, r, q)
				return r.base.RoundTrip(q)
			})}
		},
		"in a Layer": func(t *testing.T, r *rig) *idem.Transport {
			return &idem.Transport{Base: r.base, Around: func(next http.RoundTripper) http.RoundTripper {
				return baseFunc(func(q *http.Request) (*http.Response, error) {
					other(t, r, q)
					return next.RoundTrip(q)
				})
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				c, err := idem.NewClient(idem.Config{BaseURL: "http://api", Transport: transport(t, r)})
				require.NoError(t, err)
				in := idem.Open()
				res, err := c.Call(t.Context(), in, "POST", "/charges", 1, nil)
				require.Error(t, err)
				require.Equal(t, in.Key(), res.Key)
				require.Equal(t, 307, res.Status)
				require.Equal(t, idem.OutcomeUnknown, res.Outcome)
			}, status(200), status(307, "Location", "http://[bad"))
		})
	}
}
