package contract_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

const (
	uuid4 = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
	uuid5 = "2ed6657d-e927-568b-95e1-2665a8aea6a2"
)

func TestWire(t *testing.T) {
	visible := contract.Contract{}
	quoted := contract.Contract{Quoted: true}
	format := func(f contract.Format) contract.Contract { return contract.Contract{Name: "acme", Format: f} }
	var every strings.Builder
	for b := byte(0x21); b <= 0x7e; b++ {
		every.WriteByte(b)
	}
	for _, tt := range []struct {
		name string
		c    contract.Contract
		key  string
		want string // the header value; empty: refused
		err  string // a part of the error
	}{
		{"one byte", visible, "a", "a", ""},
		{"every visible character", visible, every.String(), every.String(), ""},
		{"255 bytes", visible, strings.Repeat("k", 255), strings.Repeat("k", 255), ""},
		{"256 bytes", visible, strings.Repeat("k", 256), "", "the key has 256 bytes, the contract takes 1 to 255"},
		{"no bytes", visible, "", "", "the key is empty"},
		{"NUL", visible, "a\x00b", "", "byte 1 of the key is 0x00"},
		{"line feed", visible, "a\n", "", "byte 1 of the key is 0x0a"},
		{"carriage return", visible, "\ra", "", "byte 0 of the key is 0x0d"},
		{"tab", visible, "a\tb", "", "0x09"},
		{"unit separator", visible, "\x1f", "", "0x1f"},
		{"space before", visible, " a", "", "0x20"},
		{"space after", visible, "a ", "", "0x20"},
		{"DEL", visible, "a\x7f", "", "0x7f"},
		{"non-ASCII", visible, "é", "", "0xc3"},
		{"high byte", visible, "\xff", "", "0xff"},

		{"quoted", quoted, uuid4, `"` + uuid4 + `"`, ""},
		{"quoted quote", quoted, `a"b`, `"a\"b"`, ""},
		{"quoted backslash", quoted, `a\b`, `"a\\b"`, ""},
		{"quoted both", quoted, `\"`, `"\\\""`, ""},
		{"quoted is measured without quotes", quoted, strings.Repeat(`"`, 255), `"` + strings.Repeat(`\"`, 255) + `"`, ""},
		{"quoted, 256 bytes", quoted, strings.Repeat("k", 256), "", "256 bytes"},

		{"at least", contract.Contract{MinKey: 4}, "abc", "", "the key has 3 bytes, the contract takes 4 to 255"},
		{"at most", contract.Contract{Name: "acme", MaxKey: 4}, "abcde", "", "the key has 5 bytes, acme takes 1 to 4"},
		{"both ends", contract.Contract{MinKey: 4, MaxKey: 4}, "abcd", "abcd", ""},

		{"UUID", format(contract.FormatUUID), uuid4, uuid4, ""},
		{"UUID of another version", format(contract.FormatUUID), uuid5, uuid5, ""},
		{"UUID in capitals", format(contract.FormatUUID), strings.ToUpper(uuid4), "", "does not have the form that acme asks for"},
		{"UUID in braces", format(contract.FormatUUID), "{" + uuid4 + "}", "", "form"},
		{"UUID as URN", format(contract.FormatUUID), "urn:uuid:" + uuid4, "", "form"},
		{"UUID without hyphens", format(contract.FormatUUID), strings.ReplaceAll(uuid4, "-", ""), "", "form"},
		{"36 bytes, no UUID", format(contract.FormatUUID), strings.Repeat("z", 36), "", "form"},

		{"hex", format(contract.FormatHex), uuid4, "3f2504e04f8941d39a0c0305e82c3301", ""},
		{"hex of no UUID", format(contract.FormatHex), "order-1", "", "form"},
		{"hex given as hex", format(contract.FormatHex), "3f2504e04f8941d39a0c0305e82c3301", "", "form"},
		{"hex is measured after the hyphens are gone", contract.Contract{Format: contract.FormatHex, MaxKey: 32}, uuid4, "3f2504e04f8941d39a0c0305e82c3301", ""},

		{"version 5 stays", format(contract.FormatUUIDv5), uuid5, uuid5, ""},
		// Golden values, from another implementation of RFC 9562, 5.5. They must
		// never change: another value would be another key, and a second effect.
		{"version 4 becomes 5", format(contract.FormatUUIDv5), "5b5a6c4e-7d0f-4b0e-9c77-0f4f5f1d8a21", "2496e23c-d596-5166-a954-1edbac44de2a", ""},
		{"a name becomes 5", format(contract.FormatUUIDv5), "order-4711", "4132f4d2-6978-5ebd-8669-c715aa44c604", ""},
		{"one letter becomes 5", format(contract.FormatUUIDv5), "a", "b54f082d-aff8-5f8b-b30a-aca1253a6c44", ""},
		{"version 5 in capitals is a name", format(contract.FormatUUIDv5), "6BA7B810-9DAD-51D1-80B4-00C04FD430C8", "5d70b3b9-1ae8-5ce6-baca-0bd2d4750db2", ""},

		{"word", format(contract.FormatWord), "aZ0-_", "aZ0-_", ""},
		{"word with a dot", format(contract.FormatWord), "a.b", "", "form"},
		{"word with a colon", format(contract.FormatWord), "a:b", "", "form"},
		{"hyphen", format(contract.FormatHyphen), "aZ0-", "aZ0-", ""},
		{"hyphen with an underscore", format(contract.FormatHyphen), "a_b", "", "form"},
		{"colon", format(contract.FormatColon), "aZ0-_:", "aZ0-_:", ""},
		{"colon with a dot", format(contract.FormatColon), "a.b", "", "form"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.c.Wire(tt.key)
			assert.Equal(t, tt.want, got)
			if tt.want != "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.err)
			assert.True(t, strings.HasPrefix(err.Error(), "contract: "), err)
			assert.NotContains(t, err.Error(), "\n")
			if len(tt.key) > 3 {
				assert.NotContains(t, err.Error(), tt.key, "an error never shows the key")
			}
		})
	}
}

