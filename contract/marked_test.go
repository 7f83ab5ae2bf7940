package contract_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idem-go/idem/contract"
)

func TestMarkedByDefault(t *testing.T) {
	type want struct{ replayed, known bool }
	yes, no, unknown := want{true, true}, want{false, true}, want{}
	tests := []struct {
		name   string
		header http.Header
		want   want
	}{
		{"nothing", header(), unknown},
		{"no header at all", nil, unknown},
		{"the key's echo", header("Idempotency-Key", "k"), unknown},

		{"status: repeated", header("Idempotency-Status", "Repeated"), yes},
		{"status: repeated, in small letters", header("Idempotency-Status", "repeated"), yes},
		{"status: original", header("Idempotency-Status", "Original"), no},
		{"status: ignored", header("Idempotency-Status", "ignored"), unknown},
		{"a key", header("Idempotency-Relayed", "3f2504e0"), yes},
		{"a time", header("X-GCS-Idempotence-Request-Timestamp", "1430820930000"), yes},

		{"original request: another", header("Original-Request", "req_1", "Request-Id", "req_2"), yes},
		{"original request: the same", header("Original-Request", "req_1", "Request-Id", "req_1"), no},
		{"original request: case counts", header("Original-Request", "req_a", "Request-Id", "req_A"), yes},
		{"original request: alone", header("Original-Request", "req_1"), unknown},
		{"request id: alone", header("Request-Id", "req_1"), unknown},

		{"yes wins over no", header("Idempotent-Replayed", "false", "X-Idempotent-Replayed", "true"), yes},
		{"yes wins over unknown", header("Idempotent-Replayed", "perhaps", "X-Idempotent-Replayed", "true"), yes},
		{"no wins over unknown", header("Idempotent-Replayed", "false", "Idempotency-Status", "ignored"), no},
		{"the first line counts", header("Idempotent-Replayed", "false", "Idempotent-Replayed", "true"), no},
		{"a name that was not made canonical", http.Header{"idempotent-replayed": {"true"}}, yes},
		{"a name without values", http.Header{"Idempotent-Replayed": nil}, unknown},
	}
	for _, name := range []string{
		"Idempotent-Replayed", "X-Idempotent-Replayed", "Idempotency-Replayed", "X-Idempotency-Replayed",
		"Idempotency-Replay", "X-Idempotency-Cached", "X-Idempotency-Cache-Hit",
		"chargebee-idempotency-replayed", "Request-Idempotency",
	} {
		for value, w := range map[string]want{
			"true": yes, "True": yes, "1": yes, "false": no, "FALSE": no, "0": no, "": unknown, "perhaps": unknown,
		} {
			tests = append(tests, struct {
				name   string
				header http.Header
				want   want
			}{name + ": " + value, header(name, value), w})
		}
	}
	for _, tt := range tests {
		for _, c := range []contract.Contract{{}, contract.Default()} {
			replayed, known := c.Marked(http.StatusOK, tt.header)
			assert.Equal(t, tt.want, want{replayed, known}, tt.name)
		}
		c := contract.Contract{PromisesMarker: true}
		replayed, known := c.Marked(http.StatusOK, tt.header)
		assert.Equal(t, want{tt.want.replayed, true}, want{replayed, known}, "promised: "+tt.name)
	}
}

func TestMarkedByOwnMarkers(t *testing.T) {
	check := func(m contract.Marker, h http.Header, wantReplayed, wantKnown bool) {
		t.Helper()
		c := contract.Contract{Replayed: []contract.Marker{m}}
		replayed, known := c.Marked(http.StatusOK, h)
		assert.Equal(t, []bool{wantReplayed, wantKnown}, []bool{replayed, known})
	}
	// No values, but none for yes: any other value is a yes.
	m := contract.Marker{Header: "X-Cache", No: []string{"miss"}}
	check(m, header("X-Cache", "HIT"), true, true)
	check(m, header("X-Cache", "MISS"), false, true)
	check(m, header(), false, false)
	// Yes values, but none for no: any other value says nothing.
	m = contract.Marker{Header: "X-Cache", Yes: []string{"hit"}}
	check(m, header("X-Cache", "miss"), false, false)
	// A marker's name may be written in any case.
	check(contract.Marker{Header: "x-cache"}, header("X-Cache", "hit"), true, true)

	replayed, known := contract.Contract{Replayed: []contract.Marker{}}.Marked(http.StatusOK, header("Idempotent-Replayed", "true"))
	assert.False(t, replayed || known, "an empty list knows no marker")
}

func BenchmarkMarked(b *testing.B) {
	h := header("Date", "x", "Content-Type", "x", "Content-Length", "x", "Server", "x", "Cache-Control", "x", "Vary", "x",
		"X-Request-Id", "x", "Strict-Transport-Security", "x", "Connection", "x", "Idempotency-Key", "x", "Request-Id", "x")
	c := contract.Default()
	b.ReportAllocs()
	for b.Loop() {
		c.Marked(http.StatusOK, h)
	}
}

// A marker that an API puts on "in progress" as well says nothing there: taken
// for a replay, it would settle a request that is still running.
func TestMarkedOnSuccessOnly(t *testing.T) {
	for _, h := range []http.Header{
		header("X-GCS-Idempotence-Request-Timestamp", "1430820930000"),
		header("Original-Request", "req_1", "Request-Id", "req_2"),
	} {
		replayed, known := contract.Default().Marked(http.StatusConflict, h)
		assert.False(t, replayed)
		assert.False(t, known)
		replayed, known = contract.Default().Marked(http.StatusCreated, h)
		assert.True(t, replayed)
		assert.True(t, known)
	}
	replayed, _ := contract.Default().Marked(http.StatusConflict, header("Idempotent-Replayed", "true"))
	assert.True(t, replayed, "others hold for every status")
}
