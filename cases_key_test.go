package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var writes = []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}

// Source: gocardless/gocardless-pro-python#12. The key is minted once, above the
// loop, whatever the way in which the first answer is lost.
func TestCase_KEY_1(t *testing.T) {
	losses := map[string]step{
		"dropped":          lost,
		"cut body":         cut(3, 10),
		"no answer bytes":  raw(""),
		"cut status line":  raw("HTTP/1.1 20"),
		"cut header":       raw("HTTP/1.1 201 Created\r\nContent-Le"),
		"not HTTP":         raw("nonsense\r\n\r\n"),
		"no time for it":   execThen(stall),
		"500 after work":   execThen(status(500)),
		"502 after work":   execThen(status(502)),
		"409 in progress":  execThen(status(409)),
		"408 after work":   execThen(status(408)),
		"425 after work":   execThen(status(425)),
		"unframed and cut": raw("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n{\"id\":"),
	}
	for name, loss := range losses {
		for _, method := range writes {
			t.Run(name+"/"+method, func(t *testing.T) {
				row(t, func(t *testing.T, r *rig) {
					r.transport.AttemptTimeout = 100 * time.Millisecond
					in := idem.Open()
					resp, body, err := r.send(newRequest(t, in, method, "http://api/charges", "amount=1"))
					require.NoError(t, err)
					assert.Equal(t, 201, resp.StatusCode)
					assert.Equal(t, `{"id":"ch_1"}`, body)
					assert.Equal(t, 2, r.count())
					assert.Equal(t, 1, r.done())
					assert.Equal(t, in.Key(), r.all()[0].keys[0])
					res := idem.ResultOf(resp)
					assert.Equal(t, idem.Result{Key: in.Key(), Status: 201, Outcome: idem.Answered, Replay: idem.Replayed, Attempts: 2, Sends: 2}, res)
				}, loss, created)
			})
		}
	}
}

// Source: woocommerce/woocommerce-square#106. The second subtest is the row's
// mechanism: the work is taken up again by another process.
func TestCase_KEY_2(t *testing.T) {
	t.Run("one call", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 4
			in := idem.Open()
			resp, _, err := r.post(context.Background(), in, "amount=1")
			require.NoError(t, err)
			assert.Equal(t, 201, resp.StatusCode)
			assert.Equal(t, 3, r.count())
			assert.Equal(t, in.Key(), r.all()[2].keys[0])
		}, status(429), status(503), created)
	})
	t.Run("a process each", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			in := idem.Open()
			for range 3 {
				_, _, err := r.post(context.Background(), in, "amount=1")
				require.NoError(t, err)
				in = writtenDown(t, toJSON(t, in))
				r.restarted()
			}
			assert.Equal(t, 3, r.count())
			assert.Equal(t, 1, r.done())
		}, status(429), status(503), created)
	})
}

// Source: stripe/ai#402.
func TestCase_KEY_3(t *testing.T) {
	t.Run("same Intent", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			client := r.caller(t)
			in := idem.Open()
			var res idem.Result
			var err error
			for range 2 {
				if res, err = client.Call(t.Context(), in, "POST", "/charges", map[string]int{"amount": 1}, nil); err == nil {
					break
				}
				assert.ErrorIs(t, err, idem.ErrExhausted)
				assert.Equal(t, idem.OutcomeUnknown, res.Outcome)
			}
			require.NoError(t, err)
			assert.Equal(t, idem.Replayed, res.Replay)
			assert.Equal(t, 4, r.count())
			assert.Equal(t, 1, r.done())
			made := in.Attempts()
			require.Len(t, made, 4)
			assert.Equal(t, 2, made[3].Call)
			assert.Equal(t, 1, made[3].Number)
		}, lost, lost, lost, created)
	})
	t.Run("job in another process", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			job := toJSON(t, idem.Open())
			var err error
			for range 2 {
				_, _, err = r.post(context.Background(), writtenDown(t, job), "amount=1")
				r.restarted()
			}
			require.NoError(t, err)
			assert.Equal(t, 1, r.done())
		}, lost, lost, lost, created)
	})
	// A forgotten Intent cannot be got by accident: nothing is sent.
	t.Run("no Intent", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			client := r.caller(t)
			// "post" and "Post" would be sent as they are, and a method that
			// differs only by case must not be the way around the Intent.
			for _, method := range append([]string{"post", "Post", "patch"}, writes...) {
				res, err := client.Call(t.Context(), nil, method, "/charges", 1, nil)
				assert.ErrorIs(t, err, idem.ErrNoIntent, method)
				assert.Equal(t, idem.NotExecuted, res.Outcome, method)
			}
			_, _, err := r.send(newRequest(t, nil, "POST", "http://api/charges", "x").WithContext(idem.WithIntent(t.Context(), nil)))
			assert.ErrorIs(t, err, idem.ErrNoIntent)
			assert.Zero(t, r.count())
		}, created)
	})
}

