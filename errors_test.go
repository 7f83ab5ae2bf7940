package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wellFormed checks what holds for every text of ours.
func wellFormed(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	text := err.Error()
	assert.True(t, strings.HasPrefix(text, "idem: "), text)
	assert.NotContains(t, text, "\n")
	assert.NotContains(t, text, "\r")
	assert.NotContains(t, text, "SECRET")
	assert.NotContains(t, text, "idem: idem:")
	assert.Less(t, len(text), 1000)
	assert.NotContains(t, strings.TrimPrefix(text, "idem: "), "idem: ", "the prefix stands once")
}

// Every error that can be had begins with "idem: ", is one line and tells
// nothing of URL, userinfo, query, body or key.
func TestErrors_Texts(t *testing.T) {
	const secretKey = "SECRET-key-of-the-caller"
	adopted := func(t *testing.T) *idem.Intent {
		t.Helper()
		in, err := idem.Adopt(secretKey, since())
		require.NoError(t, err)
		return in
	}
	send := func(change func(*http.Request) *http.Request) func(*testing.T, *rig) error {
		return func(t *testing.T, r *rig) error {
			req := keyedPost(t, adopted(t), "http://SECRET1:SECRET2@api/SECRET3?SECRET4=SECRET5", strings.NewReader("SECRET6"))
			req.Header.Set("X-Token", "SECRET7")
			if change != nil {
				req = change(req)
			}
			resp, err := r.transport.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
	}
	within := func(in *idem.Intent) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request { return r.WithContext(idem.WithIntent(r.Context(), in)) }
	}
	for name, c := range map[string]struct {
		s  step
		do func(*testing.T, *rig) error
	}{
		"lost":         {lost, send(nil)},
		"cut":          {cut(1, 5), send(nil)},
		"malformed":    {raw("SECRET\r\nSECRET\r\n\r\n"), send(nil)},
		"bad header":   {raw("HTTP/1.1 200 OK\r\nSECRET\r\n\r\n"), send(nil)},
		"bad length":   {raw("HTTP/1.1 200 OK\r\nContent-Length: SECRET\r\n\r\n"), send(nil)},
		"bad encoding": {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: SECRET\r\n\r\n"), send(nil)},
		"bad status":   {raw("HTTP/1.1 SECRET OK\r\n\r\n"), send(nil)},
		"bad chunk":    {raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n"), send(nil)},
		"stall": {stall, func(t *testing.T, r *rig) error {
			r.transport.AttemptTimeout = time.Second
			return send(nil)(t, r)
		}},
		"deadline": {stall, send(func(r *http.Request) *http.Request {
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			t.Cleanup(cancel)
			return r.WithContext(ctx)
		})},
		"dial":        {drop, func(t *testing.T, r *rig) error { r.down("api"); return send(nil)(t, r) }},
		"nil Intent":  {created, send(within(nil))},
		"zero Intent": {created, send(within(new(idem.Intent)))},
		"empty child": {created, send(within(idem.Open().Child("")))},
		"conflict":    {created, send(func(r *http.Request) *http.Request { r.Header.Set("Idempotency-Key", "SECRET8"); return r })},
		"two": {created, send(func(r *http.Request) *http.Request {
			r.Header["Idempotency-Key"] = []string{"SECRET8", "SECRET9"}
			return r
		})},
		"scheme":       {created, send(func(r *http.Request) *http.Request { r.URL.Scheme = "ftp"; return r })},
		"header value": {created, send(func(r *http.Request) *http.Request { r.Header.Set("X-A", "SECRET\n"); return r })},
		"host":         {created, send(func(r *http.Request) *http.Request { r.URL.Host = ""; return r })},
		"body":         {created, send(func(r *http.Request) *http.Request { r.Body, r.GetBody = &opaque{r: failing("SECRET")}, nil; return r })},
		"body error of many lines": {created, send(func(r *http.Request) *http.Request {
			r.Body, r.GetBody = &opaque{r: readerFunc(func([]byte) (int, error) { return 0, errors.New("line\nline\r\nline") })}, nil
			return r
		})},
		"fields": {created, func(t *testing.T, r *rig) error {
			r.transport.MaxAttempts, r.transport.MaxRetryAfter = -1, -1
			return send(nil)(t, r)
		}},
		"format": {created, func(t *testing.T, r *rig) error {
			r.transport.Contract.Format = contract.Format(1)
			r.transport.Contract.MaxKey = 10
			return send(nil)(t, r)
		}},
		"reused": {created, func(t *testing.T, r *rig) error {
			in := adopted(t)
			_, _, _ = r.post(t.Context(), in, "SECRET10")
			_, _, err := r.post(t.Context(), in, "SECRET11")
			return theError(t, err)
		}},
		"cross origin": {moved(307, "http://SECRET1:SECRET2@other/SECRET3?SECRET"), func(t *testing.T, r *rig) error {
			_, _, err := r.post(t.Context(), adopted(t), "SECRET10")
			return theError(t, err)
		}},
		"wait": {status(503, "Retry-After", "3600"), func(t *testing.T, r *rig) error {
			in := adopted(t)
			_, _, err := r.post(t.Context(), in, "x")
			require.NoError(t, err)
			return in.Attempts()[0].Reason
		}},
		"expired": {created, func(t *testing.T, r *rig) error {
			in, err := idem.Adopt(secretKey, time.Now().Add(-48*time.Hour))
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "x")
			return theError(t, err)
		}},
		"Base without manners": {created, func(t *testing.T, r *rig) error {
			r.transport.Base = baseFunc(func(*http.Request) (*http.Response, error) { return nil, nil })
			return send(nil)(t, r)
		}},
		"Base is an http.Client": {drop, func(t *testing.T, r *rig) error {
			client := &http.Client{Transport: r.transport.Base}
			r.transport.Base = baseFunc(client.Do)
			return send(nil)(t, r)
		}},
		"402":  {statusBody(402, `{"title":"SECRET-no\nnot this"}`), callOf402},
		"409":  {statusBody(409, "SECRET"), callOf402},
		"422":  {statusBody(422, "SECRET"), callOf402},
		"JSON": {statusBody(200, "SECRET"), callOf402},
		"NaN in": {created, func(t *testing.T, r *rig) error {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/SECRET", func() {}, nil)
			return err
		}},
		"path": {created, func(t *testing.T, r *rig) error {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "SECRET", 1, nil)
			return err
		}},
		"no Intent in Call": {created, func(t *testing.T, r *rig) error {
			_, err := r.api(t).Call(t.Context(), nil, "POST", "/SECRET", 1, nil)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var hook told
				r.transport.OnAttempt = hook.hook
				err := c.do(t, r)
				wellFormed(t, err)
				for _, a := range hook.all() {
					if a.Reason != nil {
						require.NotContains(t, a.Reason.Error(), secretKey)
					}
				}
			}, c.s)
		})
	}
	for _, err := range []error{
		idem.ErrNoIntent, idem.ErrInvalidKey, idem.ErrKeyConflict, idem.ErrIntentReused, idem.ErrExpired, idem.ErrCrossOrigin,
		idem.ErrExhausted, idem.ErrWaitTooLong, idem.ErrNotRepeatable, idem.ErrOverBudget, idem.ErrInProgress, idem.ErrMismatch,
	} {
		wellFormed(t, err)
	}
	_, err := idem.Adopt("SECRET key", since())
	wellFormed(t, err)
	_, err = idem.Adopt("k", time.Time{})
	wellFormed(t, err)
	_, err = idem.Derive("SECRET", "", since())
	wellFormed(t, err)
	_, err = idem.Derive("SECRET", "SECRET", time.Time{})
	wellFormed(t, err)
	_, err = idem.Resume(idem.State{}, nil)
	wellFormed(t, err)
	_, err = idem.Resume(idem.State{Key: "SECRET", Since: since(), Fingerprint: "SECRET"}, nil)
	wellFormed(t, err)
	wellFormed(t, idem.Open().UnmarshalJSON([]byte(`{"SECRET`)))
	wellFormed(t, new(idem.Intent).UnmarshalJSON([]byte(`{"key":"SECRET`)))
	_, err = new(idem.Intent).MarshalJSON()
	wellFormed(t, err)
	wellFormed(t, idem.Open().Bind(nil))
	wellFormed(t, new(idem.Outcome).UnmarshalText([]byte("x")))
	wellFormed(t, &idem.Error{})
	wellFormed(t, &idem.Error{Reason: errors.New("one\ntwo"), Last: fmt.Errorf("idem: three: %w", io.EOF)})
}

