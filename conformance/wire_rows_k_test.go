package conformance_test

import (
	"time"

	"github.com/idem-go/idem"
)

func rowsToK() []row {
	return []row{
		{name: "default", line: header, until: ofDay, stories: append(append(hints("X-Should-Retry"), hints("Stripe-Should-Retry")...), marked, busy409, mismatch(reply(422, ``)), known(story{
			about: "not replayed", answers: []string{reply(200, `{}`, "Idempotent-Replayed: false")}, hits: 1, outcome: idem.Answered,
		}))},
		{name: "ietf", line: `Idempotency-Key: "` + wireKey + `"`, until: ofDay, stories: []story{
			busy(reply(409, `{"type":"https://developer.example.com/idempotency","title":"A request is outstanding for this Idempotency-Key"}`)),
			mismatch(reply(422, `{"type":"https://developer.example.com/idempotency","title":"Idempotency-Key is already used"}`)),
			final("missing", reply(400, `{"type":"https://developer.example.com/idempotency","title":"Idempotency-Key is missing"}`)),
		}},
		{name: "amazonpay", line: "X-Amz-Pay-Idempotency-Key: 3f2504e04f8941d39a0c0305e82c3301", until: -1, stories: []story{
			mismatch(reply(400, `{"reasonCode":"DuplicateIdempotencyKey","message":"x"}`)),
			final("validation", reply(400, `{"reasonCode":"InvalidParameterValue","message":"x"}`)),
		}},
		// The bubble's clock begins here.
		{name: "azure", line: "Repeatability-First-Sent: Sat, 01 Jan 2000 00:00:00 GMT\nRepeatability-Request-Id: " + wireKey, until: ofNothing, stories: []story{
			busy409, final("too old", reply(412, ``)), final("rejected", reply(400, ``, "Repeatability-Result: rejected")),
			{about: "accepted", answers: []string{reply(201, `{}`, "Repeatability-Result: accepted")}, hits: 1, outcome: idem.Answered},
		}},
		{name: "bluesnap", line: header, until: ofNothing, stories: []story{
			busy(reply(409, `{"message":[{"errorName":"REQUEST_WITH_SAME_IDEMPOTENCY_KEY_ALREADY_IN_PROGRESS","code":60102}]}`)),
			mismatch(reply(422, `{"message":[{"errorName":"SAME_IDEMPOTENCY_KEY_WAS_ALREADY_IN_USE_WITH_PREVIOUS_DIFFERENT_REQUEST","code":"60101"}]}`)),
			final("key too long", reply(400, `{"message":[{"errorName":"IDEMPOTENCY_KEY_MAX_LENGTH_LIMIT_EXCEEDED","code":"60103"}]}`)),
			final("key malformed", reply(409, `{"message":[{"errorName":"INVALID_IDEMPOTENCY_KEY","code":"60104"}]}`)), // no status is published
			asked("the keys are away", reply(503, `{"message":[{"errorName":"IDEMPOTENCY_SERVICE_TIMEOUT","code":"60106"}]}`)),
			asked("the keys are away, as 400", reply(400, `{"message":[{"errorName":"IDEMPOTENCY_SERVICE_TIMEOUT","code":"60106"}]}`)),
		}},
		{name: "chargebee", line: "Chargebee-Idempotency-Key: " + wireKey, until: 28 * time.Minute, stories: []story{
			{about: "replay", answers: []string{lost, reply(200, `{}`, "chargebee-idempotency-replayed: true")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		}},
		{name: "checkout", line: "Cko-Idempotency-Key: " + wireKey, until: ofDay, apart: 30 * time.Second, stories: []story{
			busy409, asked("in progress as 429", reply(429, ``)), final("validation", reply(422, `{"error_type":"request_invalid","error_codes":["amount_invalid"]}`)),
		}},
		{name: "dwolla", line: header, until: ofDay, stories: []story{busy409, bare409, no422}},
		{name: "easypay", line: header, until: ofDay, stories: []story{
			known(final("500", reply(500, ``))), known(asked("503", reply(503, ``))),
			{about: "replay", answers: []string{lost, reply(200, `{}`, "Idempotency-Replay: 1")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		}},
		{name: "epay", line: header, until: ofDay, stories: []story{marked, known(no422)}},
		{name: "flutterwave", line: "X-Idempotency-Key: " + wireKey, until: ofNothing, stories: []story{
			{about: "replay", answers: []string{lost, reply(200, `{}`, "X-Idempotency-Cache-Hit: true")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		}},
		{name: "hyperline", line: header, until: ofDay, stories: []story{busy409, mismatch(reply(417, ``)), no422}},
		{name: "increase", line: header, until: ofNothing, stories: []story{
			marked, known(mismatch(reply(409, `{"status":409,"type":"idempotency_key_already_used_error","resource_id":"account_in71c4amph0vgo2qllky"}`))),
			known(asked("hint yes", reply(400, `{}`, "X-Should-Retry: true"))), known(final("hint no", reply(409, `{}`, "X-Should-Retry: false"))),
		}},
		{name: "interchecks", line: header, until: ofDay, stories: []story{
			stood(final("first answer again", reply(409, `{"id":"1"}`))), asked("in progress", processing),
		}},
		// The name 3f2504e0-… in the name space of keys, by another implementation.
		{name: "klarna", line: "Klarna-Idempotency-Key: 859e8a84-adce-541e-84c6-5f1c18eda05e", until: ofDay, stories: []story{bare409, no422}},
	}
}