// Source: bnema/gordon#237. The flag is Attempt.Reason.
func TestCase_KEY_4(t *testing.T) {
	for _, code := range []int{502, 500, 503, 504, 408, 409, 425, 429, 423, 501} {
		for _, method := range []string{"POST", "PATCH"} {
			t.Run(http.StatusText(code)+"/"+method, func(t *testing.T) {
				mixedRow(t, func(t *testing.T, r *rig) {
					told := r.attempts()
					resp, body, err := r.send(newRequest(t, nil, method, "http://api/restart", "now"))
					require.NoError(t, err)
					assert.Equal(t, code, resp.StatusCode)
					assert.Equal(t, "from the proxy", body)
					assert.Equal(t, "1", resp.Header.Get("Retry-After"))
					assert.Equal(t, "kept", resp.Header.Get("X-Other"))
					require.Equal(t, 1, r.count())
					assert.Empty(t, r.all()[0].keys)
					assert.Equal(t, 1, r.done())
					made := told.all()
					require.Len(t, made, 1)
					assert.False(t, made[0].Retry)
					if code != 409 && code != 501 { // those are final by themselves
						assert.ErrorIs(t, made[0].Reason, idem.ErrNotRepeatable)
					}
					assert.NotEqual(t, idem.Answered, idem.ResultOf(resp).Outcome)
					assert.Empty(t, idem.ResultOf(resp).Key)
				}, execThen(statusBody(code, "from the proxy", "Retry-After", "1", "X-Other", "kept", "X-Should-Retry", "true")))
			})
		}
	}
}

// Source: digitalocean/netbox-ip-controller#14.
func TestCase_KEY_5(t *testing.T) {
	losses := map[string]step{
		"dropped": lost, "nothing": raw(""), "not HTTP": raw("nonsense\r\n\r\n"),
		"cut header": raw("HTTP/1.1 201 Created\r\nConte"), "silent": execThen(stall),
	}
	for name, loss := range losses {
		for _, method := range []string{"POST", "PATCH"} {
			for _, warm := range []bool{false, true} {
				t.Run(name+"/"+method, func(t *testing.T) {
					mixedRow(t, func(t *testing.T, r *rig) {
						r.transport.AttemptTimeout = 100 * time.Millisecond
						if warm {
							r.warm(t, 1)
						}
						_, _, err := r.send(newRequest(t, nil, method, "http://api/ips", "one"))
						e := theError(t, err)
						assert.ErrorIs(t, err, idem.ErrNotRepeatable)
						assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
						assert.Equal(t, 1, e.Attempts)
						assert.Empty(t, e.Key)
						assert.Equal(t, 1, r.count())
						assert.Equal(t, 1, r.done())
					}, loss)
				})
			}
		}
	}
}

