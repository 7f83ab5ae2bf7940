package proof_test

import (
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// A kind is a kind of server, with what stands in front of it, and the promises
// that hold there. An expectation is weakened only here and, for what happens
// beside the schedule, in disturbances: no schedule has an entry of its own.
type kind struct {
	name string

	contract  contract.Contract // what the server keeps
	kind      mockserver.Kind
	client    contract.Contract     // what the client takes it to keep
	tune      func(*idem.Transport) // the client; nil: as it is
	work      time.Duration         // that the handler takes
	forgets   bool                  // its claims, after each second attempt and after the call
	http2     bool                  // it speaks HTTP/2
	redirects bool                  // it redirects writes
	careful   bool                  // the client is an idem.Client's, which does not follow a redirect to a GET
	only      []string              // the ends of attempts, instead of those of all kinds
	thorough  bool                  // every end there is
	extra     []string              // ends of attempts that only this kind has
	without   []string              // ends that it does not have

	promises
}

// promises say what holds with a kind. NotExecuted without sends, 2xx with at
// least one effect, the outcome that never falls, one key, and counted sends hold
// with every kind and have no column.
type promises struct {
	once        bool // a keyed Intent has at most one effect
	onceUnkeyed bool // a request without a key has at most one effect
	refused     bool // NotExecuted after a refusal: no effect, ever
	final       bool // Answered, not 2xx: no effect, ever
}

func (p promises) and(q promises) promises {
	return promises{p.once && q.once, p.onceUnkeyed && q.onceUnkeyed, p.refused && q.refused, p.final && q.final}
}

func kinds() []kind {
	all := promises{once: true, onceUnkeyed: true, refused: true, final: true}
	notOnce := promises{onceUnkeyed: true, refused: true}
	return []kind{
		{name: "keeps the contract", thorough: true, promises: all},
		{name: "lets repeats wait", kind: mockserver.Kind{Wait: true}, promises: all},
		{name: "stores only 2xx", contract: contract.Contract{Stored: contract.StoredSuccess}, promises: all},
		{
			name: "stores 5xx", contract: contract.Contract{Stored: contract.StoredAll},
			extra: []string{"500@worked", "500@claimed"}, without: []string{"delay@received for=31s"}, promises: all,
		},
		{name: "no marker", contract: contract.Contract{Replayed: []contract.Marker{}}, promises: all},
		{
			// A claim is never given up: 409 for ever.
			name: "poisoned", contract: contract.Contract{Lease: 10000 * time.Hour}, promises: all,
		},
		{
			// A claim is given up while its worker can still finish.
			name: "lease shorter than the work", contract: contract.Contract{Lease: time.Second}, work: 5 * time.Second,
			extra: []string{"reset@claimed"}, without: []string{"cut@body"}, promises: notOnce,
		},
		{name: "ignores keys", contract: contract.Contract{Methods: []string{}}, promises: promises{onceUnkeyed: true, refused: true, final: true}},
		{
			// It fails over to a replica without the claims.
			name: "forgets", forgets: true, promises: notOnce,
		},
		{
			// Work and stored answer are two facts, with a crash between them.
			name: "crashes after the work", extra: []string{"crash@worked"}, without: []string{"crash@claimed"}, promises: notOnce,
		},
		{
			// It refuses what it has forwarded.
			name: "gateway that lies", extra: []string{"401@received forward=now", "429@received forward=late"},
			without:  []string{"401@received", "429@received"},
			promises: promises{once: true, onceUnkeyed: true, final: true},
		},
		{
			// It sends a request twice.
			name: "gateway that duplicates", extra: []string{"copy@received forward=late; drop@stored", "copy@received; 401@received"},
			without:  []string{"drop@stored", "401@received"},
			promises: promises{once: true, final: true},
		},
	}
}
