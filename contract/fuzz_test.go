package contract_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem/contract"
)

// Whatever the key and the contract: Wire does not panic, what it returns is
// fit for a header, and Unwire finds the way back.
func FuzzWire(f *testing.F) {
	for _, key := range []string{"", "a", uuid4, uuid5, `"`, `\"\\`, `"a b"`, "é", "a\r\nb", strings.Repeat("k", 256)} {
		for format := range uint8(9) {
			f.Add(key, format, format%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, key string, format uint8, quoted bool) {
		c := contract.Contract{Format: contract.Format(format), Quoted: quoted}
		if back, err := c.Unwire(key); err == nil {
			if again, err := c.Wire(back); err != nil || again != key {
				t.Fatalf("Unwire took %q, Wire gives %q, %v", key, again, err)
			}
		}
		wire, err := c.Wire(key)
		if err != nil {
			if wire != "" || !strings.HasPrefix(err.Error(), "contract: ") {
				t.Fatalf("%q and %q", wire, err)
			}
			return
		}
		for i := range len(wire) {
			if wire[i] < 0x21 || wire[i] > 0x7e {
				t.Fatalf("%q is not fit for a header", wire)
			}
		}
		back, err := c.Unwire(wire)
		if err != nil {
			t.Fatalf("Unwire(%q): %v", wire, err)
		}
		if back != key && c.Format != contract.FormatUUIDv5 {
			t.Fatalf("%q came back as %q", key, back)
		}
		if again, err := c.Wire(back); err != nil || again != wire {
			t.Fatalf("%q became %q, %v", wire, again, err)
		}
	})
}

// Whatever the body and the path: Classify, Peeks and Advice do not panic, a 422
// is never repeated by its status alone, and a body that is not looked at
// changes nothing.
func FuzzClassify(f *testing.F) {
	for _, body := range []string{
		"", "{}", `{"code":"x"}`, `{"code":704`, `[{"code":["x",true]}]`, `{"a":{"code":null}}`, `{"type":"urn:e:x"}`,
		"\x00", `{"code"}`, `{"code":"x"}}`, strings.Repeat("[", 100), strings.Repeat(`{"code":`, 100),
	} {
		f.Add([]byte(body), "code", "x", 422, uint8(contract.InProgress))
		f.Add([]byte(body), "a.code", "", 0, uint8(contract.Transient))
		f.Add([]byte(body), "", "", 422, uint8(contract.Transient))
	}
	f.Fuzz(func(t *testing.T, body []byte, path, value string, status int, means uint8) {
		c := contract.Contract{
			Answers: []contract.Match{{Status: status, Path: path, Value: value, Means: contract.Meaning(means)}},
			Hints:   []contract.Hint{{Path: path, Retry: value, Stop: "false"}},
		}
		for _, answer := range []int{status, 200, 409, 422, 500} {
			got := c.Classify(answer, nil, body)
			if answer == 422 && (path == "" || value == "") && (got == contract.InProgress || got == contract.Transient) {
				t.Fatalf("a 422 without a code is %v", got)
			}
			if !c.Peeks(answer) && got != c.Classify(answer, nil, nil) {
				t.Fatalf("%d: the body was looked at", answer)
			}
			if c.Advice(answer, nil, body) != contract.NoAdvice && (answer >= 200 && answer < 300) {
				t.Fatalf("%d: a hint was read on a success", answer)
			}
		}
		_ = c.Validate()
	})
}