// Source: e2b-dev/E2B#1378. What counts are the raw lines on the wire.
func TestCase_KEY_6(t *testing.T) {
	for _, method := range writes {
		t.Run(method, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				wire := r.written()
				r.transport = &idem.Transport{Base: r.watching()}
				in := idem.Open()
				_, _, err := r.send(newRequest(t, in, method, "http://api/boxes", "x"))
				require.NoError(t, err)
				assert.Equal(t, 4, r.count())
				line := "Idempotency-Key: " + in.Key()
				assert.Equal(t, []string{line, line, line, line}, wire.lines("idempoten"))
			}, status(503), lost, status(429), created)
		})
	}
	t.Run("Client", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			wire := r.written()
			in := idem.Open()
			_, err := r.caller(t).Call(t.Context(), in, "POST", "/boxes", nil, nil)
			require.NoError(t, err)
			line := "Idempotency-Key: " + in.Key()
			assert.Equal(t, []string{line, line}, wire.lines("idempoten"))
		}, status(503), created)
	})
	// A method is case-sensitive, but "post" is a typing error and not a method
	// without a key: under an Intent it is refused or carries the key.
	t.Run("post in lower case", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) { // row: each hit has one key
			for _, method := range []string{"post", "Patch", "put"} {
				_, _ = r.caller(t).Call(t.Context(), idem.Open(), method, "/boxes", nil, nil)
			}
			_, _, _ = r.send(newRequest(t, idem.Open(), "post", "http://api/boxes", "x"))
			for i, h := range r.all() {
				require.Len(t, h.keys, 1, "hit %d", i+1)
			}
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			r.hits = nil // of several Intents
		}, created)
	})
	// A contract that has the key in the body promises it just as much: it is
	// verified there, never injected.
	t.Run("in the body", func(t *testing.T) {
		in := idem.Open()
		errAny := errors.New("any")
		tests := map[string]struct {
			body string
			want error // nil: sent
		}{
			"the key":          {`{"amount":1,"idempotency_key":"` + in.Key() + `"}`, nil},
			"another":          {`{"amount":1,"idempotency_key":"` + idem.Open().Key() + `"}`, idem.ErrKeyConflict},
			"none":             {`{"amount":1}`, errAny},
			"not JSON":         {`amount=1`, errAny},
			"elsewhere":        {`{"amount":1,"meta":{"idempotency_key":"` + in.Key() + `"}}`, errAny},
			"no body":          {``, errAny},
			"in capitals":      {`{"IDEMPOTENCY_KEY":"` + in.Key() + `"}`, errAny},
			"escaped":          {`{"idempotency_\u006bey":"\u00` + fmt.Sprintf("%02x", in.Key()[0]) + in.Key()[1:] + `"}`, nil},
			"twice, differing": {`{"idempotency_key":"` + in.Key() + `","idempotency_key":"x"}`, idem.ErrKeyConflict},
		}
		// What is not written as the contract asks cannot be put right in a body.
		t.Run("other spelling", func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				r.transport.Contract = contract.Contract{Place: contract.InBody, Header: "id", Format: contract.FormatHex}
				in := idem.Open()
				_, _, err := r.send(newRequest(t, in, "POST", "http://api/payments", `{"id":"`+in.Key()+`"}`))
				assert.ErrorIs(t, err, idem.ErrKeyConflict)
				assert.Zero(t, r.count())
				_, _, err = r.send(newRequest(t, in, "POST", "http://api/payments", `{"id":"`+strings.ReplaceAll(in.Key(), "-", "")+`"}`))
				assert.NoError(t, err)
			}, status(201))
		})
		t.Run("no Intent", func(t *testing.T) { // the caller's own key is adopted, as from a header
			mixedRow(t, func(t *testing.T, r *rig) {
				r.transport.Contract = contract.Contract{Place: contract.InBody, Header: "meta.key"}
				resp, _, err := r.send(newRequest(t, nil, "POST", "http://api/payments", `{"meta":{"key":"mine-1"}}`))
				require.NoError(t, err)
				assert.Equal(t, "mine-1", idem.ResultOf(resp).Key)
				assert.Equal(t, 2, r.count())
				_, _, err = r.send(newRequest(t, nil, "POST", "http://api/payments", `{"meta":{}}`))
				assert.ErrorIs(t, err, idem.ErrNotRepeatable)
				assert.Equal(t, 3, r.count())
			}, status(503), status(201), drop)
		})
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				mixedRow(t, func(t *testing.T, r *rig) {
					in := writtenDown(t, toJSON(t, in))
					r.transport.Contract = contract.Contract{Place: contract.InBody, Header: "idempotency_key"}
					resp, _, err := r.send(newRequest(t, in, "POST", "http://api/payments", test.body, "Content-Type", "application/json"))
					if test.want != nil {
						require.Error(t, err)
						assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
						if test.want != errAny {
							assert.ErrorIs(t, err, test.want)
						}
						assert.Zero(t, r.count())
						return
					}
					require.NoError(t, err)
					assert.Equal(t, 201, resp.StatusCode)
					assert.Equal(t, 2, r.count())
					for _, h := range r.all() {
						assert.Equal(t, test.body, h.body)
						assert.Empty(t, h.keys)
					}
				}, status(503), status(201))
			})
		}
	})
	// The Base of an attempt that has ended may still be reading its headers, and
	// what it does to them must not reach the next attempt.
	t.Run("a Base that is not done yet", func(t *testing.T) {
		in := idem.Open()
		var stop atomic.Bool
		var readers sync.WaitGroup
		var keys [][]string
		transport := &idem.Transport{MaxAttempts: 3, Backoff: idem.Exponential(0, 0)}
		transport.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
			_ = r.Body.Close()
			keys = append(keys, slices.Clone(r.Header["Idempotency-Key"]))
			if len(keys) == 3 {
				return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody}, nil
			}
			begun := make(chan bool)
			readers.Go(func() {
				close(begun)
				for !stop.Load() {
					assert.Equal(t, in.Key(), r.Header["Idempotency-Key"][0])
					runtime.Gosched()
				}
			})
			<-begun
			return nil, io.ErrUnexpectedEOF
		})
		resp, err := transport.RoundTrip(newRequest(t, in, "POST", "http://api/boxes", "x"))
		stop.Store(true)
		readers.Wait()
		require.NoError(t, err)
		assert.Equal(t, 201, resp.StatusCode)
		assert.Equal(t, [][]string{{in.Key()}, {in.Key()}, {in.Key()}}, keys)
	})
	t.Run("a Base that changes headers", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			base := r.transport.Base
			r.transport.Base = roundTrip(func(req *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(req)
				req.Header["Idempotency-Key"][0] = "changed"
				req.Header["X-Own"][0] = "changed"
				req.Header.Add("Idempotency-Key", "added")
				req.Header.Set("X-New", "added")
				return resp, err
			})
			in := idem.Open()
			req := newRequest(t, in, "POST", "http://api/boxes", "x", "X-Own", "mine")
			_, _, err := r.send(req)
			require.NoError(t, err)
			for _, h := range r.all() {
				assert.Equal(t, []string{in.Key()}, h.keys)
				assert.Empty(t, h.header["X-New"])
			}
			assert.Empty(t, req.Header["X-New"])
			r.transport.Base = base
		}, status(503), drop, created)
	})
}

