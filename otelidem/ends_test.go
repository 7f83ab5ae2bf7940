package otelidem_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body that is streamed to the caller is no part of the spans, whether it is
// read or not, and comes whole.
func TestStreamedBody(t *testing.T) {
	for name, read := range map[string]bool{"read": true, "left": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				text := strings.Repeat("idem ", 1000)
				server := mockserver.New(t, mockserver.Config{Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(out, text[:10])
					_ = http.NewResponseController(out).Flush()
					_, _ = io.WriteString(out, text[10:])
				})})
				client := w.newClient(server, &idem.Transport{})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/", nil)
				require.NoError(t, err)
				resp, err := client.Do(nil, r)
				require.NoError(t, err)
				assert.Equal(t, []string{
					`INTERNAL "idem GET" keyed=false outcome=answered replay=unknown attempts=1 sends=1`,
					`CLIENT "GET" version=1.1 status_code=200`,
				}, w.lines())
				if read {
					got, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					assert.Equal(t, text, string(got))
				}
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// An upgraded connection can be written to.
func TestUpgrade(t *testing.T) {
	w := newWatch(t)
	var wrote bytes.Buffer
	transport := w.instrument(&idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
		resp := answer(r, http.StatusSwitchingProtocols, "")
		resp.Body = struct {
			io.ReadCloser
			io.Writer
		}{resp.Body, &wrote}
		return resp, nil
	})})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.WriteString(resp.Body.(io.Writer), "hello")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "hello", wrote.String())
}

// A panic passes through, and takes no span with it.
func TestPanic(t *testing.T) {
	down := func(r *http.Request) (*http.Response, error) { panic("down") }
	ok := func(r *http.Request) (*http.Response, error) { return answer(r, http.StatusCreated, "{}"), nil }
	for _, test := range []struct {
		name      string
		transport *idem.Transport
		want      []string
	}{
		{
			name:      "in Base",
			transport: &idem.Transport{Base: base(down)},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=panic attempts=1 sends=0`,
				`CLIENT "POST" Error type=panic`,
			},
		}, {
			name: "in a Layer",
			transport: &idem.Transport{Base: base(ok), Around: func(http.RoundTripper) http.RoundTripper {
				return base(down)
			}},
			want: []string{`INTERNAL "idem POST" Error keyed=true outcome=not executed replay=unknown reason=panic attempts=0 sends=0`},
		}, {
			name:      "in OnAttempt",
			transport: &idem.Transport{Base: base(ok), OnAttempt: func(context.Context, idem.Attempt) { panic("down") }},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=answered replay=unknown reason=panic attempts=1 sends=1`,
				`CLIENT "POST" version=1.1 status_code=201`,
			},
		}, {
			name: "in the body of an answer",
			transport: &idem.Transport{Base: base(func(r *http.Request) (*http.Response, error) {
				resp := answer(r, http.StatusCreated, "{}")
				resp.Body = panicking{resp.Body}
				return resp, nil
			})},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=panic attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=201 type=panic`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWatch(t)
			client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(test.transport)})
			require.NoError(t, err)
			assert.PanicsWithValue(t, "down", func() { _ = charge(t.Context(), client) })
			assert.Equal(t, test.want, w.lines())
		})
	}
}

type panicking struct{ io.ReadCloser }

func (panicking) Read([]byte) (int, error) { panic("down") }

// A hop of a redirect is a call of its own whose attempts count on, whatever the
// method.
func TestRedirects(t *testing.T) {
	for method, want := range map[string][]string{
		http.MethodPost: {
			`INTERNAL "idem POST" keyed=true outcome=unknown replay=unknown reason=redirected attempts=2 sends=2`,
			`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
			`CLIENT "POST" resend_count=1 version=1.1 status_code=307`,
			`INTERNAL "idem POST" keyed=true outcome=unknown replay=unknown reason=redirected attempts=3 sends=3`,
			`CLIENT "POST" resend_count=2 version=1.1 status_code=307`,
			`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=4 sends=4`,
			`CLIENT "POST" resend_count=3 version=1.1 status_code=200`,
		},
		http.MethodGet: {
			`INTERNAL "idem GET" keyed=false outcome=unknown replay=unknown reason=redirected attempts=2 sends=2`,
			`CLIENT "GET" Error version=1.1 status_code=503 type=503`,
			`CLIENT "GET" resend_count=1 version=1.1 status_code=307`,
			`INTERNAL "idem GET" keyed=false outcome=unknown replay=unknown reason=redirected attempts=3 sends=3`,
			`CLIENT "GET" resend_count=2 version=1.1 status_code=307`,
			`INTERNAL "idem GET" keyed=false outcome=answered replay=unknown attempts=4 sends=4`,
			`CLIENT "GET" resend_count=3 version=1.1 status_code=200`,
		},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				mux := http.NewServeMux()
				mux.Handle("/one", http.RedirectHandler("/two", http.StatusTemporaryRedirect))
				mux.Handle("/two", http.RedirectHandler("/three", http.StatusTemporaryRedirect))
				mux.HandleFunc("/three", func(http.ResponseWriter, *http.Request) {})
				keyless := contract.Contract{Methods: []string{}} // to a server with keys each path is another request
				server := mockserver.New(t, mockserver.Config{Handler: mux, Contract: keyless})
				server.On("/one").Then("503@received")
				client := w.newClient(server, &idem.Transport{})
				var in *idem.Intent
				if method == http.MethodPost {
					in = idem.Open()
				}
				_, err := client.Call(t.Context(), in, method, "/one", nil, nil)
				require.NoError(t, err)
				assert.Equal(t, want, w.lines())
			})
		})
	}
}

