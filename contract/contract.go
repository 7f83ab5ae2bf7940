// Package contract says, as data, how one API spells idempotency: where the key
// goes and in which form, how long the server remembers it, and what "still in
// progress", "another request under this key" and "this is the stored answer"
// look like there.
//
// A [Contract] is plain data and every function over it is pure, so that a
// client and a server (idem and its mock server) can read the same value. The
// catalogue is the list of functions of this package, one file each: [Default]
// fits most APIs, [IETF] is the letter of the draft. They are functions and not
// variables because a package variable could be changed by anyone.
//
// What an API does not publish has the cautious value there: its window is 5 min,
// only POST carries the key, an answer without a code of its own means nothing in
// particular. Whoever knows more changes the field:
//
//	square := contract.Square()
//	square.Window = 24 * time.Hour // as agreed with Square
//
// A zero or nil field means [Default]'s value, so Contract{Header: "X-Key"} is
// whole. A slice that is empty but not nil means "none".
package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Contract describes one API. It is a value: copy it, change a field, pass it
// on; nothing in this package writes to it. The slices are shared by copies and
// must not be changed in place. The zero Contract is [Default].
type Contract struct {
	// Name is the short name, as in a list or on a command line: "stripe".
	Name string
	// Source is the address where the facts were read.
	Source string
	// Header is the header that carries the key. With Place InBody it is the
	// path of the JSON member instead, such as "idempotency_key".
	Header string
	// Place says where the key goes; zero: in the header.
	Place Place
	// FirstSentHeader, if not empty, is a second header that carries the time
	// of the first send as an IMF-fixdate, the same on every attempt.
	FirstSentHeader string
	// Methods are those that carry the key; nil: POST, PATCH, PUT, DELETE.
	Methods []string
	// Format narrows what a key looks like on the wire; zero: visible ASCII.
	Format Format
	// Quoted sends the key as a structured-field string (RFC 8941, 3.3.3).
	Quoted bool
	// MinKey and MaxKey bound the length of the key in bytes, after Format and
	// before quoting; zero: 1 and 255.
	MinKey, MaxKey int

	// Window is how long the server remembers a key, from the first request
	// on; after it the same key is a new request. Zero: 24 h; negative: for ever.
	Window time.Duration
	// Gap is the shortest time between two requests with one key, also of two
	// calls, one after the other; zero: none. Calls of one Intent that run at the
	// same time do not wait for each other.
	Gap time.Duration
	// Lease is how long a claim holds when its worker has died. Only a server
	// reads it. Zero: 1 min.
	Lease time.Duration

	// Answers tell what an answer means; the first that matches wins.
	// nil: 409 is InProgress, 422 is Mismatch.
	Answers []Match
	// Refusals are the statuses that are given before any work is begun, so
	// that the send they answer had no effect. nil: 401, 407, 413, 429.
	Refusals []int
	// Replayed are the headers that mark a stored answer; nil: every spelling
	// known to Default.
	Replayed []Marker
	// PromisesMarker says that the API marks every replay, so that an answer
	// without a mark is known to be no replay.
	PromisesMarker bool
	// Hints are where the server says whether to ask again; nil: X-Should-Retry
	// and Stripe-Should-Retry.
	Hints []Hint
	// Stored says which answers the server keeps; zero: all but 5xx.
	Stored Stored
}

// Place is where the key goes.
type Place uint8

const (
	InHeader Place = iota // in the header named by Contract.Header
	InBody                // in the JSON body, at the path Contract.Header; verified, never injected
)

// String returns the name of the constant.
func (p Place) String() string { return name(p, "InHeader", "InBody") }

// Meaning is what an answer says about its key.
type Meaning uint8

const (
	Unclassified Meaning = iota // the contract does not name this answer; its status decides
	InProgress                  // the first request with this key is still running: ask again
	Mismatch                    // the key came before with another request: never ask again
	Done                        // the work was done before; the answer says what came of it
	KeyRefused                  // the server does not take this key: missing, malformed, too long
	Final                       // asking again cannot help. Final only ever stops; it does not settle
	Settled                     // the server's recorded decision: asking again gives the same
	Transient                   // asking again may help
)