// Source: Modern-Treasury/modern-treasury-python#70. With an Intent, a differing
// header is refused, unless IntentWins.
func TestCase_KEY_7(t *testing.T) {
	adopt := func(key string) *idem.Intent {
		in, err := idem.Adopt(key, since())
		require.NoError(t, err)
		return in
	}
	tests := map[string]struct {
		in     *idem.Intent
		header []string
		wins   bool
		want   string // on the wire
		err    error
	}{
		"no Intent":               {nil, []string{"Idempotency-Key", "mine-1"}, false, "mine-1", nil},
		"map key of other case":   {nil, []string{"idempotency-KEY", "mine-1"}, false, "mine-1", nil},
		"twice the same":          {nil, []string{"Idempotency-Key", "mine-1", "Idempotency-Key", "mine-1"}, false, "mine-1", nil},
		"twice, cases":            {nil, []string{"Idempotency-Key", "mine-1", "idempotency-key", "mine-1"}, false, "mine-1", nil},
		"and an empty one":        {nil, []string{"Idempotency-Key", "", "Idempotency-Key", "mine-1"}, false, "mine-1", nil},
		"two":                     {nil, []string{"Idempotency-Key", "mine-1", "Idempotency-Key", "mine-2"}, false, "", idem.ErrKeyConflict},
		"two, cases":              {nil, []string{"Idempotency-Key", "mine-1", "idempotency-key", "mine-2"}, false, "", idem.ErrKeyConflict},
		"Intent agrees":           {adopt("mine-1"), []string{"Idempotency-Key", "mine-1"}, false, "mine-1", nil},
		"Intent agrees, case":     {adopt("mine-1"), []string{"IDEMPOTENCY-KEY", "mine-1"}, false, "mine-1", nil},
		"Intent disagrees":        {adopt("mine-1"), []string{"Idempotency-Key", "mine-2"}, false, "", idem.ErrKeyConflict},
		"Intent differs by case":  {adopt("mine-1"), []string{"Idempotency-Key", "Mine-1"}, false, "", idem.ErrKeyConflict},
		"Intent differs by space": {adopt("mine-1"), []string{"Idempotency-Key", "mine-1 "}, false, "", idem.ErrKeyConflict},
		"Intent among two":        {adopt("mine-1"), []string{"Idempotency-Key", "mine-1", "Idempotency-Key", "mine-2"}, false, "", idem.ErrKeyConflict},
		"Intent wins":             {adopt("mine-1"), []string{"Idempotency-Key", "mine-2"}, true, "mine-1", nil},
		"Intent wins over two":    {adopt("mine-1"), []string{"Idempotency-Key", "mine-2", "idempotency-key", "mine-3"}, true, "mine-1", nil},
		"no Intent to win":        {nil, []string{"Idempotency-Key", "mine-2", "idempotency-key", "mine-3"}, true, "", idem.ErrKeyConflict},
		"Intent and empty":        {adopt("mine-1"), []string{"Idempotency-Key", ""}, false, "mine-1", nil},
		"Intent and nil UUID":     {adopt("mine-1"), []string{"Idempotency-Key", "00000000-0000-0000-0000-000000000000"}, false, "mine-1", nil},
		"nil UUID, no Intent":     {nil, []string{"Idempotency-Key", "00000000-0000-0000-0000-000000000000"}, false, "", idem.ErrInvalidKey},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				r.transport.IntentWins = test.wins
				req := newRequest(t, test.in, "POST", "http://api/charges", "x", test.header...)
				before := req.Header.Clone()
				_, _, err := r.send(req)
				assert.Equal(t, before, req.Header, "the caller's request was changed")
				if test.err != nil {
					assert.ErrorIs(t, err, test.err)
					assert.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
					assert.NotContains(t, err.Error(), "mine-")
					assert.Zero(t, r.count())
					return
				}
				require.NoError(t, err)
				require.Equal(t, 2, r.count())
				assert.Equal(t, []string{test.want}, r.all()[0].keys)
			}, status(503), created)
		})
	}
}

// Source: Comfy-Org/comfy-python-sdk#79. The aliasing rule: a stream is copied at
// the first send; of a buffer that was changed meanwhile nothing more is sent.
func TestCase_KEY_8(t *testing.T) {
	const text = `{"amount":100}`
	type body struct {
		req    func(t *testing.T, in *idem.Intent) *http.Request
		change func()
		hits   int // 1: stopped, 2: sent again as it was
	}
	post := func(t *testing.T, in *idem.Intent, b io.Reader) *http.Request {
		req, err := http.NewRequestWithContext(idem.WithIntent(context.Background(), in), "POST", "http://api/charges", b)
		require.NoError(t, err)
		return req
	}
	tests := map[string]func() body{
		"bytes.Reader": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request { return post(t, in, bytes.NewReader(data)) }, func() { data[10] = '9' }, 1}
		},
		"bytes.Buffer": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request { return post(t, in, bytes.NewBuffer(data)) }, func() { data[10] = '9' }, 1}
		},
		"bytes.Buffer without GetBody": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request {
				req := post(t, in, bytes.NewBuffer(data))
				req.GetBody = nil
				return req
			}, func() { data[10] = '9' }, 1}
		},
		"stream": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request {
				return post(t, in, &countedBody{Reader: bytes.NewReader(data)})
			}, func() { data[10] = '9' }, 2}
		},
		"GetBody of a live object, short": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request {
				req := post(t, in, &countedBody{Reader: bytes.NewReader(bytes.Clone(data))})
				req.ContentLength = int64(len(data))
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(bytes.Clone(data))), nil }
				return req
			}, func() { data[10] = '9' }, 2}
		},
		"GetBody of a live object, longer than MaxBody": func() body {
			data := []byte(text)
			return body{func(t *testing.T, in *idem.Intent) *http.Request {
				req := post(t, in, &countedBody{Reader: bytes.NewReader(bytes.Clone(data))})
				req.ContentLength = int64(len(data))
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(bytes.Clone(data))), nil }
				return req
			}, func() { data[10] = '9' }, 1}
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			b := prepare()
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				r.transport.OnAttempt = func(context.Context, idem.Attempt) { b.change() }
				if b.hits == 1 {
					r.transport.MaxBody = 1
				}
				resp, _, err := r.send(b.req(t, in))
				assert.Equal(t, b.hits, r.count())
				assert.Equal(t, text, r.all()[0].body)
				if b.hits == 1 {
					assert.ErrorIs(t, err, idem.ErrNotRepeatable)
					assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
			}, status(503), created)
		})
	}
	t.Run("Client", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			live := map[string]int{"amount": 100}
			r.transport.OnAttempt = func(context.Context, idem.Attempt) { live["amount"] = 900 }
			_, err := r.caller(t).Call(t.Context(), idem.Open(), "POST", "/charges", live, nil)
			require.NoError(t, err)
			assert.Equal(t, 2, r.count())
			assert.Equal(t, text, r.all()[1].body)
		}, status(503), created)
	})
	// The same under net/http's own replay, within one attempt.
	t.Run("replayed by net/http", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.warm(t, 1)
			data := []byte(text)
			req := post(t, idem.Open(), bytes.NewReader(data))
			r.server.mu.Lock()
			r.steps = []step{func(*server, http.ResponseWriter, *http.Request, hit) {
				data[10] = '9' // the request was read whole
				panic(http.ErrAbortHandler)
			}, created}
			r.server.mu.Unlock()
			_, _, err := r.send(req)
			assert.ErrorIs(t, err, idem.ErrNotRepeatable)
			assert.Equal(t, 1, r.count())
		}, created)
	})
}

