package idem

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Attempt is one try that a call made, as it is known at its end.
type Attempt struct {
	Number   int           // within the call, counted from 1
	Call     int           // of the Intent's calls, counted from 1; 1 for a request without a key
	Method   string        // of the request
	Host     string        // of the request
	Start    time.Time     // when the request was handed to Base
	Duration time.Duration // until its end was judged, reading of the body included
	Sends    int           // times that request bytes left; more than 1 if net/http sent again by itself
	Status   int           // of the answer; 0: there was none
	Err      error         // what it met, if it was not answered
	Replay   Replay        // of the answer
	Outcome  Outcome       // of the Intent, as known after it
	Retry    bool          // whether another attempt follows
	Wait     time.Duration // before the next; without Retry: the wait that was too long, if that is the Reason
	Asked    time.Duration // what the server asked to wait (RFC 9110, 10.2.3), whether or not another follows; 0: nothing
	Reason   error         // why no other follows; nil with Retry and for an answer that is final
}

// LogValue returns the attempt as a group without anything secret: no key, URL,
// header or body. Error texts are those of net/http and of the Base, without URLs
// and without what net/http quotes of an answer that it cannot read.
func (a Attempt) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int("number", a.Number), slog.Int("call", a.Call),
		slog.String("method", a.Method), slog.String("host", a.Host),
		slog.Duration("duration", a.Duration), slog.Int("sends", a.Sends),
	}
	if a.Status != 0 {
		attrs = append(attrs, slog.Int("status", a.Status))
	}
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", plain(a.Err)))
	}
	if a.Replay == Replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	attrs = append(attrs, slog.String("outcome", a.Outcome.String()))
	if a.Retry {
		attrs = append(attrs, slog.Duration("wait", a.Wait))
	}
	if a.Reason != nil {
		attrs = append(attrs, slog.String("reason", plain(a.Reason)))
	}
	return slog.GroupValue(attrs...)
}

// AttemptNumber returns the number of the attempt that a request with this
// context is part of, counted from 1, or 0 outside of one. It is for layers
// below the Transport, such as signing and tracing.
func AttemptNumber(ctx context.Context) int {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a.number
	}
	return 0
}

// isPartOfAttempt reports whether req is the attempt of another Transport above,
// and not one that a layer between them makes for itself: with another Intent, or
// with none where the attempt's has one, or a read through a Client of its own.
func isPartOfAttempt(req *http.Request) bool {
	ctx := req.Context()
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return false
	}
	in, has := IntentFromContext(ctx)
	if above, had := IntentFromContext(a); has != had || in != above {
		return false
	}
	if ctx.Value(recorderKey{}) == a.Value(recorderKey{}) || !isSafe(methodOf(req)) {
		return true
	}
	return req.URL != nil && req.URL.String() == a.req.URL.String()
}

type attemptKey struct{}
