package idem_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// postUnder is a POST under in, with an in-memory body unless another is given.
func postUnder(t *testing.T, ctx context.Context, in *idem.Intent, url string, body io.Reader) *http.Request {
	t.Helper()
	if body == nil {
		body = strings.NewReader("a")
	}
	if in != nil {
		ctx = idem.WithIntent(ctx, in)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	require.NoError(t, err)
	return req
}

// fine answers r with 201 and a body.
func fine(r *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 201, ProtoMajor: 1, Header: http.Header{}, Body: body, ContentLength: -1, Request: r}
}

// Only repeated attempts are paid for, not calls that end at once.
func TestBudget_SuccessIsFree(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Budget = idem.NewBudget(0, 1)
		for range 5 {
			_, _, err := r.post(t.Context(), idem.Open(), "a")
			require.NoError(t, err)
		}
		in := idem.Open()
		_, _, err := r.post(t.Context(), in, "a")
		require.NoError(t, err)
		assert.Len(t, in.Attempts(), 2, "the one that is left pays for the second")
	}, created, created, created, created, created, status(503), created)
}

// The margin at the window's end is the attempt's time, where that is longer than
// two minutes.
func TestWindow_MarginOfLongAttempts(t *testing.T) {
	for age, refused := range map[time.Duration]bool{49 * time.Minute: false, 51 * time.Minute: true} {
		bubble(t, func(t *testing.T, r *rig) {
			r.transport.Contract = contract.Contract{Window: time.Hour}
			r.transport.AttemptTimeout = 10 * time.Minute
			in, err := idem.Adopt("k", time.Now().Add(-age))
			require.NoError(t, err)
			_, _, err = r.post(t.Context(), in, "a")
			assert.Equal(t, refused, errors.Is(err, idem.ErrExpired), "%v: %v", age, err)
		}, created)
	}
}

// The attempt's clock starts anew when the request is written, also where the
// body is in memory; a small one is written with the head.
func TestAttemptTimeout_StartsAnewWhenWritten(t *testing.T) {
	for size, took := range map[int]time.Duration{
		0: 40 * time.Second, 2 << 10: 40 * time.Second, 2<<10 + 1: 45 * time.Second, 1 << 20: 45 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			in := idem.Open()
			resp, err := (&idem.Transport{MaxAttempts: 1, Base: through(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GotConn(httptrace.GotConnInfo{})
				time.Sleep(20 * time.Second)
				trace.WroteHeaders()
				if trace.WroteRequest != nil {
					time.Sleep(5 * time.Second)
					trace.WroteRequest(httptrace.WroteRequestInfo{})
				}
				select {
				case <-time.After(20 * time.Second):
					return fine(r, http.NoBody), nil
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			})}).RoundTrip(postUnder(t, t.Context(), in, "http://api/", strings.NewReader(strings.Repeat("x", size))))
			require.NoError(t, err, size)
			resp.Body.Close()
			assert.Equal(t, took, in.Attempts()[0].Duration, size)
		})
	}
}

// A stream that comes while the upload still goes on is not cut by the clock of
// the attempt, which the upload would start again.
func TestAttemptTimeout_NotAfterTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upload, pipe := io.Pipe()
		sent := make(chan error, 1)
		transport := &idem.Transport{MaxBody: -1, MaxResponse: -1, Base: through(func(r *http.Request) (*http.Response, error) {
			body, trace := r.Body, httptrace.ContextClientTrace(r.Context())
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
			go func() {
				_, err := io.Copy(io.Discard, body)
				sent <- errors.Join(err, body.Close())
			}()
			answer, writer := io.Pipe()
			ctx := r.Context()
			go func() {
				select {
				case <-time.After(5 * time.Minute):
					_, _ = io.WriteString(writer, "late")
					writer.Close()
				case <-ctx.Done():
					writer.CloseWithError(ctx.Err())
				}
			}()
			return fine(r, answer), nil
		})}
		resp, err := transport.RoundTrip(postUnder(t, t.Context(), idem.Open(), "http://api/", upload))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		_, _ = io.WriteString(pipe, "more")
		pipe.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "late", string(data))
		resp.Body.Close()
		assert.NoError(t, <-sent)
	})
}

// An empty line beside a key is none, in whatever order they stand.
func TestKey_EmptyLineBesideAKey(t *testing.T) {
	for _, lines := range [][]string{{"k", ""}, {"", "k"}} {
		for _, in := range []*idem.Intent{nil, adopted(t, "k")} {
			bubble(t, func(t *testing.T, r *rig) {
				req := postUnder(t, t.Context(), in, "http://api/charges", nil)
				req.Header["Idempotency-Key"] = lines
				_, _, err := r.send(req)
				require.NoError(t, err)
				assert.Equal(t, []string{"k"}, r.all()[0].keys)
			}, created)
		}
	}
}

func adopted(t *testing.T, key string) *idem.Intent {
	t.Helper()
	in, err := idem.Adopt(key, time.Now())
	require.NoError(t, err)
	return in
}