// String returns the name of the constant.
func (m Meaning) String() string {
	return name(m, "Unclassified", "InProgress", "Mismatch", "Done", "KeyRefused", "Final", "Settled", "Transient")
}

// name returns the name of constant number v, or what it is if it has none.
func name[T ~uint8](v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", strings.TrimPrefix(fmt.Sprintf("%T", v), "contract."), uint8(v))
}

// A Match names answers of one kind and what they mean.
type Match struct {
	// Status is the status to match; zero: any that is not 2xx.
	Status int
	// Path leads to a member of the JSON body, such as "error.code"; arrays on
	// the way are walked, and any element may match. Empty: the status alone.
	Path string
	// Value is what the member must hold: a string as it is, case and all, a
	// number as it is written, "true" or "false". Under the path "type" (RFC
	// 9457, 3.1.1) it may also be the last segment of the URI. Empty: the member
	// is there and not null.
	Value string
	// Means is the meaning. Without a Value no match gives 422 the meaning
	// InProgress or Transient: a 422 is repeated only where a code says so.
	Means Meaning
}

// A Marker is a header that tells a stored answer from a fresh one.
type Marker struct {
	// Header is the header's name.
	Header string
	// Yes are the values that mark a replay; empty: any value but those of No.
	Yes []string
	// No are the values that mark a fresh answer.
	No []string
	// DiffersFrom, if not empty, names another header: the answer is a replay
	// if both are there and differ, and fresh if they agree.
	DiffersFrom string
	// Success limits the marker to 2xx: on other answers it says nothing, for
	// APIs that put it on "in progress" as well.
	Success bool
}

// A Hint is a place where the server says whether asking again can help.
type Hint struct {
	Header string // the header to read; empty: none
	Path   string // the member of a JSON body to read, as Match.Path; empty: none
	Retry  string // the value that means "ask again"; empty: there is none
	Stop   string // the value that means "do not"; empty: there is none
	// SilenceStops makes the hint's absence mean "do not", for answers with a
	// JSON body: a gateway's bare 502 never carries the API's own headers.
	SilenceStops bool
}

// Stored says which answers a server keeps and replays.
type Stored uint8

const (
	StoredBelow500 Stored = iota // every finished answer but 5xx
	StoredSuccess                // 2xx only: any other answer runs again under the same key
	StoredAll                    // every finished answer, 5xx included
)

// String returns the name of the constant.
func (s Stored) String() string {
	return name(s, "StoredBelow500", "StoredSuccess", "StoredAll")
}

// Keeps reports whether an answer with this status is kept.
func (s Stored) Keeps(status int) bool {
	switch s {
	case StoredAll:
		return true
	case StoredSuccess:
		return status >= 200 && status < 300
	default:
		return status < 500
	}
}

// WithDefaults returns c with [Default]'s value in every zero or nil field but
// Name and Source. It keeps what is empty and not nil.
func (c Contract) WithDefaults() Contract {
	d := Default()
	c.Header = cmp.Or(c.Header, d.Header)
	c.MinKey = cmp.Or(c.MinKey, d.MinKey)
	c.MaxKey = cmp.Or(c.MaxKey, d.MaxKey)
	c.Window = cmp.Or(c.Window, d.Window)
	c.Lease = cmp.Or(c.Lease, d.Lease)
	c.Methods = orNil(c.Methods, d.Methods)
	c.Answers = orNil(c.Answers, d.Answers)
	c.Refusals = orNil(c.Refusals, d.Refusals)
	c.Replayed = orNil(c.Replayed, d.Replayed)
	c.Hints = orNil(c.Hints, d.Hints)
	return c
}

func orNil[E any](s, instead []E) []E {
	if s == nil {
		return instead
	}
	return s
}

// Keys reports whether requests with this method carry the key.
func (c Contract) Keys(method string) bool {
	if c.Methods == nil {
		c.Methods = defaultMethods()
	}
	return slices.Contains(c.Methods, method)
}

// Refuses reports whether status is one that the server gives before it begins
// any work.
func (c Contract) Refuses(status int) bool {
	if c.Refusals == nil {
		c.Refusals = defaultRefusals()
	}
	return slices.Contains(c.Refusals, status)
}