// What a store says instead of sending is told as the Transport tells it.
func TestStore(t *testing.T) {
	stored := func(r *http.Request) (*http.Response, error) { return answer(r, http.StatusCreated, "{}"), nil }
	says := func(o idem.Outcome) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) {
			return nil, &idem.Error{Result: idem.Result{Outcome: o}, Reason: idem.ErrExpired}
		}
	}
	for _, test := range []struct {
		name  string
		known idem.Outcome
		layer func(*http.Request) (*http.Response, error)
		want  string
	}{
		{"an answer", idem.NotExecuted, stored, `keyed=true outcome=answered replay=replayed attempts=0 sends=0`},
		{"answered", idem.NotExecuted, says(idem.Answered), `Error keyed=true outcome=answered replay=unknown reason=expired attempts=0 sends=0`},
		{"unknown", idem.NotExecuted, says(idem.OutcomeUnknown), `Error keyed=true outcome=unknown replay=unknown reason=expired attempts=0 sends=0`},
		{"not executed", idem.NotExecuted, says(idem.NotExecuted), `Error keyed=true outcome=not executed replay=unknown reason=expired attempts=0 sends=0`},
		{"not executed, of what is unknown", idem.OutcomeUnknown, says(idem.NotExecuted), `Error keyed=true outcome=unknown replay=unknown reason=expired attempts=0 sends=0`},
		{"unknown, of what is answered", idem.Answered, says(idem.OutcomeUnknown), `Error keyed=true outcome=answered replay=unknown reason=expired attempts=0 sends=0`},
		{"nothing", idem.NotExecuted, func(*http.Request) (*http.Response, error) { return nil, nil }, `Error keyed=true outcome=not executed replay=unknown attempts=0 sends=0`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWatch(t)
			state := idem.Open().State()
			state.Outcome = test.known
			in, err := idem.Resume(state, func(http.RoundTripper) http.RoundTripper { return base(test.layer) })
			require.NoError(t, err)
			client, err := idem.NewClient(idem.Config{BaseURL: "http://api.test", Transport: w.instrument(nil)})
			require.NoError(t, err)
			res, _ := client.Call(t.Context(), in, http.MethodPost, "/charges", order{500}, nil)
			assert.Equal(t, []string{`INTERNAL "idem POST" ` + test.want}, w.lines())
			assert.Contains(t, test.want, "outcome="+res.Outcome.String()+" replay="+res.Replay.String())
		})
	}
}
