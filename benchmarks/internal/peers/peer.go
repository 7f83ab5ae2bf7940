// Package peers puts Go's HTTP clients that retry behind one interface, one file
// each, so that all can be measured at the same work.
package peers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/idem-go/idem"
)

// A Client makes one call, attempts it as often as it sees fit, and reads and
// closes the answer, as an application does. An error means that it ended without
// a whole answer. It is safe for concurrent use.
type Client interface {
	Do(ctx context.Context, c Call) (status int, err error)
}

// A Keeper is a Client whose key outlives a call. The calls with a context from
// Open have one key, and Outcome says what became of them.
type Keeper interface {
	Client
	Open(ctx context.Context) context.Context
	Outcome(ctx context.Context) idem.Outcome
}

// ErrNoSuchBody says that a client has no way to take a body of this form.
var ErrNoSuchBody = errors.New("peers: the client does not take such a body")

// Config is what every client gets, so that all follow one policy: errors and 5xx
// are attempted again, at most Attempts in all, with Wait between two.
type Config struct {
	Transport http.RoundTripper
	BaseURL   string
	Attempts  int
	Wait      time.Duration // zero: none
	MaxBody   int64         // what a client that has a bound may read into memory; zero: its default
}

// A Peer is one client under measurement.
type Peer struct {
	Name  string
	Keys  Keys
	Parts string // the letters of the parts that it takes part in
	New   func(Config) Client
}

// Takes reports whether the peer takes part in the part with this letter.
func (p Peer) Takes(part string) bool { return strings.Contains(p.Parts, part) }

// Keys says who makes the idempotency key.
type Keys uint8

const (
	GivenKey Keys = iota // the caller, or there is none
	OwnKey               // the client, if the caller gives none
	NoKey                // nobody: it stands for requests without one
)

// The names that the report's comparisons need.
const (
	Bare        = "net/http"
	BareTimeout = "net/http, Timeout"
	RetryableRT = "go-retryablehttp RoundTripper"
	RTTimeout   = RetryableRT + ", Timeout"
	Floor       = "floor"
	Idem        = "idem"
	IdemClient  = "idem, Client.Do"
	IdemUnkeyed = "idem, no key"
	Stripe      = "stripe-go"
)

// All returns the peers in the order of the report.
func All() []Peer {
	return []Peer{
		{Name: Bare, Parts: "ABCF", New: newNetHTTP(0)},
		{Name: BareTimeout, Parts: "ABC", New: newNetHTTP(timeout)},
		{Name: "go-retryablehttp Client", Parts: "ABCDEF", New: newRetryable},
		{Name: RetryableRT, Parts: "ABCDEF", New: newRetryableRoundTripper(0)},
		{Name: RTTimeout, Parts: "ABC", New: newRetryableRoundTripper(timeout)},
		{Name: "failsafe-go", Parts: "ABCDEF", New: newFailsafe},
		{Name: "rehttp", Parts: "ABCDEF", New: newRehttp},
		{Name: "heimdall", Parts: "ABCDEF", New: newHeimdall},
		{Name: "resty 2", Parts: "ABCDEF", New: newResty2},
		{Name: "resty 3", Parts: "ABCDEF", New: newResty3},
		{Name: "azcore", Parts: "ABCDEF", New: newAzcore},
		{Name: "aws-sdk-go-v2", Parts: "ABCDEF", New: newAWS},
		{Name: Stripe, Keys: OwnKey, Parts: "ABCDEF", New: newStripe},
		{Name: "openai-go", Parts: "ABCDEF", New: newOpenAI},
		{Name: Floor, Keys: OwnKey, Parts: "ABCE", New: newFloor(nothing)},
		{Name: Floor + " without a limit of time", Keys: OwnKey, Parts: "A", New: newFloor(theLimit)},
		{Name: Floor + " without a count of sends", Keys: OwnKey, Parts: "A", New: newFloor(theCount)},
		{Name: Floor + " without reading the answer", Keys: OwnKey, Parts: "A", New: newFloor(theReading)},
		{Name: Idem, Keys: OwnKey, Parts: "ABCDEF", New: newIdem},
		{Name: IdemClient, Keys: OwnKey, Parts: "ABCDEF", New: newIdemClient},
		{Name: IdemUnkeyed, Keys: NoKey, Parts: "AB", New: newIdemUnkeyed},
	}
}

// Of returns those of the peers that take part in a part.
func Of(part string) []Peer {
	var list []Peer
	for _, p := range All() {
		if p.Takes(part) {
			list = append(list, p)
		}
	}
	return list
}

// Named returns the peer of that name, which must exist.
func Named(name string) Peer {
	for _, p := range All() {
		if p.Name == name {
			return p
		}
	}
	panic("peers: there is no " + name)
}

// timeout is what a careful user sets, and what idem bounds an attempt by.
const timeout = 30 * time.Second

// retried is the policy for statuses, for the peers that ask for one.
func retried(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }
