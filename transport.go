package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"sync"
	"time"

	"github.com/idem-go/idem/contract"
)

// Transport is an http.RoundTripper that sends a request as often as it takes,
// within its limits, with the one key of its [Intent], and never says more about
// the outcome than it knows. It serves as http.Client.Transport, as httputil.ReverseProxy.Transport
// and below any generated client.
//
//	client := &http.Client{Transport: &idem.Transport{}}
//	req = req.WithContext(idem.WithIntent(ctx, charge))
//
// The zero Transport works; each field says what its zero value means. Of one with
// a field that cannot be every request is an error, and so is NewClient. A
// Transport is used by pointer, is safe for concurrent use, and its fields must
// not be changed after the first use. It holds no connections of its own.
//
// The Transport never mints a key. A request whose context carries no Intent,
// and that brings no key header of its own, goes out without one: it is then
// repeated only if its method is idempotent, or if nothing of it has left.
//
// As http.RoundTripper asks, there is a response and no error whenever the
// server answered, whatever the status; see [ResultOf] and [Intent.Attempts]
// for what became of it. Without a response the error is an [*Error].
type Transport struct {
	// Base makes each attempt; nil: http.DefaultTransport. It must neither repeat
	// requests nor follow redirects itself: the page that a write is redirected to
	// does not answer the write. A Base that is built on net/http shows by httptrace
	// what it sends; with any other, few errors prove that nothing was sent.
	Base http.RoundTripper
	// Around wraps each call, outside of the Intent's own Layer; nil: none.
	Around Layer
	// Contract is how the API spells idempotency; zero: contract.Default.
	Contract contract.Contract
	// MaxAttempts is the most attempts of a call, over all hops of a redirect
	// together; each hop makes at least one. Zero: 4; 1: no repetition; negative: an
	// error.
	MaxAttempts int
	// AttemptTimeout bounds an attempt. Its clock starts with the attempt, and
	// anew when the request is written and with every read of a body that is not
	// in memory; it stops with the head of the answer, or with the end of its
	// body where that is read inside the attempt. So it cuts neither a long
	// upload nor a stream. Zero: 30 s; negative: none.
	AttemptTimeout time.Duration
	// Backoff bounds the Transport's own waits; nil: Exponential(200 ms, 10 s).
	Backoff Backoff
	// MaxRetryAfter is the longest wait that a server may ask for. A longer one
	// ends the call at once, with the response. Zero: 1 min; negative: an error.
	MaxRetryAfter time.Duration
	// Budget bounds repeated attempts over all calls; nil: none. Share one
	// between the Transports that use the same service.
	Budget *Budget
	// MaxBody bounds the bytes that are read into memory of a request body that
	// cannot be read again otherwise (see the package documentation). A longer one is
	// sent once. Zero: 1 MiB; negative: nothing is.
	MaxBody int64
	// MaxResponse bounds the bytes of an answer that are read inside the attempt, so
	// that a body that is cut half way is asked for again. Only answers to requests
	// with a key are. Zero: 1 MiB; negative: nothing is.
	MaxResponse int64
	// IntentWins replaces a key header that differs from the Intent's instead
	// of refusing the request: for clients that always make up a key.
	IntentWins bool
	// OnAttempt is told of each attempt when it has ended, before the wait for
	// the next; nil: nobody is. It runs in the caller's goroutine, with the
	// context that the Layers pass on.
	OnAttempt func(context.Context, Attempt)

	once     sync.Once
	resolved settings
	fault    error
}

// settings are the Transport's fields with their defaults.
type settings struct {
	base           http.RoundTripper
	contract       contract.Contract
	keyHeader      string // canonical; empty: the contract puts the key elsewhere
	maxAttempts    int
	attemptTimeout time.Duration
	backoff        Backoff
	maxRetryAfter  time.Duration
	maxBody        int64
	maxResponse    int64
}

// settings returns the defaults resolved, or what is wrong with the fields.
func (t *Transport) settings() (*settings, error) {
	t.once.Do(func() {
		t.resolved = settings{
			base:           t.base(),
			contract:       t.Contract.WithDefaults(),
			maxAttempts:    cmp.Or(t.MaxAttempts, 4),
			attemptTimeout: cmp.Or(t.AttemptTimeout, 30*time.Second),
			backoff:        t.Backoff,
			maxRetryAfter:  cmp.Or(t.MaxRetryAfter, time.Minute),
			// One less than the most there is: what reads is given one byte more.
			maxBody:     min(cmp.Or(t.MaxBody, defaultMax), math.MaxInt64-1),
			maxResponse: min(cmp.Or(t.MaxResponse, defaultMax), math.MaxInt64-1),
		}
		if t.resolved.contract.Place == contract.InHeader {
			t.resolved.keyHeader = textproto.CanonicalMIMEHeaderKey(t.resolved.contract.Header)
		}
		if t.Backoff == nil {
			t.resolved.backoff = Exponential(200*time.Millisecond, 10*time.Second)
		}
		t.fault = t.validate()
	})
	return &t.resolved, t.fault
}

func (t *Transport) validate() error {
	var faults []error
	if t.MaxAttempts < 0 {
		faults = append(faults, fmt.Errorf("idem: MaxAttempts is %d; 1 means no repetition, 0 the default of 4", t.MaxAttempts))
	}
	if t.MaxRetryAfter < 0 {
		faults = append(faults, fmt.Errorf("idem: MaxRetryAfter is %v; it must not be negative", t.MaxRetryAfter))
	}
	if err := t.Contract.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("idem: the Contract is not valid: %w", err))
	}
	return errors.Join(faults...)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// RoundTrip sends req as the type documentation says. It does not change req
// and closes its body.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return nil, &Error{Result: Result{Outcome: NotExecuted}, Reason: errors.New("idem: the request is nil")}
	}
	if isPartOfAttempt(req) {
		return t.base().RoundTrip(req) // two loops would multiply
	}
	c := &call{Context: req.Context(), transport: t, original: req}
	if from := recorderOf(c.Context); from != nil {
		from.last = c
	}
	if err := c.begin(); err != nil {
		return nil, c.refuse(err)
	}
	return c.run()
}

// CloseIdleConnections closes those of Base, if it has such a method.
func (t *Transport) CloseIdleConnections() {
	if b, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		b.CloseIdleConnections()
	}
}