// Source: stripe/stripe-go#71. In the bubble the clock stands still.
func TestCase_KEY_9(t *testing.T) {
	mixedRow(t, func(t *testing.T, _ *rig) {
		const goroutines, each = 100, 1000
		keys := make([][]string, goroutines)
		start := time.Now()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for range each {
					keys[g] = append(keys[g], idem.Open().Key())
				}
			})
		}
		wg.Wait()
		require.Equal(t, start, time.Now())
		seen := make(map[string]bool, goroutines*each)
		for _, list := range keys {
			for _, key := range list {
				seen[key] = true
			}
		}
		assert.Len(t, seen, goroutines*each)
	}, created)
}

// Source: darshanturakhia.com, "payment-api-double-charge-idempotency".
func TestCase_KEY_10(t *testing.T) {
	slow := execThen(func(s *server, w http.ResponseWriter, r *http.Request, h hit) { hold(300*time.Millisecond)(s, w, r, h) })
	t.Run("unknown", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = 100 * time.Millisecond
			in := idem.Open()
			_, _, err := r.post(context.Background(), in, "amount=1")
			e := theError(t, err)
			assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			assert.Equal(t, in.Key(), e.Key)
			assert.ErrorIs(t, err, idem.ErrExhausted)
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "nobody set a deadline")
			assert.True(t, e.Timeout())
			assert.NotContains(t, err.Error(), in.Key())
			assert.Equal(t, 3, e.Attempts)
			assert.Equal(t, 3, r.count())
			assert.Equal(t, 1, r.done())
		}, slow)
	})
	t.Run("replay", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = 100 * time.Millisecond
			resp, _, err := r.post(context.Background(), idem.Open(), "amount=1")
			require.NoError(t, err)
			assert.Equal(t, idem.Replayed, idem.ResultOf(resp).Replay)
			assert.Equal(t, 3, r.count())
			assert.Equal(t, 1, r.done())
		}, slow, slow, created)
	})
}