// A call that ends in the wait after "in progress" tells of it.
func TestError_InProgressWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		_, _, err := r.post(ctx, idem.Open(), "a")
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, idem.ErrInProgress)
	}, status(409, "Retry-After", "30"))
}

// The second header of a contract that asks for it tells the first send, not
// this one.
func TestFirstSentHeader_TheSameOnEachAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{FirstSentHeader: "First-Sent"}
		in := idem.Open()
		for range 2 {
			_, _, err := r.post(t.Context(), in, "a")
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		hits := r.all()
		require.Len(t, hits, 3)
		for _, h := range hits {
			assert.NotEmpty(t, h.header.Get("First-Sent"))
			assert.Equal(t, hits[0].header.Get("First-Sent"), h.header.Get("First-Sent"))
		}
	}, status(503, "Retry-After", "7"), created)
}

// "/a%2Fb" is not "/a/b".
func TestIntent_SpellingOfThePath(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		_, _, err := r.send(postUnder(t, t.Context(), in, "http://api/a%2Fb", nil))
		require.NoError(t, err)
		_, _, err = r.send(postUnder(t, t.Context(), in, "http://api/a/b", nil))
		assert.ErrorIs(t, err, idem.ErrIntentReused)
		assert.Equal(t, 1, r.count())
	}, created)
}

// What a Base shows and does not show is counted with caution.
func TestSends_OddBases(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errRefused}
	for name, c := range map[string]struct {
		base    func(*http.Request, *httptrace.ClientTrace) (*http.Response, error)
		sends   int
		outcome idem.Outcome
	}{
		"no trace, the body is taken again, answered": {func(r *http.Request, _ *httptrace.ClientTrace) (*http.Response, error) {
			if _, err := r.GetBody(); err != nil {
				return nil, err
			}
			return fine(r, http.NoBody), nil
		}, 2, idem.Answered},
		"no trace, the body is taken again, declined": {func(r *http.Request, _ *httptrace.ClientTrace) (*http.Response, error) {
			if _, err := r.GetBody(); err != nil {
				return nil, err
			}
			resp := fine(r, http.NoBody)
			resp.StatusCode = 402
			return resp, nil
		}, 2, idem.OutcomeUnknown},
		"cancelled between a connection and its head": {func(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
			trace.GetConn("api:80")
			trace.GotConn(httptrace.GotConnInfo{})
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, 1, idem.OutcomeUnknown},
		"cancelled while a connection is looked for": {func(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
			trace.GetConn("api:80")
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, 0, idem.NotExecuted},
		"cancelled, no trace, and it says that it dialled": {func(r *http.Request, _ *httptrace.ClientTrace) (*http.Response, error) {
			<-r.Context().Done()
			return nil, refused
		}, 1, idem.OutcomeUnknown},
		"answered, its head not shown": {func(r *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
			trace.GetConn("api:80")
			return fine(r, http.NoBody), nil
		}, 1, idem.Answered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := idem.Open()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				resp, err := (&idem.Transport{MaxAttempts: 1, Base: through(func(r *http.Request) (*http.Response, error) {
					return c.base(r, httptrace.ContextClientTrace(r.Context()))
				})}).RoundTrip(postUnder(t, ctx, in, "http://api/", nil))
				if err == nil {
					resp.Body.Close()
				}
				assert.Equal(t, c.sends, in.Attempts()[0].Sends)
				assert.Equal(t, c.outcome, in.Outcome())
			})
		})
	}
}

// What a Base sends after its attempt has ended is seen all the same.
func TestSends_AfterTheEnd(t *testing.T) {
	for name, late := range map[string]func(*httptrace.ClientTrace){
		"a connection": func(trace *httptrace.ClientTrace) { trace.GotConn(httptrace.GotConnInfo{}) },
		"a head":       func(trace *httptrace.ClientTrace) { trace.WroteHeaders() },
		"both": func(trace *httptrace.ClientTrace) {
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var trace *httptrace.ClientTrace
			transport := &idem.Transport{MaxAttempts: 1, Base: through(func(r *http.Request) (*http.Response, error) {
				trace = httptrace.ContextClientTrace(r.Context())
				trace.GetConn("api:80")
				return nil, errors.New("no connection")
			})}
			in := idem.Open()
			_, err := transport.RoundTrip(postUnder(t, t.Context(), in, "http://api/", nil))
			require.Error(t, err)
			require.Equal(t, idem.NotExecuted, in.Outcome())
			late(trace)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			assert.False(t, in.State().FirstSent.IsZero())
		})
	}
}

// An attempt that is under way at the window's end, less the margin, ends there
// and says why.
func TestWindow_EndsAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.transport.Contract = contract.Contract{Window: 10 * time.Minute}
		r.transport.AttemptTimeout = -1
		in, err := idem.Adopt("k", time.Now().Add(-time.Minute))
		require.NoError(t, err)
		start := time.Now()
		_, _, err = r.post(t.Context(), in, "a")
		require.ErrorIs(t, err, idem.ErrExpired)
		assert.ErrorIs(t, in.Attempts()[0].Err, idem.ErrExpired)
		assert.Equal(t, 7*time.Minute, time.Since(start), "two minutes before the window's end")
	}, stall)
}
