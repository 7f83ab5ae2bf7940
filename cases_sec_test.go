package idem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// said is everything that the package says about a call: error texts, what the
// hook is told, what logs show of Intent and Attempts.
func said(t testing.TB, err error, in *idem.Intent, hook []idem.Attempt) string {
	t.Helper()
	var b bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&b, nil))
	text := slog.New(slog.NewTextHandler(&b, nil))
	if err != nil {
		e := theError(t, err)
		fmt.Fprintln(&b, e.Error())
		fmt.Fprintf(&b, "%v %s %q\n", e, e, e.Error())
		if e.Reason != nil {
			fmt.Fprintln(&b, e.Reason)
		}
		logger.Error("failed", "err", e)
		text.Error("failed", "err", e)
	}
	if in != nil {
		fmt.Fprintf(&b, "%v %+v %#v %s\n", in, in, in, in)
		logger.Info("intent", "in", in)
		text.Info("intent", "in", in)
		hook = append(hook, in.Attempts()...)
	}
	for _, a := range hook {
		logger.Info("attempt", "attempt", a)
		text.Info("attempt", "attempt", a)
		fmt.Fprintln(&b, a.Method, a.Host, a.Err, a.Reason)
	}
	return b.String()
}

// hashicorp/go-retryablehttp#206
func TestCase_SEC_1(t *testing.T) {
	for name, s := range map[string]step{"drop": drop, "503": status(503), "cut": cut(1, 9), "malformed": raw("HTTP/1.1 xx\r\n\r\n")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var hook told
				r.transport.OnAttempt = hook.hook
				in := idem.Open()
				_, _, err := r.send(keyedPost(t, in, "http://api/charges?sig=SECRET&b=1", strings.NewReader("{}")))
				require.NotContains(t, said(t, err, in, hook.all()), "SECRET")
				require.Equal(t, 3, r.count())
				r.oneKey()
			}, s)
		})
	}
	t.Run("Call", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, err := r.api(t).Call(t.Context(), in, "POST", "/charges?sig=SECRET", "x", nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "SECRET", "no *url.Error around it")
			require.NotContains(t, said(t, err, in, nil), "SECRET")
		}, drop)
	})
	t.Run("refused redirect", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, err := r.api(t).Call(t.Context(), in, "POST", "/charges", "x", nil)
			require.ErrorIs(t, err, idem.ErrCrossOrigin)
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, said(t, err, in, nil), "SECRET")
		}, moved(307, "http://u:SECRET@other/SECRET?sig=SECRET#SECRET"))
	})
	t.Run("redirect that cannot be parsed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, err := r.api(t).Call(t.Context(), in, "POST", "/charges", "x", nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "SECRET")
		}, moved(307, "http://[bad/?sig=SECRET"))
	})
	t.Run("dial refused", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.send(keyedPost(t, in, "http://nowhere/x?sig=SECRET", strings.NewReader("{}")))
			require.NotContains(t, said(t, err, in, nil), "SECRET")
		}, drop)
	})
}

// maximilien/softlayer-go#142
func TestCase_SEC_2(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var hook told
		r.transport.OnAttempt = hook.hook
		in := idem.Open()
		_, _, err := r.send(keyedPost(t, in, "http://USERNAME:PASSWORD@api/charges", strings.NewReader("{}")))
		text := said(t, err, in, hook.all())
		require.NotContains(t, text, "PASSWORD")
		require.NotContains(t, text, "USERNAME")
		require.Equal(t, 3, r.count())
		r.oneKey()
	}, drop)
	for _, base := range []string{"http://USERNAME:PASSWORD@", "ftp://USERNAME:PASSWORD@api", "http://USERNAME:PASS%zzWORD@api", "http://USERNAME:PASSWORD@api/?q"} {
		t.Run("NewClient "+base, func(t *testing.T) {
			_, err := idem.NewClient(idem.Config{BaseURL: base})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "PASSWORD")
			require.NotContains(t, err.Error(), "USERNAME")
		})
	}
}

// zeroclaw-labs/zeroclaw#10249
func TestCase_SEC_3(t *testing.T) {
	for _, key := range []string{"order-7-jane.doe@example.com", "jane.doe", "jane.doe-123456789-1234567-1234567890"[:36], `"jane.doe@example.com"`} {
		t.Run(key, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var hook told
				r.transport.OnAttempt = hook.hook
				in, err := idem.Adopt(key, since())
				require.NoError(t, err)
				_, _, err = r.post(t.Context(), in, "{}")
				text := said(t, err, in, hook.all())
				require.NotContains(t, text, "jane.doe")
				require.NotContains(t, text, key)
				r.oneKey()
				require.Equal(t, key, theError(t, err).Key, "a caller who wants the key has it")
			}, drop)
		})
	}
	t.Run("a key of the caller's header", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			req := keyedPost(t, idem.Open(), "http://api/charges", strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "jane.doe@example.com")
			_, _, err := r.send(req)
			require.ErrorIs(t, err, idem.ErrKeyConflict)
			require.NotContains(t, said(t, err, nil, nil), "jane.doe")
		}, drop)
	})
	t.Run("a key that is refused", func(t *testing.T) {
		for _, key := range []string{"jane.doe@example.com and more", "jane.doe\n", strings.Repeat("jane.doe", 100)} {
			_, err := idem.Adopt(key, since())
			require.ErrorIs(t, err, idem.ErrInvalidKey)
			require.NotContains(t, err.Error(), "jane.doe")
		}
	})
	t.Run("as part of another value", func(t *testing.T) {
		in, err := idem.Adopt("jane.doe@example.com", since())
		require.NoError(t, err)
		type order struct{ Charge *idem.Intent }
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			require.NotContains(t, fmt.Sprintf(format, in), "jane.doe", format)
			require.NotContains(t, fmt.Sprintf(format, order{in}), "jane.doe", format)
			require.NotContains(t, fmt.Sprintf(format, *&in), "6a616e65", format) //nolint:staticcheck // hex of it
		}
		data, err := json.Marshal(in) // to be written down: there the key stands in full
		require.NoError(t, err)
		require.Contains(t, string(data), "jane.doe")
	})
}

