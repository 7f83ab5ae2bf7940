package conformance_test

import (
	"time"

	"github.com/idem-go/idem"
)

func rowsFromL() []row {
	return []row{
		{name: "lithic", line: header, until: ofDay, stories: append(hints("X-Should-Retry"), bare409, no422)},
		{name: "mangopay", line: header, until: ofDay, stories: []story{
			final("repeated", reply(409, `{"Message":"A resource has already been created with this Idempotency Key","Type":"idempotent_creation_conflict","Id":"x"}`)),
		}},
		{name: "mercadopago", line: "X-Idempotency-Key: " + wireKey, until: ofNothing, stories: []story{
			busy(reply(409, `{"status":"409","error":"Conflict","message":"The process has not been completed yet. Try again later.","cause":[{"code":"401001","data":null}]}`)),
			asked("locked", reply(423, ``)), no422,
		}},
		{name: "method", line: header, until: ofNothing, stories: []story{asked("the keys are away", reply(503, `{"error":{"sub_type":"IDEMPOTENCY_UNAVAILABLE"}}`))}},
		{name: "moderntreasury", line: header, until: ofDay, stories: append(hints("X-Should-Retry"), busy409, no422)},
		{name: "mollie", line: header, until: ofDay, stories: []story{
			marked, known(busy409), known(final("400", reply(400, `{"status":400,"title":"Bad Request","detail":"x"}`))), known(no422),
		}},
		{name: "openbankinguk", line: "X-Idempotency-Key: " + wireKey, until: ofDay, apart: time.Second, stories: []story{bare409, no422}},
		{name: "ppro", line: "Request-Idempotency-Key: " + wireKey, until: ofDay, stories: []story{
			known(busy409), known(bare409), {about: "replay", answers: []string{lost, reply(200, `{}`, "Request-Idempotency: true")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		}},
		{name: "qonto", line: "X-Qonto-Idempotency-Key: " + wireKey, until: 28 * time.Minute, stories: []story{bare409, no422}},
		{name: "razorpay", line: "X-Payout-Idempotency: " + wireKey, until: ofNothing, stories: []story{
			busy409, final("missing", reply(400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Idempotency key is missing. Include idempotency header and key in the request.","field":"X-Payout-Idempotency"}}`)),
		}},
		{name: "sinch", line: header, until: ofNothing, stories: []story{
			busy(reply(409, `{"type":"https://developers.sinch.com/docs/errors/registry/idempotency-conflict","title":"Idempotency Conflict"}`)),
		}},
		{name: "smartretry", line: header, until: ofDay, stories: []story{
			known(mismatch(reply(409, `{"code":"IDEMPOTENCY_CONFLICT"}`))), known(asked("in progress", reply(503, `{"code":"RESOURCE_LOCKED"}`))),
			{about: "replay", answers: []string{lost, reply(403, `{}`, "Idempotency-Replayed: true")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed, fails: true},
			{about: "first", answers: []string{reply(200, `{}`, "Idempotency-Replayed: false")}, hits: 1, outcome: idem.Answered, replay: idem.NotReplayed},
		}},
		{name: "solidgate", line: header, until: ofNothing, stories: []story{
			mismatch(reply(422, ``)), {about: "ignored", answers: []string{reply(200, `{}`, "Idempotency-Status: ignored")}, hits: 1, outcome: idem.Answered},
		}},
		{name: "telness", line: "X-Idempotency-Key: " + wireKey, until: ofDay, stories: []story{
			busy(reply(409, `{"code":"idempotency_key_locked"}`)), mismatch(reply(409, `{"code":"idempotency_key_mismatch"}`)),
		}},
		{name: "telnyx", line: header, until: ofDay, stories: []story{mismatch(reply(422, `{"errors":[{"code":"x"}]}`)), bare409}},
		{name: "whop", line: header, until: ofDay, stories: []story{
			marked, known(mismatch(reply(400, `{"error":{"code":"idempotency_key_mismatch","message":"x"}}`))),
			known(final("validation", reply(400, `{"error":{"code":"parameter_invalid","message":"x"}}`))),
		}},
		{name: "wise", body: `{"amount":100,"customerTransactionId":"` + wireKey + `"}`, until: ofNothing, stories: []story{bare409, no422}},
		{name: "wisebalance", line: "X-Idempotence-Uuid: " + wireKey, until: ofNothing, stories: []story{bare409, no422}},
		{name: "worldline", line: "X-Gcs-Idempotence-Key: " + wireKey, until: ofDay, stories: []story{
			busy(reply(409, ``, "X-GCS-Idempotence-Request-Timestamp: 1430820930000")),
			{about: "replay", answers: []string{lost, reply(201, `{}`, "X-GCS-Idempotence-Request-Timestamp: 1430820930000")}, hits: 2, outcome: idem.Answered, replay: idem.Replayed},
		}},
		{name: "zuora", line: header, until: ofDay, stories: []story{busy409, mismatch(reply(422, ``))}},
	}
}