// callOf402 is a Call whose answer is read into something.
func callOf402(t *testing.T, r *rig) error {
	var out struct{ ID int }
	_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/SECRET?SECRET", "SECRET", &out)
	return err
}

// The switch that Error's documentation tells callers to write, with each end.
func ExampleError_switch() {
	var answer atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answer.Load() == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(int(answer.Load()))
	}))
	defer server.Close()
	client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{MaxAttempts: 1}})
	if err != nil {
		panic(err)
	}
	for _, code := range []int32{201, 402, 429, 0} {
		answer.Store(code)
		charge := idem.Open()
		res, err := client.Call(context.Background(), charge, "POST", "/charges", 4200, nil)
		switch {
		case err == nil:
			fmt.Println("done")
		case res.Outcome == idem.Answered:
			fmt.Println("the server said no:", res.Status)
		case res.Outcome == idem.NotExecuted:
			fmt.Println("certainly not done")
		default:
			fmt.Println("unknown: keep the Intent")
		}
	}
	// Output:
	// done
	// the server said no: 402
	// certainly not done
	// unknown: keep the Intent
}

// errors.Is and errors.As find everything through http.Client.
func TestErrors_ThroughHTTPClient(t *testing.T) {
	cause := errors.New("the user has left")
	for name, c := range map[string]struct {
		s    step
		make func(*rig) context.Context
		is   []error
		not  []error
	}{
		"exhausted": {lost, nil, []error{idem.ErrExhausted}, []error{context.Canceled, context.DeadlineExceeded, idem.ErrNotRepeatable}},
		"cut":       {cut(1, 9), nil, []error{idem.ErrExhausted, io.ErrUnexpectedEOF}, []error{context.Canceled}},
		"cancelled with a cause": {stall, func(*rig) context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			return ctx
		}, []error{cause, context.Canceled}, []error{context.DeadlineExceeded, idem.ErrExhausted}},
		"cancelled with a cause in the wait": {status(503), func(r *rig) context.Context {
			r.transport.Backoff = idem.Exponential(time.Hour, time.Hour)
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			return ctx
		}, []error{cause, context.Canceled}, []error{context.DeadlineExceeded}},
		"deadline with a cause": {stall, func(*rig) context.Context {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, cause)
			time.AfterFunc(time.Hour, cancel)
			return ctx
		}, []error{cause, context.DeadlineExceeded}, []error{context.Canceled}},
		"dial": {drop, func(r *rig) context.Context { r.down("api"); return context.Background() }, []error{idem.ErrExhausted, errRefused}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				ctx := context.Background()
				if c.make != nil {
					ctx = c.make(r)
				}
				in := idem.Open()
				_, _, err := r.post(ctx, in, "{}")
				var outer *url.Error
				require.ErrorAs(t, err, &outer)
				e := theError(t, err)
				for _, target := range c.is {
					require.ErrorIs(t, err, target)
					require.ErrorIs(t, e, target)
				}
				for _, target := range c.not {
					require.NotErrorIs(t, err, target)
				}
				require.Equal(t, in.Key(), e.Key)
				var timeout net.Error
				require.ErrorAs(t, e, &timeout)
				require.Equal(t, errors.Is(err, context.DeadlineExceeded), e.Timeout(), "%v", err)
				require.Equal(t, e.Timeout(), outer.Timeout())
				require.False(t, e.Temporary())
			}, c.s)
		})
	}
}

