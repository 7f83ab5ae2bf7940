package conformance_test

import (
	"time"

	"github.com/idem-go/idem/contract"
	"github.com/idem-go/idem/mockserver"
)

// A server is a contract and what its servers do that it has no word for.
type server struct {
	contract.Contract

	kind mockserver.Kind
}

// servers are all contracts of the catalogue, and those of a few middlewares for
// the shapes that the catalogue lacks.
func servers() []server {
	kinds := map[string]mockserver.Kind{
		"epay":           {Loose: true}, // the body is not compared
		"gocardless":     {Done: true},
		"interchecks":    {Repeat: 409, Wait: true}, // in progress is a 102, which the server has not
		"moderntreasury": {Loose: true},
		"paypal":         {Repeat: 200},
		"qonto":          {Loose: true},
		"worldline":      {Loose: true},
	}
	var list []server
	for _, c := range contract.All() {
		list = append(list, server{c, kinds[c.Name]})
	}
	return append(list, middlewares()...)
}

func middlewares() []server {
	progress := func(status int) contract.Match { return contract.Match{Status: status, Means: contract.InProgress} }
	mismatch := func(status int) contract.Match { return contract.Match{Status: status, Means: contract.Mismatch} }
	return []server{
		{Contract: contract.Contract{ // https://github.com/julik/idempo, without its own idea of a mismatch
			Name: "busy-429", Window: 30 * time.Second, Lease: 10 * time.Second, Answers: []contract.Match{progress(429), mismatch(422)}, Replayed: []contract.Marker{},
		}},
		{Contract: contract.Contract{ // https://github.com/yoyowallet/django-idempotency-key: the first body under 409
			Name: "busy-423", Answers: []contract.Match{progress(423), {Status: 409, Means: contract.Settled}, mismatch(422)}, Replayed: []contract.Marker{}, Stored: contract.StoredSuccess,
		}, kind: mockserver.Kind{Repeat: 409}},
		{Contract: contract.Contract{ // https://github.com/josipmusa/idempotency4j
			Name: "busy-503", Answers: []contract.Match{progress(503), mismatch(422)}, Stored: contract.StoredAll,
		}},
		{Contract: contract.Contract{ // https://github.com/gofiber/fiber, middleware/idempotency
			Name: "waits", Header: "X-Idempotency-Key", MinKey: 36, MaxKey: 36, Window: 30 * time.Minute,
			Answers: []contract.Match{}, Replayed: []contract.Marker{}, Stored: contract.StoredAll,
		}, kind: mockserver.Kind{Wait: true, Loose: true}},
		{Contract: contract.Contract{ // https://github.com/ikyriak/IdempotentAPI
			Name: "mismatch-400", Header: "IdempotencyKey", Answers: []contract.Match{progress(409), mismatch(400)}, Replayed: []contract.Marker{}, Stored: contract.StoredSuccess,
		}},
		{Contract: contract.Contract{ // https://github.com/infinitypaul/idempotency-laravel
			Name: "original-or-repeated", Replayed: []contract.Marker{{Header: "Idempotency-Status", Yes: []string{"Repeated"}, No: []string{"Original"}}}, PromisesMarker: true,
		}},
		{Contract: contract.Contract{ // https://github.com/square1-io/laravel-idempotency
			Name: "marked-with-the-key", Replayed: []contract.Marker{{Header: "Idempotency-Relayed"}},
		}},
		{Contract: contract.Contract{ // a mark that nobody else has
			Name: "marked-otherwise", Replayed: []contract.Marker{{Header: "X-Kept-Answer", Yes: []string{"yes"}}},
		}},
		{Contract: contract.Contract{ // the other mark of Stripe, by itself
			Name: "two-ids", Replayed: []contract.Marker{{Header: "Original-Request", DiffersFrom: "Request-Id", Success: true}},
		}},
		{Contract: contract.Contract{ // https://github.com/idempot-dev/idempot-js: problems have a member retryable
			Name: "hint-in-the-body", Hints: []contract.Hint{{Path: "retryable", Retry: "true", Stop: "false"}},
		}},
		{Contract: contract.Contract{ // a limit in front that says 403, and looks at the credential after the work
			Name: "refuses-403", Refusals: []int{403}, Stored: contract.StoredAll, Lease: 10 * time.Second,
		}},
		{Contract: contract.Contract{ // a key deep in the body
			Name: "deep-in-the-body", Place: contract.InBody, Header: "meta.request.id", FirstSentHeader: "First-Sent", Methods: []string{"POST", "PUT"},
		}},
		{Contract: contract.Contract{ // a server that says why it takes no key
			Name: "says-why", MinKey: 8, Format: contract.FormatWord,
			Answers: []contract.Match{{Status: 422, Path: "code", Value: "bad_key", Means: contract.KeyRefused}, progress(409), mismatch(422)},
		}},
	}
}

// spelled returns the status of the contract's answer with this meaning, and
// whether the contract has one; without, the server says status.
func (r *rig) spelled(means contract.Meaning, status int) (int, bool) {
	for _, m := range r.Answers {
		if m.Means == means {
			if m.Status != 0 {
				status = m.Status
			}
			return status, true
		}
	}
	return status, false
}
