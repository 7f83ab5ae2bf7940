package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/require"
)

// An answer that is not 2xx is an *Error with all that was answered.
func TestCall_NotOK(t *testing.T) {
	problem := `{"type":"https://e/no-funds","title":"No funds","status":402,"detail":"30 of 50","instance":"/i/1","balance":30,"accounts":["/a"]}`
	for _, code := range []int{400, 401, 402, 403, 404, 409, 410, 418, 422, 429, 500, 501, 503, 304, 300} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				out := map[string]any{"kept": true}
				res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, &out)
				e := theError(t, err)
				require.Equal(t, e.Result, res)
				require.Equal(t, code, res.Status)
				require.Equal(t, in.Key(), res.Key)
				require.Equal(t, r.count(), res.Attempts)
				require.Equal(t, "v", e.Header.Get("X-H"))
				require.Equal(t, map[string]any{"kept": true}, out, "out is not written to")
				if code != 304 {
					require.Equal(t, problem, string(e.Body))
					require.NotNil(t, e.Problem)
					require.Equal(t, "https://e/no-funds", e.Problem.Type)
					require.Equal(t, "No funds", e.Problem.Title)
					require.Equal(t, 402, e.Problem.Status)
					require.Equal(t, "30 of 50", e.Problem.Detail)
					require.Equal(t, "/i/1", e.Problem.Instance)
					require.Equal(t, map[string]json.RawMessage{"balance": json.RawMessage("30"), "accounts": json.RawMessage(`["/a"]`)}, e.Problem.Extra)
				}
				require.NotContains(t, e.Error(), "30 of 50")
				require.Contains(t, e.Error(), fmt.Sprint("status ", code))
				if code == 409 {
					require.ErrorIs(t, err, idem.ErrInProgress)
				}
				if code == 422 {
					require.ErrorIs(t, err, idem.ErrMismatch)
					require.Equal(t, 1, r.count())
				}
				r.oneKey()
			}, statusBody(code, problem, "Content-Type", "application/problem+json; charset=utf-8", "X-H", "v"))
		})
	}
	t.Run("outcomes", func(t *testing.T) {
		for code, outcome := range map[int]idem.Outcome{
			400: idem.Answered, 402: idem.Answered, 403: idem.Answered, 404: idem.Answered,
			401: idem.NotExecuted, 413: idem.NotExecuted, 429: idem.NotExecuted,
			409: idem.OutcomeUnknown, 500: idem.OutcomeUnknown, 501: idem.OutcomeUnknown, 302: idem.OutcomeUnknown, 408: idem.OutcomeUnknown,
		} {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
				require.Error(t, err)
				require.Equal(t, outcome, res.Outcome, code)
			}, status(code))
		}
	})
	t.Run("GET", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			res, err := r.api(t).Call(t.Context(), nil, "GET", "/x", nil, nil)
			require.Equal(t, 404, theError(t, err).Status)
			require.Equal(t, 404, res.Status)
			require.Empty(t, res.Key)
		}, statusBody(404, "no"))
	})
}

func TestCall_HugeErrorBody(t *testing.T) {
	for name, s := range map[string]step{
		"length known": statusBody(400, strings.Repeat("x", 5<<20)),
		"chunked": func(_ *server, w http.ResponseWriter, _ *http.Request, _ hit) {
			w.WriteHeader(400)
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("x", 50_000)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				res, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
				e := theError(t, err)
				require.Len(t, e.Body, 64<<10)
				require.Equal(t, 400, res.Status)
				require.Nil(t, e.Problem)
			}, s)
		})
	}
	t.Run("endless", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			res, err := r.api(t).Call(ctx, idem.Open(), "POST", "/x", 1, nil)
			require.Error(t, err)
			require.Equal(t, 400, res.Status)
			require.LessOrEqual(t, time.Since(start), time.Hour)
		}, func(_ *server, w http.ResponseWriter, r *http.Request, _ hit) {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, "why")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	})
}

// RFC 9457: members of a wrong type are ignored; nothing else is lost.
func TestCall_Problem(t *testing.T) {
	for body, want := range map[string]*idem.Problem{
		`{}`: {Type: "about:blank"},
		`{"type":1,"title":[],"status":"402","detail":null,"instance":{}}`: {Type: "about:blank"},
		`{"type":"urn:x","title":"T","status":402.5}`:                      {Type: "urn:x", Title: "T"},
		`{"type":"urn:x","status":1e2}`:                                    nil, // 100, or ignored
		`{"Title":"T"}`:                                                    {Type: "about:blank", Extra: map[string]json.RawMessage{"Title": json.RawMessage(`"T"`)}},
		`{"title":"T","x":{"y":[1]}}`:                                      {Type: "about:blank", Title: "T", Extra: map[string]json.RawMessage{"x": json.RawMessage(`{"y":[1]}`)}},
		`{"type":""}`:                                                      {Type: ""},
		`{"type":null}`:                                                    {Type: "about:blank"},
	} {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			e := theError(t, err)
			if want == nil {
				require.NotNil(t, e.Problem)
				return
			}
			require.Equal(t, want, e.Problem, body)
		}, statusBody(400, body, "Content-Type", "Application/Problem+JSON"))
	}
	for body, media := range map[string]string{
		`[1]`:           "application/problem+json",
		`null`:          "application/problem+json",
		`"x"`:           "application/problem+json",
		``:              "application/problem+json",
		`{"title":`:     "application/problem+json",
		`{"title":"T"}`: "application/json",
		`{"title":"U"}`: "",
	} {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			e := theError(t, err)
			require.Nil(t, e.Problem, body)
			require.Equal(t, body, string(e.Body))
		}, statusBody(400, body, "Content-Type", media))
	}
	t.Run("the title in the text", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, err := r.api(t).Call(t.Context(), idem.Open(), "POST", "/x", 1, nil)
			text := theError(t, err).Error()
			require.NotContains(t, text, "\n")
			require.Less(t, len(text), 500)
		}, statusBody(400, `{"title":"line\nbreak `+strings.Repeat("long", 1000)+`"}`, "Content-Type", "application/problem+json"))
	})
}

// Without an answer the Result is filled in as well.
func TestCall_NoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		in := idem.Open()
		res, err := r.api(t).Call(t.Context(), in, "POST", "/x", 1, nil)
		e := theError(t, err)
		require.Equal(t, idem.Result{Key: in.Key(), Attempts: 3, Sends: 3}, res)
		require.Equal(t, e.Result, res)
		require.ErrorIs(t, err, idem.ErrExhausted)
		require.Nil(t, e.Header)
		require.Nil(t, e.Problem)
		var same *idem.Error
		require.ErrorAs(t, err, &same)
		require.IsType(t, &idem.Error{}, err, "without a *url.Error around it")
		r.oneKey()
	}, lost)
	t.Run("deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the shop closes"))
			defer cancel()
			in := idem.Open()
			res, err := r.api(t).Call(ctx, in, "POST", "/x", 1, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "the shop closes")
			require.True(t, theError(t, err).Timeout())
			require.Equal(t, idem.Result{Key: in.Key(), Attempts: 1, Sends: 1}, res)
		}, stall)
	})
	t.Run("cancel on entry", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			res, err := r.api(t).Call(ctx, idem.Open(), "POST", "/x", 1, nil)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, idem.NotExecuted, res.Outcome)
			require.Zero(t, r.count())
		}, created)
	})
}
