package idem

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// An Intent is one thing that the caller wants done once. Open it where the
// decision is made (the click, the job, the row), not where the request is
// built, and name the variable after the deed:
//
//	charge := idem.Open()
//
// Every attempt of every call with one Intent carries the same key, so that the
// server does the work once. The first keyed request binds the Intent to its
// method, URL and body; the same request may be sent again with it, another is
// refused (ErrIntentReused).
//
// An Intent is used by pointer and is safe for concurrent use. There is nothing
// to close. The zero Intent is refused (ErrNoIntent), except by UnmarshalJSON.
// Its key lives as long as the process: write State down to keep it longer.
type Intent struct {
	key    *string   // a pointer, so that fmt shows an address where it may call no method
	since  time.Time // earliest time at which the key can have been sent by others; zero: none
	bad    error     // why this Intent is refused wherever it is used
	around Layer

	book ledger // what became of its sends

	mu       sync.Mutex
	children map[string]*Intent
	calls    int
	bound    bool // to a request with the hash quick
	written  bool // State was taken: keep sha up to date
	seed     maphash.Seed
	quick    uint64  // in-process hash of method, URL and body
	sha      string  // fingerprint that can be written down; empty: not known
	asking   *source // of a call under way, from which sha can be made; nil: none, or it is known
	request  *http.Request
	saved    time.Time // the Since of the first State that was taken before the first send
	attempts []Attempt
	first    [1]Attempt // backs attempts: most Intents need one
}

// Open mints an Intent with a new key: a UUID of version 4 from the
// cryptographic source. The program ends if that source fails, because a key that
// is not random could be another caller's.
func Open() *Intent {
	together := &struct { // one allocation for both
		Intent
		key string
	}{key: mint()}
	together.Intent.key = &together.key
	return &together.Intent
}

// Adopt makes an Intent of a key that was minted elsewhere. The key is taken
// byte for byte. since is the earliest time at which it can have been sent: the
// key's window runs from there, so a time that is later than the truth can make
// a second effect.
//
// What became of earlier sends is not known here, so its Outcome starts as
// OutcomeUnknown. The error matches ErrInvalidKey; a zero since is an error.
func Adopt(key string, since time.Time) (*Intent, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if since.IsZero() {
		return nil, errors.New("idem: Adopt needs the earliest time at which the key can have been sent")
	}
	return &Intent{key: &key, since: since.Round(0), book: ledger{past: true}}, nil
}

// Derive makes an Intent whose key follows from a business id, so that every
// process that knows the id asks with the same key:
//
//	charge, err := idem.Derive("shop/charge", order.ID, order.CreatedAt)
//
// The key is UUIDv5(UUIDv5(a constant, namespace), name); that never changes.
// The namespace keeps apart what must not meet: the operation, the account, the
// tenant. since is as for Adopt, and Outcome starts as OutcomeUnknown for the
// same reason. An empty name would give every caller one key: it is an error,
// as is a zero since.
func Derive(namespace, name string, since time.Time) (*Intent, error) {
	if name == "" {
		return nil, because(ErrInvalidKey, "Derive needs a name that is not empty")
	}
	if since.IsZero() {
		return nil, errors.New("idem: Derive needs the earliest time at which the key can have been sent")
	}
	return &Intent{key: new(derive(namespace, name)), since: since.Round(0), book: ledger{past: true}}, nil
}

// Key returns the key, in full. On the wire it may be spelled otherwise, as the
// contract asks; Result.Key has that form. A zero Intent has none.
func (in *Intent) Key() string {
	if in.key == nil {
		return ""
	}
	return *in.key
}

