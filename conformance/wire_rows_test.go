package conformance_test

import (
	"time"

	"github.com/idem-go/idem"
)

const (
	ofDay     = 24*time.Hour - 2*time.Minute
	ofNothing = 3 * time.Minute // no window is published: 5 min, less 2
	header    = "Idempotency-Key: " + wireKey
)

// Stories that many APIs share.
var (
	created = reply(201, `{"id":"1"}`)
	marked  = story{about: "replay", answers: []string{lost, reply(200, `{"id":"1"}`, "Idempotent-Replayed: true")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed}
	busy409 = busy(reply(409, `{"title":"Conflict"}`))
	bare409 = story{about: "bare 409", answers: []string{reply(409, ``)}, hits: 4, outcome: idem.OutcomeUnknown, is: idem.ErrExhausted}
	no422   = story{about: "bare 422", answers: []string{reply(422, ``)}, hits: 1, outcome: idem.OutcomeUnknown, fails: true}
)

// busy is the story of a request in progress that is done in the end.
func busy(answer string) story {
	return story{about: "in progress", answers: []string{answer, answer, created}, hits: 3, outcome: idem.Answered}
}

// mismatch is the story of a key that came before with another request.
func mismatch(answer string) story {
	return story{about: "mismatch", answers: []string{answer}, hits: 1, outcome: idem.OutcomeUnknown, is: idem.ErrMismatch}
}

// final is an answer that ends the call and says nothing for certain, as the key
// may have been sent before.
func final(about, answer string) story {
	return story{about: about, answers: []string{answer}, hits: 1, outcome: idem.OutcomeUnknown, fails: true}
}

// asked is an answer after which the client asks again, and is told.
func asked(about, answer string) story {
	return story{about: about, answers: []string{answer, created}, hits: 2, outcome: idem.Answered}
}

// known is s where an answer without a mark is known to be no replay.
func known(s story) story {
	s.replay = idem.NotReplayed
	return s
}

func stood(s story) story { s.outcome = idem.Answered; return s }

func hints(name string) []story {
	return []story{
		asked("hint yes", reply(400, `{}`, name+": true")),
		final("hint no", reply(503, `{}`, name+": false")),
		asked("no hint", reply(503, `{}`)),
	}
}

func rows() []row {
	return append(append(wideRows(), rowsToK()...), rowsFromL()...)
}

// wideRows are those of APIs with many answers of their own.
func wideRows() []row {
	stripe := []story{
		marked, busy(reply(409, `{"error":{"code":"idempotency_key_in_use","message":"x","type":"invalid_request_error"}}`)),
		mismatch(reply(400, `{"error":{"message":"Keys for idempotent requests can only be used with the same parameters they were first used with.","type":"idempotency_error"}}`)),
		final("validation", reply(400, `{"error":{"message":"x","type":"invalid_request_error"}}`)),
		stood(final("declined", reply(402, `{"error":{"code":"card_declined","decline_code":"generic_decline","type":"card_error"}}`))),
		{about: "stored 500", answers: []string{lost, reply(500, `{"error":{"type":"api_error"}}`, "Idempotent-Replayed: true")}, hits: 2, outcome: idem.OutcomeUnknown, replay: idem.Replayed, fails: true},
		{about: "two ids", answers: []string{lost, reply(200, `{}`, "Original-Request: req_1", "Request-Id: req_2")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		{about: "one id", answers: []string{reply(200, `{}`, "Original-Request: req_1", "Request-Id: req_1", "Stripe-Should-Retry: false")}, hits: 1, outcome: idem.Answered, replay: idem.NotReplayed},
		{about: "no mark", answers: []string{reply(200, `{}`, "Idempotent-Replayed: maybe")}, hits: 1, outcome: idem.Answered},
		asked("a hint of others", reply(503, `{}`, "X-Should-Retry: false")),
	}
	inProgress := `{"status":422,"errorCode":"704","message":"request already processed or in progress","errorType":"validation"}`
	adyen := []story{
		busy(reply(422, inProgress)),
		final("validation", reply(422, `{"status":422,"errorCode":"101","message":"Invalid card number","errorType":"validation"}`)),
		asked("in progress as 409", reply(409, inProgress)),
		asked("the keys are away", reply(503, `{"status":503,"errorCode":"703","errorType":"internal"}`)),
		asked("transient", reply(500, `{"status":500,"errorCode":"905"}`, "transient-error: true")),
		final("not transient", reply(500, `{"status":500,"errorCode":"905"}`, "transient-error: false")),
		final("silent", reply(500, `{"status":500,"errorCode":"905"}`)),
		asked("of a gateway", reply(502, ``)),
		{about: "echo", answers: []string{reply(200, `{}`, header)}, hits: 1, outcome: idem.Answered},
	}
	paypal := []story{
		{about: "200 for 201", answers: []string{lost, reply(200, `{"id":"1","status":"COMPLETED"}`)}, hits: 2, outcome: idem.Answered},
		busy(reply(409, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS","description":"x"}],"debug_id":"x"}`)),
		mismatch(reply(422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}]}`)),
		final("used", reply(409, `{"name":"DUPLICATE_REQUEST_ID","message":"The value of PayPal-Request-Id header has already been used."}`)),
		final("business", reply(422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"ORDER_ALREADY_CAPTURED"}]}`)),
	}
	gocardless := []story{
		{about: "done before", answers: []string{lost, reply(409, doneBefore)}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		final("validation", reply(422, `{"error":{"type":"validation_failed","code":422,"errors":[{"field":"amount"}]}}`)),
	}
	truelayer := []story{
		busy(reply(409, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-concurrency-conflict","title":"Idempotency-Key Concurrency Conflict"}`)),
		asked("another conflict", reply(409, `{"type":"https://docs.truelayer.com/docs/error-types#concurrency-conflict","title":"Concurrency Conflict"}`)),
		mismatch(reply(422, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-reuse","title":"Idempotency-Key Reuse"}`)),
	}
	return []row{
		{name: "stripe", line: header, until: ofDay, stories: append(stripe, hints("Stripe-Should-Retry")...)},
		{name: "adyen", line: header, until: 7*24*time.Hour - 2*time.Minute, stories: adyen},
		{name: "paypal", line: "Paypal-Request-Id: " + wireKey, until: 3*time.Hour - 2*time.Minute, stories: paypal},
		{name: "gocardless", line: header, until: ofNothing, stories: gocardless},
		{name: "truelayer", line: header, until: 6*time.Hour - 2*time.Minute, stories: append(truelayer, hints("Tl-Should-Retry")...)},
		{name: "square", body: `{"amount":100,"idempotency_key":"` + wireKey + `"}`, until: ofNothing, stories: []story{
			mismatch(reply(400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED","field":"idempotency_key"}]}`)),
			final("validation", reply(400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"MISSING_REQUIRED_PARAMETER"}]}`)),
		}},
	}
}