// Timeout is true for the caller's time and for that of the last attempt.
func TestErrors_Timeout(t *testing.T) {
	for name, c := range map[string]struct {
		err  *idem.Error
		want bool
	}{
		"nothing":           {&idem.Error{}, false},
		"caller":            {&idem.Error{Reason: context.DeadlineExceeded}, true},
		"caller, wrapped":   {&idem.Error{Reason: fmt.Errorf("x: %w", context.DeadlineExceeded)}, true},
		"cancel":            {&idem.Error{Reason: context.Canceled}, false},
		"last":              {&idem.Error{Reason: idem.ErrExhausted, Last: &net.DNSError{IsTimeout: true}}, true},
		"last, no timeout":  {&idem.Error{Reason: idem.ErrExhausted, Last: &net.DNSError{}}, false},
		"last, deadline":    {&idem.Error{Last: context.DeadlineExceeded}, true},
		"reason is a timer": {&idem.Error{Reason: idem.ErrExhausted, Last: io.EOF}, false},
	} {
		require.Equal(t, c.want, c.err.Timeout(), name)
	}
	t.Run("attempt's", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.AttemptTimeout = time.Second
			_, _, err := r.post(t.Context(), idem.Open(), "{}")
			var n net.Error
			require.ErrorAs(t, err, &n)
			require.True(t, n.Timeout(), "at the top, through http.Client")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		}, stall)
	})
	t.Run("http.Client.Timeout destroys the error; the Intent knows", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			client := &http.Client{Transport: r.transport, Timeout: time.Second}
			in := idem.Open()
			_, err := client.Do(keyedPost(t, in, "http://api/x", strings.NewReader("{}"))) //nolint:bodyclose // there is none
			var n net.Error
			require.ErrorAs(t, err, &n)
			require.True(t, n.Timeout())
			require.Equal(t, idem.OutcomeUnknown, in.Outcome())
			require.Len(t, in.Attempts(), 1)
			require.Equal(t, 1, r.count())
		}, stall)
	})
	t.Run("wait that would pass the deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Backoff = idem.Exponential(time.Hour, time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := r.post(ctx, idem.Open(), "{}")
			e := theError(t, err)
			require.ErrorIs(t, err, idem.ErrWaitTooLong)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, e.Timeout())
			require.NoError(t, ctx.Err(), "at once")
		}, lost)
	})
}

// A cause of the caller's with many lines or secrets is the caller's own; ours
// stays one line.
func TestErrors_CauseOfManyLines(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("one\n\ttwo\r\nthree"))
		_, _, err := r.post(ctx, idem.Open(), "{}")
		require.NotContains(t, theError(t, err).Error(), "\n")
		require.Contains(t, theError(t, err).Error(), "one; two; three")
	}, created)
}