// Child returns the Intent of one step of this one. Its key follows from the
// parent's key and the name: the same name gives the same key in every process,
// and in this one the same *Intent. It takes over the parent's past: a child of
// an Intent that was adopted, derived or resumed starts as OutcomeUnknown.
//
// A child is bound and sent by itself and does not carry its parent's Layer. An
// empty name yields an Intent that is refused wherever it is used.
func (in *Intent) Child(name string) *Intent {
	in.mu.Lock()
	defer in.mu.Unlock()
	if child := in.children[name]; child != nil {
		return child
	}
	child := &Intent{since: in.since, bad: in.bad, book: ledger{past: !in.since.IsZero()}}
	switch {
	case in.bad != nil: // the child's, too
	case in.key == nil:
		child.bad = ErrNoIntent
	case name == "":
		child.bad = because(ErrInvalidKey, "a Child needs a name that is not empty")
	default:
		child.key = new(derive(in.Key(), name))
	}
	if in.children == nil {
		in.children = make(map[string]*Intent)
	}
	in.children[name] = child
	return child
}

// Outcome returns what is known now about the request that the Intent is bound
// to. It knows of requests that carry the Intent itself, in their context or as a
// parameter; of one that was only given its key by hand it knows nothing. While a
// call is under way it is Answered or OutcomeUnknown; once Answered by 2xx, by a
// replay below 500, or by what the contract lists as settled it stays so.
func (in *Intent) Outcome() Outcome {
	if in.key == nil {
		return OutcomeUnknown
	}
	return in.book.outcome(0)
}

// Attempts returns the attempts made with this Intent, over all calls, oldest
// first; of very many, the first and the newest thousand. The slice is a copy.
func (in *Intent) Attempts() []Attempt {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]Attempt(nil), in.attempts...)
}

// sentSince returns the earliest time at which the key can have been sent, given
// when this process first sent it.
func (in *Intent) sentSince(first time.Time) time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, t := range []time.Time{in.since, in.saved} {
		if !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}

func (in *Intent) record(a *Attempt) {
	const most = 1000
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.attempts == nil:
		in.attempts = in.first[:0]
	case len(in.attempts) > most:
		copy(in.attempts[1:], in.attempts[2:])
		in.attempts = in.attempts[:most]
	}
	in.attempts = append(in.attempts, *a)
}

// nextCall returns the number of a call that begins, counted from 1.
func (in *Intent) nextCall() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	return in.calls
}

// usable returns why this Intent cannot be used, or nil.
func (in *Intent) usable() error {
	switch {
	case in == nil:
		return because(ErrNoIntent, "it is nil; only reads go without one")
	case in.bad != nil:
		return in.bad
	case in.key == nil:
		return because(ErrNoIntent, "it is zero; use Open")
	}
	return nil
}

// String returns "idem.Intent(key 3f2a1b9c…)". The key is never shown in full;
// of a key that is no UUID only the length is shown.
func (in *Intent) String() string {
	if in == nil || in.key == nil {
		return "idem.Intent(none)"
	}
	return fmt.Sprintf("idem.Intent(key %s)", shortKey(in.Key()))
}

// Format prints String for every verb, so that %+v and %#v show no key either.
func (in *Intent) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, in.String()) }

// LogValue returns a group of the short key, the outcome and the number of
// attempts.
func (in *Intent) LogValue() slog.Value {
	if in == nil || in.key == nil {
		return slog.StringValue("none")
	}
	return slog.GroupValue(
		slog.String("key", shortKey(in.Key())),
		slog.String("outcome", in.Outcome().String()),
		slog.Int("attempts", len(in.Attempts())),
	)
}

type intentKey struct{}

// WithIntent returns a context that carries in to the Transport: every request
// with this context whose method carries a key (POST, PATCH, PUT and DELETE, if
// the contract names no others) is one of in. A write whose method carries none
// there counts in in's Outcome, but asking again with in does the work again. A
// nil Intent is not "none": the request is refused with ErrNoIntent, so that a
// forgotten Intent does not go out without a key.
func WithIntent(ctx context.Context, in *Intent) context.Context {
	return context.WithValue(ctx, intentKey{}, in)
}

// IntentFromContext returns the Intent that ctx carries, which may be nil, and
// whether it carries one.
func IntentFromContext(ctx context.Context) (*Intent, bool) {
	in, ok := ctx.Value(intentKey{}).(*Intent)
	return in, ok
}
