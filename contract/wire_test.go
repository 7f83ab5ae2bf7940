package contract_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

// wire holds what one API shows on the wire. Everything in the table below is a
// literal written from the API's own pages or clients; nothing is taken from the
// contract under test, so that a wrong value cannot agree with itself.
type wire struct {
	name    string
	place   contract.Place
	header  string // or the member of the body
	sent    string // what wireKey looks like
	longest int    // a key of this many bytes is taken, of one more is refused; 0: only the one length is taken
	takes   []string
	refuses []string
	methods string // those that carry the key
	window  time.Duration
	gap     time.Duration
	answers []answer
	marks   []mark
	hints   []hint
	keeps   []int // of 201, 400, 500
}

type answer struct {
	status int
	body   string
	want   contract.Meaning
}

type mark struct {
	header          http.Header
	replayed, known bool
}

type hint struct {
	status int
	header http.Header
	want   contract.Advice
}

const (
	wireKey = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	wireHex = "3f2504e04f8941d39a0c0305e82c3301"
	day     = 24 * time.Hour
	// unpublished is the cautious window for an API that publishes none.
	unpublished = 5 * time.Minute
	forever     = -1
)

func wires() []wire {
	const (
		none     = contract.Unclassified
		progress = contract.InProgress
		mismatch = contract.Mismatch
	)
	var (
		replayed = mark{header("Idempotent-Replayed", "true"), true, true}
		unmarked = mark{header(), false, false}
		fresh    = mark{header(), false, true} // where marks are promised
		retry    = hint{500, header("X-Should-Retry", "true"), contract.AdviseRetry}
		stop     = hint{500, header("X-Should-Retry", "false"), contract.AdviseStop}
		silence  = hint{500, header("Content-Type", "application/json"), contract.NoAdvice}
		all      = []int{201, 400, 500}
		below500 = []int{201, 400}
		success  = []int{201}
	)
	return []wire{
		{
			name: "default", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST PATCH PUT DELETE", window: day,
			answers: []answer{{409, ``, progress}, {422, ``, mismatch}, {400, ``, none}},
			marks:   []mark{replayed, unmarked}, hints: []hint{retry, stop, silence}, keeps: below500,
		},
		{
			name: "ietf", header: "Idempotency-Key", sent: `"` + wireKey + `"`, longest: 255, methods: "POST PATCH PUT DELETE", window: day,
			answers: []answer{
				{409, `{"type":"https://developer.example.com/idempotency","title":"A request is outstanding for this Idempotency-Key"}`, progress},
				{422, `{"type":"https://developer.example.com/idempotency","title":"Idempotency-Key is already used"}`, mismatch},
				{400, `{"type":"https://developer.example.com/idempotency","title":"Idempotency-Key is missing"}`, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "adyen", header: "Idempotency-Key", sent: wireKey, longest: 64, methods: "POST", window: 7 * day,
			answers: []answer{
				{422, `{"status":422,"errorCode":"704","message":"request already processed or in progress","errorType":"validation"}`, progress},
				{409, `{"status":409,"errorCode":"704","message":"request already processed or in progress","errorType":"validation"}`, progress},
				{422, `{"status":422,"errorCode":"101","message":"Invalid card number","errorType":"validation"}`, none},
				{503, `{"status":503,"errorCode":"703","message":"required resource temporarily unavailable","errorType":"internal"}`, contract.Transient},
				{500, `{"status":500,"errorCode":"905","message":"Payment details are not supported","errorType":"configuration"}`, none},
			},
			marks: []mark{{header("Idempotency-Key", wireKey), false, false}, {header("Idempotent-Replayed", "true"), false, false}},
			hints: []hint{
				{500, header("Content-Type", "application/json;charset=UTF-8", "transient-error", "true"), contract.AdviseRetry},
				{500, header("Content-Type", "application/json;charset=UTF-8", "transient-error", "false"), contract.AdviseStop},
				{500, header("Content-Type", "application/json;charset=UTF-8"), contract.AdviseStop},
				{502, header("Content-Type", "text/html"), contract.NoAdvice},
			},
			keeps: below500,
		},
		{
			name: "amazonpay", header: "x-amz-pay-idempotency-key", sent: wireHex, methods: "POST", window: forever,
			refuses: []string{strings.Repeat("k", 33)},
			answers: []answer{
				{400, `{"reasonCode":"DuplicateIdempotencyKey","message":"The idempotency key was used before"}`, mismatch},
				{400, `{"reasonCode":"InvalidParameterValue","message":"x"}`, none},
				{422, `{"reasonCode":"TransactionAmountExceeded","message":"x"}`, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "azure", header: "Repeatability-Request-ID", sent: wireKey, refuses: []string{"order-1"}, methods: "POST", window: 5 * time.Minute,
			answers: []answer{{409, ``, progress}, {412, ``, contract.Final}, {400, ``, none}},
			marks:   []mark{{header("Repeatability-Result", "accepted"), false, false}}, keeps: below500,
		},
		{
			name: "bluesnap", header: "Idempotency-Key", sent: wireKey, longest: 64, refuses: []string{"a_b", "a.b"}, methods: "POST", window: unpublished,
			answers: []answer{
				{422, `{"message":[{"errorName":"SAME_IDEMPOTENCY_KEY_WAS_ALREADY_IN_USE_WITH_PREVIOUS_DIFFERENT_REQUEST","code":"60101","description":"x"}]}`, mismatch},
				{409, `{"message":[{"errorName":"REQUEST_WITH_SAME_IDEMPOTENCY_KEY_ALREADY_IN_PROGRESS","code":60102,"description":"x"}]}`, progress},
				{400, `{"message":[{"errorName":"IDEMPOTENCY_KEY_MAX_LENGTH_LIMIT_EXCEEDED","code":"60103","description":"x"}]}`, contract.KeyRefused},
				{400, `{"message":[{"errorName":"INVALID_IDEMPOTENCY_KEY","code":"60104","description":"x"}]}`, contract.KeyRefused},
				{503, `{"message":[{"errorName":"IDEMPOTENCY_SERVICE_TIMEOUT","code":"60106","description":"x"}]}`, contract.Transient},
				{422, `{"message":[{"errorName":"VALIDATION_GENERAL_FAILURE","code":"10001","description":"x"}]}`, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "chargebee", header: "chargebee-idempotency-key", sent: wireKey, longest: 100, methods: "POST", window: 30 * time.Minute,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{{header("chargebee-idempotency-replayed", "true"), true, true}, fresh}, keeps: below500,
		},
		{
			name: "checkout", header: "Cko-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day, gap: 30 * time.Second,
			answers: []answer{{409, ``, progress}, {422, `{"error_type":"request_invalid","error_codes":["amount_invalid"]}`, none}, {429, ``, none}},
			marks:   []mark{unmarked}, keeps: success,
		},
		{
			name: "dwolla", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{{409, `{"code":"Conflict","message":"x"}`, progress}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: below500,
		},
		{
			name: "epay", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{replayed, fresh}, keeps: below500,
		},
		{
			name: "easypay", header: "Idempotency-Key", sent: wireKey, longest: 50, methods: "POST PATCH", window: day,
			answers: []answer{{500, ``, contract.Final}, {503, ``, none}, {400, ``, none}, {412, ``, none}, {429, ``, none}},
			marks:   []mark{{header("Idempotency-Replay", "1"), true, true}, {header("Idempotency-Replay", "true"), true, true}, fresh}, keeps: all,
		},
		{
			name: "flutterwave", header: "X-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{{header("X-Idempotency-Cache-Hit", "true"), true, true}, fresh}, keeps: below500,
		},
		{
			name: "gocardless", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{
				{409, `{"error":{"message":"x","errors":[{"reason":"idempotent_creation_conflict","message":"A resource has already been created with this idempotency key","links":{"conflicting_resource_id":"PM00001"}}],"type":"invalid_state","code":409}}`, contract.Done},
				{409, `{"error":{"message":"x","errors":[{"reason":"bank_account_exists","links":{"creditor_bank_account":"BA123"}}],"type":"validation_failed","code":409}}`, none},
				{422, `{"error":{"type":"validation_failed","code":422,"errors":[{"field":"amount"}]}}`, none},
			},
			marks: []mark{unmarked}, keeps: success,
		},
		{
			name: "hyperline", header: "Idempotency-Key", sent: wireKey, longest: 255, refuses: []string{"fifteen-letters"}, takes: []string{"sixteen--letters"}, methods: "POST PUT PATCH", window: day,
			answers: []answer{{409, ``, progress}, {417, ``, mismatch}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: success,
		},
		{
			name: "increase", header: "Idempotency-Key", sent: wireKey, longest: 200, methods: "POST", window: unpublished,
			answers: []answer{
				{409, `{"status":409,"type":"idempotency_key_already_used_error","title":"x","detail":null,"resource_id":"account_in71c4amph0vgo2qllky"}`, mismatch},
				{409, `{"status":409,"type":"invalid_operation_error","title":"x"}`, none},
			},
			marks: []mark{replayed, fresh}, hints: []hint{retry, stop, silence}, keeps: below500,
		},
		{
			name: "interchecks", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{{409, `{"id":"x"}`, contract.Settled}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: success,
		},
		{
			name: "klarna", header: "Klarna-Idempotency-Key", methods: "POST PATCH", window: day,
			// The name 3f2504e0-… in our name space, by another implementation.
			sent: "859e8a84-adce-541e-84c6-5f1c18eda05e", takes: []string{"order-1"},
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: below500,
		},
		{
			name: "lithic", header: "Idempotency-Key", sent: wireKey, refuses: []string{"order-1"}, methods: "POST", window: day,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, hints: []hint{retry, stop, silence}, keeps: all,
		},
		{
			name: "mangopay", header: "Idempotency-Key", sent: wireKey, longest: 36, refuses: []string{"fifteen-letters", "sixteen__letters"}, takes: []string{"sixteen--letters"}, methods: "POST", window: day,
			answers: []answer{
				{409, `{"Message":"A resource has already been created with this Idempotency Key","Type":"idempotent_creation_conflict","Id":"x","Date":1452723944,"errors":null}`, contract.Final},
				{409, `{"Message":"x","Type":"other"}`, none},
			},
			marks: []mark{unmarked}, keeps: all,
		},
		{
			name: "mercadopago", header: "X-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{
				{409, `{"status":"409","error":"Conflict","message":"The process has not been completed yet. Try again later.","cause":[{"code":"401001","message":"The process has not been completed yet. Try again later.","data":null}]}`, progress},
				{423, ``, progress},
				{400, `{"status":"400","error":"bad_request","message":"Some parameters are invalid for search."}`, none},
				{422, ``, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "method", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{{409, ``, none}, {503, `{"error":{"sub_type":"IDEMPOTENCY_UNAVAILABLE"}}`, none}},
			marks:   []mark{unmarked}, keeps: all,
		},
		{
			name: "moderntreasury", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{{409, ``, progress}, {422, `{"errors":{"code":"parameter_invalid"}}`, none}},
			marks:   []mark{unmarked}, hints: []hint{retry, stop, silence}, keeps: success,
		},
		{
			name: "mollie", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{
				{409, `{"status":409,"title":"Conflict","detail":"x"}`, progress},
				{400, `{"status":400,"title":"Bad Request","detail":"x"}`, none},
				{422, `{"status":422,"title":"Unprocessable Entity","detail":"The amount is higher than the maximum","field":"amount"}`, none},
			},
			marks: []mark{replayed, fresh}, keeps: below500,
		},
		{
			name: "openbankinguk", header: "x-idempotency-key", sent: wireKey, longest: 40, methods: "POST", window: day, gap: time.Second,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: below500,
		},
		{
			name: "paypal", header: "PayPal-Request-Id", sent: wireKey, longest: 108, methods: "POST", window: 3 * time.Hour,
			answers: []answer{
				{409, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS","description":"x"}],"message":"x","debug_id":"x"}`, progress},
				{422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}]}`, mismatch},
				{422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"ORDER_ALREADY_CAPTURED"}]}`, none},
				{400, `{"name":"DUPLICATE_REQUEST_ID","message":"The value of PayPal-Request-Id header has already been used."}`, contract.Final},
				{422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"DUPLICATE_REQUEST_ID"}]}`, contract.Final},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "ppro", header: "Request-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{{409, ``, progress}, {422, ``, none}},
			marks:   []mark{{header("Request-Idempotency", "true"), true, true}, fresh}, keeps: success,
		},
		{
			name: "qonto", header: "X-Qonto-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: 30 * time.Minute,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: success,
		},
		{
			name: "razorpay", header: "X-Payout-Idempotency", sent: wireKey, longest: 36, refuses: []string{"abc", "a b c", "a.b.c"}, takes: []string{"ab_1"}, methods: "POST", window: unpublished,
			answers: []answer{
				{409, ``, progress},
				{400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Idempotency key is missing. Include idempotency header and key in the request.","field":"X-Payout-Idempotency"}}`, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "sinch", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{
				{409, `{"type":"https://developers.sinch.com/docs/errors/registry/idempotency-conflict","title":"Idempotency Conflict","detail":"x"}`, progress},
				{409, `{"type":"https://developers.sinch.com/docs/errors/registry/conflict"}`, none},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "smartretry", header: "Idempotency-Key", sent: wireKey, longest: 255, refuses: []string{"a.b", "a:b"}, takes: []string{"a-b_C0"}, methods: "POST", window: day,
			answers: []answer{
				{409, `{"code":"IDEMPOTENCY_CONFLICT"}`, mismatch},
				{503, `{"code":"RESOURCE_LOCKED"}`, progress},
				{503, `{"error":"RESOURCE_LOCKED"}`, progress},
				{503, `{"error":{"code":"RESOURCE_LOCKED"}}`, progress},
				{503, ``, none},
			},
			marks: []mark{{header("Idempotency-Replayed", "true"), true, true}, {header("Idempotency-Replayed", "false"), false, true}, fresh}, keeps: below500,
		},
		{
			name: "solidgate", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: unpublished,
			answers: []answer{{422, ``, mismatch}, {409, ``, none}},
			marks:   []mark{{header("Idempotency-Status", "ignored"), false, false}}, keeps: below500,
		},
		{
			name: "square", place: contract.InBody, header: "idempotency_key", sent: wireKey, longest: 45, methods: "POST", window: unpublished,
			answers: []answer{
				{400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED","detail":"x","field":"idempotency_key"}]}`, mismatch},
				{400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"MISSING_REQUIRED_PARAMETER"}]}`, none},
				{409, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"CONFLICT"}]}`, none},
			},
			marks: []mark{unmarked}, keeps: success,
		},
		{
			name: "stripe", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{
				{409, `{"error":{"code":"idempotency_key_in_use","message":"x","type":"invalid_request_error"}}`, progress},
				{409, `{"error":{"message":"x","type":"idempotency_error"}}`, progress},
				{400, `{"error":{"message":"Keys for idempotent requests can only be used with the same parameters they were first used with.","type":"idempotency_error"}}`, mismatch},
				{404, `{"error":{"message":"x","type":"idempotency_error"}}`, mismatch},
				{400, `{"error":{"message":"x","type":"invalid_request_error"}}`, none},
				{402, `{"error":{"code":"card_declined","decline_code":"generic_decline","message":"Your card was declined.","type":"card_error"}}`, contract.Settled},
				{402, `{"error":{"code":"incorrect_number","message":"x","type":"card_error"}}`, none},
				{422, ``, none},
				{500, `{"error":{"message":"x","type":"api_error"}}`, none},
			},
			marks: []mark{replayed, unmarked, {header("Original-Request", "req_1", "Request-Id", "req_1"), false, true}, {header("Original-Request", "req_1", "Request-Id", "req_2"), true, true}},
			hints: []hint{
				{500, header("Stripe-Should-Retry", "true"), contract.AdviseRetry},
				{409, header("Stripe-Should-Retry", "false"), contract.AdviseStop},
				{200, header("Stripe-Should-Retry", "false"), contract.NoAdvice},
				silence,
			},
			keeps: all,
		},
		{
			name: "telness", header: "X-Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{
				{409, `{"code":"idempotency_key_locked"}`, progress},
				{409, `{"code":"idempotency_key_mismatch"}`, mismatch},
				{409, `{"error":"idempotency_key_mismatch"}`, mismatch},
				{409, `{"error":{"code":"idempotency_key_mismatch"}}`, mismatch},
				{409, `{"type":"https://x.example/idempotency_key_mismatch"}`, mismatch},
			},
			marks: []mark{unmarked}, keeps: below500,
		},
		{
			name: "telnyx", header: "Idempotency-Key", sent: wireKey, longest: 255, refuses: []string{`"abc"`, "a.b", "a b"}, takes: []string{"a:b_c-D0"}, methods: "POST", window: day,
			answers: []answer{{422, `{"errors":[{"code":"x"}]}`, mismatch}, {409, ``, none}},
			marks:   []mark{unmarked}, keeps: success,
		},
		{
			name: "truelayer", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: 6 * time.Hour,
			answers: []answer{
				{409, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-concurrency-conflict","title":"Idempotency-Key Concurrency Conflict","status":409,"trace_id":"x","detail":"x"}`, progress},
				{409, `{"type":"https://docs.truelayer.com/docs/error-types#concurrency-conflict","title":"Concurrency Conflict","status":409}`, contract.Transient},
				{422, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-reuse","title":"Idempotency-Key Reuse","status":422}`, mismatch},
				{400, `{"type":"https://docs.truelayer.com/docs/error-types#invalid-parameters","title":"Invalid Parameters","status":400}`, none},
			},
			marks: []mark{unmarked},
			hints: []hint{
				{500, header("Tl-Should-Retry", "true"), contract.AdviseRetry},
				{500, header("Tl-Should-Retry", "false"), contract.AdviseStop},
				silence,
			},
			keeps: below500,
		},
		{
			name: "whop", header: "Idempotency-Key", sent: wireKey, longest: 255, methods: "POST", window: day,
			answers: []answer{
				{400, `{"error":{"code":"idempotency_key_mismatch","message":"x"}}`, mismatch},
				{400, `{"error":{"code":"parameter_invalid","message":"x"}}`, none},
			},
			marks: []mark{replayed, fresh}, keeps: below500,
		},
		{
			name: "wise", place: contract.InBody, header: "customerTransactionId", sent: wireKey, refuses: []string{"order-1"}, methods: "POST", window: unpublished,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: below500,
		},
		{
			name: "wisebalance", header: "X-idempotence-uuid", sent: wireKey, refuses: []string{"order-1"}, methods: "POST", window: unpublished,
			answers: []answer{{409, ``, none}, {422, ``, none}},
			marks:   []mark{unmarked}, keeps: below500,
		},
		{
			name: "worldline", header: "X-GCS-Idempotence-Key", sent: wireKey, longest: 40, methods: "POST", window: day,
			answers: []answer{{409, ``, progress}, {422, ``, none}},
			marks:   []mark{{header("X-GCS-Idempotence-Request-Timestamp", "1430820930000"), true, true}}, keeps: below500,
		},
		{
			name: "zuora", header: "idempotency-key", sent: wireKey, longest: 254, methods: "POST PATCH", window: day,
			answers: []answer{{409, ``, progress}, {422, ``, mismatch}},
			marks:   []mark{unmarked}, keeps: all,
		},
	}
}

func TestWireOfEachContract(t *testing.T) {
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			c, err := contract.ByName(w.name)
			require.NoError(t, err)

			assert.Equal(t, w.place, c.Place)
			if w.place == contract.InHeader {
				assert.Equal(t, http.CanonicalHeaderKey(w.header), http.CanonicalHeaderKey(c.Header))
			} else {
				assert.Equal(t, w.header, c.Header)
			}
			assert.Equal(t, w.name == "azure", c.FirstSentHeader == "Repeatability-First-Sent")
			assert.Equal(t, w.window, c.Window)
			assert.Equal(t, w.gap, c.Gap)

			sent, err := c.Wire(wireKey)
			require.NoError(t, err)
			assert.Equal(t, w.sent, sent)
			if w.longest > 0 {
				w.takes = append(w.takes, strings.Repeat("k", w.longest))
				w.refuses = append(w.refuses, strings.Repeat("k", w.longest+1))
			}
			for _, key := range w.takes {
				_, err := c.Wire(key)
				assert.NoError(t, err, "%q", key)
			}
			for _, key := range append(w.refuses, "", "a\nb", "é") {
				_, err := c.Wire(key)
				assert.Error(t, err, "%q", key)
			}

			for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "POST", "PATCH", "PUT", "DELETE"} {
				assert.Equal(t, slices.Contains(strings.Fields(w.methods), method), c.Keys(method), method)
			}
			for _, a := range w.answers {
				assert.Equal(t, a.want, c.Classify(a.status, header(), []byte(a.body)), "%d %s", a.status, a.body)
				if a.want != c.Classify(a.status, header(), nil) {
					assert.True(t, c.Peeks(a.status), "%d: the body matters", a.status)
				}
			}
			for _, m := range w.marks {
				replayed, known := c.Marked(http.StatusOK, m.header)
				assert.Equal(t, []bool{m.replayed, m.known}, []bool{replayed, known}, "%v", m.header)
			}
			for _, h := range w.hints {
				assert.Equal(t, h.want, c.Advice(h.status, h.header, []byte(`{}`)), "%d %v", h.status, h.header)
			}
			var keeps []int
			for _, status := range []int{201, 400, 500} {
				if c.Stored.Keeps(status) {
					keeps = append(keeps, status)
				}
			}
			assert.Equal(t, w.keeps, keeps)
		})
	}
}

// An answer in progress is repeated although the hint that would stop it is
// silent, as the API sends it.
func TestAdyenInProgressIsNotStoppedBySilence(t *testing.T) {
	body := []byte(`{"status":422,"errorCode":"704","message":"x","errorType":"validation"}`)
	h := header("Content-Type", "application/json")
	assert.Equal(t, contract.NoAdvice, contract.Adyen().Advice(422, h, body))
	assert.Equal(t, contract.AdviseStop, contract.Adyen().Advice(422, h, []byte(`{"errorCode":"101"}`)))
}

func TestEveryContractIsOnTheWire(t *testing.T) {
	var want, got []string
	for _, c := range contract.All() {
		want = append(want, c.Name)
	}
	for _, w := range wires() {
		got = append(got, w.name)
		assert.NotEmpty(t, w.answers, w.name)
		assert.NotEmpty(t, w.marks, w.name)
	}
	assert.ElementsMatch(t, want, got)
	sorted := slices.Clone(want[2:])
	slices.Sort(sorted)
	assert.Equal(t, sorted, want[2:], "by name")
}

// A 4xx, 5xx or 2xx without a body settles nothing, unless the list below says
// why it may: a gateway in front of the API gives such answers too.
func TestNoBareStatusSettles(t *testing.T) {
	may := map[string]int{
		"interchecks": 409, // the first answer's body returns under it; no gateway gives a 409
	}
	for _, c := range contract.All() {
		for status := 200; status < 600; status++ {
			switch got := c.Classify(status, nil, nil); got {
			case contract.Settled, contract.Done:
				assert.Equal(t, may[c.Name], status, "%s: a bare %d is %v", c.Name, status, got)
			}
		}
	}
}

// A header that marks a replay at one API says nothing at another whose pages
// name a mark of its own, or none; APIs of which no mark is known are read by
// every spelling.
func TestWhoseMarkIsTrusted(t *testing.T) {
	const every = "Chargebee-Idempotency-Replayed Idempotency-Replay Idempotency-Replayed Idempotent-Replayed Request-Idempotency X-Idempotency-Cache-Hit X-Idempotency-Cached X-Idempotency-Replayed X-Idempotent-Replayed"
	trusted := map[string]string{
		"adyen": "", "azure": "", "gocardless": "", "interchecks": "", "mangopay": "", "mercadopago": "",
		"openbankinguk": "", "paypal": "", "solidgate": "", "worldline": "",
		"chargebee": "Chargebee-Idempotency-Replayed", "easypay": "Idempotency-Replay", "epay": "Idempotent-Replayed",
		"flutterwave": "X-Idempotency-Cache-Hit", "increase": "Idempotent-Replayed", "mollie": "Idempotent-Replayed",
		"ppro": "Request-Idempotency", "smartretry": "Idempotency-Replayed", "stripe": "Idempotent-Replayed", "whop": "Idempotent-Replayed",
	}
	for _, c := range contract.All() {
		want, ok := trusted[c.Name]
		if !ok {
			want = every
		}
		var got []string
		for name := range strings.FieldsSeq(every) {
			if replayed, _ := c.Marked(http.StatusOK, header(name, "true")); replayed {
				got = append(got, name)
			}
		}
		assert.Equal(t, strings.Fields(want), append([]string{}, got...), c.Name)
	}
}

// The same for hints.
func TestWhoseHintIsHeeded(t *testing.T) {
	const either = "Stripe-Should-Retry X-Should-Retry"
	heeded := map[string]string{
		"adyen": "Transient-Error", "truelayer": "Tl-Should-Retry", "stripe": "Stripe-Should-Retry",
		"increase": "X-Should-Retry", "lithic": "X-Should-Retry", "moderntreasury": "X-Should-Retry",
	}
	for _, c := range contract.All() {
		want, ok := heeded[c.Name]
		if !ok {
			want = either
		}
		var got []string
		for _, name := range []string{"Stripe-Should-Retry", "Tl-Should-Retry", "Transient-Error", "X-Should-Retry"} {
			if c.Advice(500, header(name, "true"), nil) == contract.AdviseRetry {
				got = append(got, name)
			}
		}
		assert.Equal(t, strings.Fields(want), got, c.Name)
	}
}
