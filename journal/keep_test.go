package journal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is stored has every byte, also where it is not UTF-8: the query of a URL,
// the values of headers, the body.
func TestBytesThatAreNoText(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{})
	var got *http.Request
	c := client(t, "http://api.test", roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r
		h := http.Header{"Location": {"/caf\xe9", "/café"}, "Content-Type": {"text/plain"}}
		return &http.Response{StatusCode: 201, Header: h, Body: http.NoBody, Request: r}, nil
	}))
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://api.test/charges?name=M\xfcller", strings.NewReader("\x00\xff\n"))
	require.NoError(t, err)
	r.Header.Set("User-Agent", "caf\xe9")
	require.NoError(t, j.MintRequest(t.Context(), j.db, testRef(1), r))
	in, err := j.Claim(t.Context(), testRef(1))
	require.NoError(t, err)
	require.NoError(t, j.Resend(c)(t.Context(), testRef(1), in))
	assert.Equal(t, "name=M\xfcller", got.URL.RawQuery)
	assert.Equal(t, "caf\xe9", got.Header.Get("User-Agent"))

	resp, err := c.Do(in, r)
	require.NoError(t, err)
	assert.Equal(t, []string{"/caf\xe9", "/café"}, resp.Header["Location"])
	require.NoError(t, resp.Body.Close())
}

// A conditional write stays one when it is sent again, and goes to the same account.
func TestConditionsAreKept(t *testing.T) {
	j := sqliteStore(t).journal(t, Config{})
	var got http.Header
	c := client(t, "http://api.test", roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}))
	conditions := http.Header{"If-Match": {`"1"`}, "If-None-Match": {"*"}, "If-Unmodified-Since": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Stripe-Account": {"acct_1"}}
	r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://api.test/files/a", strings.NewReader("x"))
	require.NoError(t, err)
	r.Header = conditions.Clone()
	require.NoError(t, j.MintRequest(t.Context(), j.db, testRef(1), r))
	in, err := j.Claim(t.Context(), testRef(1))
	require.NoError(t, err)
	require.NoError(t, j.Resend(c)(t.Context(), testRef(1), in))
	for name, value := range conditions {
		assert.Equal(t, value, got[name], name)
	}
}