// Source: beam-community/stripity-stripe#734. GET and HEAD never carry a key, not
// even the caller's own; DELETE carries that of its Intent only.
func TestCase_KEY_11(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS", "PUT"} {
		t.Run(method+" without Intent", func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				wire := r.written()
				resp, _, err := r.send(newRequest(t, nil, method, "http://api/charges/1", ""))
				require.NoError(t, err)
				assert.Equal(t, 200, resp.StatusCode)
				assert.Equal(t, 2, r.count(), "an idempotent method is repeated")
				assert.Empty(t, wire.lines("idempoten"))
				assert.Empty(t, idem.ResultOf(resp).Key)
			}, status(503), status(200))
		})
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE"} {
		t.Run(method+" with Intent", func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				wire := r.written()
				in := idem.Open()
				_, _, err := r.send(newRequest(t, in, method, "http://api/charges/1", "", "Idempotency-Key", in.Key()))
				require.NoError(t, err)
				assert.Equal(t, 2, r.count())
				assert.Empty(t, wire.lines("idempoten"))
				assert.Equal(t, idem.NotExecuted, in.Outcome(), "a GET is nothing that the Intent did")
				assert.Empty(t, in.Attempts())
				// and it is not bound by it
				_, _, err = r.send(newRequest(t, in, "POST", "http://api/charges", "x"))
				require.NoError(t, err)
				assert.Equal(t, idem.Answered, in.Outcome())
			}, status(503), status(200))
		})
	}
	t.Run("contract that names POST only", func(t *testing.T) {
		mixedRow(t, func(t *testing.T, r *rig) {
			wire := r.written()
			r.transport.Contract = contract.Contract{Methods: []string{"POST"}}
			in := idem.Open()
			for _, method := range []string{"PUT", "DELETE", "POST"} {
				_, _, err := r.send(newRequest(t, in, method, "http://api/charges/1", "x"))
				require.NoError(t, err)
			}
			assert.Equal(t, []string{"Idempotency-Key: " + in.Key()}, wire.lines("idempoten"))
		}, status(200))
	})
}

// Source: TestSprite/testsprite-cli#103. PUT and DELETE are idempotent (RFC 9110)
// and are repeated without a key; POST and PATCH are not.
func TestCase_KEY_12(t *testing.T) {
	for method, hits := range map[string]int{"POST": 1, "PATCH": 1, "PUT": 3, "DELETE": 3} {
		t.Run(method, func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				_, _, err := r.send(newRequest(t, nil, method, "http://api/things/1", "x"))
				e := theError(t, err)
				assert.Equal(t, hits, r.count())
				assert.Equal(t, hits, e.Attempts)
				assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
				assert.Equal(t, hits == 1, errors.Is(err, idem.ErrNotRepeatable))
				assert.Equal(t, hits == 3, errors.Is(err, idem.ErrExhausted))
			}, lost)
		})
	}
	// Where nothing has left, there is nothing to repeat: any method goes on.
	for _, method := range writes {
		t.Run("refused/"+method, func(t *testing.T) {
			mixedRow(t, func(t *testing.T, r *rig) {
				r.down("api")
				_, _, err := r.send(newRequest(t, nil, method, "http://api/things/1", "x"))
				e := theError(t, err)
				assert.Equal(t, 3, e.Attempts)
				assert.Zero(t, e.Sends)
				assert.Equal(t, idem.NotExecuted, e.Outcome)
				assert.True(t, strings.HasSuffix(e.Error(), "never sent"), e.Error())
			}, created)
		})
	}
}