// Every key that Wire takes comes back from Unwire, but for those that
// FormatUUIDv5 has turned into another: they come back as that.
func TestUnwireIsTheInverseOfWire(t *testing.T) {
	keys := []string{"a", `"`, `\`, `\"`, `"quoted"`, "a.b:c", uuid4, uuid5, strings.Repeat(`\`, 255), strings.ToUpper(uuid4)}
	for f := contract.FormatVisible; f.String()[0] == 'F' && !strings.Contains(f.String(), "("); f++ {
		for _, q := range []bool{false, true} {
			c := contract.Contract{Format: f, Quoted: q}
			taken := 0
			for _, key := range keys {
				wire, err := c.Wire(key)
				if err != nil {
					continue
				}
				taken++
				back, err := c.Unwire(wire)
				require.NoError(t, err, "%v quoted=%v", f, q)
				if f == contract.FormatUUIDv5 && key != uuid5 {
					assert.Equal(t, strings.Trim(wire, `"`), back)
				} else {
					assert.Equal(t, key, back, "%v quoted=%v", f, q)
				}
				again, err := c.Wire(back)
				require.NoError(t, err)
				assert.Equal(t, wire, again)
			}
			assert.NotZero(t, taken, "%v takes none of the keys", f)
		}
	}
}

func TestUnwireRefuses(t *testing.T) {
	quoted := contract.Contract{Name: "acme", Quoted: true}
	hex := contract.Contract{Format: contract.FormatHex}
	for _, tt := range []struct {
		name  string
		c     contract.Contract
		value string
		err   string
	}{
		{"nothing", contract.Contract{}, "", "the key is empty"},
		{"space", contract.Contract{}, "a b", "0x20"},
		{"too long", contract.Contract{}, strings.Repeat("k", 256), "256 bytes"},
		{"bare", quoted, "abc", "not a quoted string, as acme asks"},
		{"one quote", quoted, `"`, "not a quoted string"},
		{"no end", quoted, `"abc`, "not a quoted string"},
		{"no beginning", quoted, `abc"`, "not a quoted string"},
		{"empty string", quoted, `""`, "the key is empty"},
		{"quote inside", quoted, `"a"b"`, "not a quoted string"},
		{"escaped end", quoted, `"ab\"`, "not a quoted string"},
		{"escape of a letter", quoted, `"a\b"`, "not a quoted string"},
		{"space inside", quoted, `"a b"`, "0x20"},
		{"parameters", quoted, `"a";q=1`, "not a quoted string"},
		{"hex with hyphens", hex, uuid4, "32 hex digits"},
		{"hex too short", hex, "3f2504e0", "32 hex digits"},
		{"hex of other letters", hex, strings.Repeat("z", 32), "32 hex digits"},
		{"hex in capitals", hex, "3F2504E04F8941D39A0C0305E82C3301", "not in its one spelling"},
		{"version 4 under version 5", contract.Contract{Format: contract.FormatUUIDv5}, uuid4, "not in its one spelling"},
		{"UUID in capitals", contract.Contract{Format: contract.FormatUUID}, strings.ToUpper(uuid4), "form"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.c.Unwire(tt.value)
			assert.Empty(t, got)
			require.ErrorContains(t, err, tt.err)
			assert.True(t, strings.HasPrefix(err.Error(), "contract: "), err)
		})
	}
}