// stacklok/toolhive#2411
func TestCase_SEC_4(t *testing.T) {
	for _, key := range []string{"k\r\nX-Evil: 1", "k\nX-Evil: 1", "k\x00", "\n", "k\r", "\tk", "k\x7f", "k\u00e9", "k\u2028", "", " ", "a b", "k\x1b[31m"} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			in, err := idem.Adopt(key, since())
			require.ErrorIs(t, err, idem.ErrInvalidKey)
			require.Nil(t, in)
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "one line")
			_, err = idem.Resume(idem.State{Key: key, Since: since()}, nil)
			require.ErrorIs(t, err, idem.ErrInvalidKey)
			if key == "" {
				return // counts as absent
			}
			for _, under := range []bool{false, true} {
				bubble(t, func(t *testing.T, r *rig) {
					var in *idem.Intent
					if under {
						in = idem.Open()
					}
					body := newOpaque("{}")
					req := keyedPost(t, in, "http://api/charges", body)
					req.Header["Idempotency-Key"] = []string{key}
					start := time.Now()
					_, err := r.transport.RoundTrip(req) //nolint:bodyclose // there is none
					e := theError(t, err)
					if under {
						require.ErrorIs(t, err, idem.ErrKeyConflict)
					} else {
						require.ErrorIs(t, err, idem.ErrInvalidKey)
					}
					require.Zero(t, time.Since(start))
					require.Zero(t, r.count())
					require.Zero(t, e.Attempts)
					require.Equal(t, idem.NotExecuted, e.Outcome)
					require.NotContains(t, e.Error(), "\n")
					require.NotContains(t, e.Error(), "Evil")
					closedOnce(t, body, key)
				}, created)
			}
		})
	}
}

// bluesky/tiled#1406
func TestCase_SEC_5(t *testing.T) {
	for name, header := range map[string]http.Header{
		"CR in a value":   {"X-A": {"a\rb"}},
		"LF in a value":   {"X-A": {"a\nb"}},
		"NUL in a value":  {"X-A": {"a\x00"}},
		"space in a name": {"X A": {"a"}},
		"empty name":      {"": {"a"}},
		"colon in a name": {"X:A": {"a"}},
	} {
		for _, keyed := range []bool{true, false} {
			for _, body := range []string{"", "{}"} {
				t.Run(fmt.Sprintf("%s, keyed %v, body %q", name, keyed, body), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						var hook told
						r.transport.OnAttempt = hook.hook
						ctx := context.Background()
						if keyed {
							ctx = idem.WithIntent(ctx, idem.Open())
						}
						req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://api/x", strings.NewReader(body))
						require.NoError(t, err)
						req.Header = header.Clone()
						start := time.Now()
						_, err = r.client().Do(req) //nolint:bodyclose // there is none
						e := theError(t, err)
						require.Zero(t, time.Since(start))
						require.Zero(t, r.count())
						require.LessOrEqual(t, len(hook.all()), 1)
						require.Zero(t, e.Sends)
						require.Equal(t, idem.NotExecuted, e.Outcome)
						require.NotContains(t, e.Error(), "a\nb")
					}, created)
				})
			}
		}
	}
}

// ever-jobs/ever-jobs#54. Texts hold no path at all, so there is nothing to redact.
func TestCase_SEC_6(t *testing.T) {
	for name, s := range map[string]step{"drop": drop, "503": status(503), "malformed": raw("SECRET\r\n\r\n")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var hook told
				r.transport.OnAttempt = hook.hook
				in := idem.Open()
				_, err := r.api(t).Call(t.Context(), in, "POST", "/PATHSECRET/items", "x", nil)
				require.Error(t, err)
				text := err.Error() + said(t, err, in, hook.all())
				require.NotContains(t, text, "PATHSECRET")
				require.NotContains(t, text, "/items")
				require.Equal(t, 3, r.count())
				r.oneKey()
			}, s)
		})
	}
	t.Run("another request under the Intent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			in, c := idem.Open(), r.api(t)
			_, err := c.Call(t.Context(), in, "POST", "/PATHSECRET/items", "x", nil)
			require.NoError(t, err)
			_, err = c.Call(t.Context(), in, "POST", "/PATHSECRET/others", "x", nil)
			require.ErrorIs(t, err, idem.ErrIntentReused)
			require.NotContains(t, err.Error(), "PATHSECRET")
		}, created)
	})
	t.Run("path that is none", func(t *testing.T) {
		c, err := idem.NewClient(idem.Config{BaseURL: "http://api"})
		require.NoError(t, err)
		for _, path := range []string{"PATHSECRET", "/PATH%zzSECRET", "//PATHSECRET/x", "/x#PATHSECRET"} {
			_, err = c.Call(t.Context(), idem.Open(), "POST", path, "x", nil)
			require.Error(t, err)
			require.NotContains(t, err.Error(), "SECRET", path)
		}
	})
}
