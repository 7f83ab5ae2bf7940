package contract

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Format narrows what a key looks like on the wire, beyond 1 to 255 visible
// ASCII characters (0x21 to 0x7E).
type Format uint8

const (
	FormatVisible Format = iota // any visible ASCII
	FormatUUID                  // a UUID in the form of RFC 9562, section 4
	FormatHex                   // a UUID as 32 hex digits, for APIs where hyphens do not fit
	FormatUUIDv5                // a UUID of version 5; another key is turned into one by its SHA-1 name
	FormatWord                  // letters, digits, hyphen and underscore
	FormatHyphen                // letters, digits and hyphen
	FormatColon                 // letters, digits, hyphen, underscore and colon
)

// String returns the name of the constant.
func (f Format) String() string {
	return name(f, "FormatVisible", "FormatUUID", "FormatHex", "FormatUUIDv5", "FormatWord", "FormatHyphen", "FormatColon")
}

// size returns the one length that keys of the format have on the wire; zero if
// they have many.
func (f Format) size() int {
	switch f {
	case FormatUUID, FormatUUIDv5:
		return 36
	case FormatHex:
		return 32
	}
	return 0
}

// spell returns the spelling of a visible key under f, or "" if the key does
// not fit.
func (f Format) spell(key string) string {
	switch f {
	case FormatUUID:
		if !isUUID(key) {
			return ""
		}
	case FormatHex:
		if !isUUID(key) {
			return ""
		}
		return strings.ReplaceAll(key, "-", "")
	case FormatUUIDv5:
		if !isUUID(key) || key[14] != '5' { // the digit of the version
			return uuid.NewSHA1(uuid.MustParse(wireNamespace), []byte(key)).String()
		}
	case FormatWord:
		return only(key, "-_")
	case FormatHyphen:
		return only(key, "-")
	case FormatColon:
		return only(key, "-_:")
	}
	return key
}

// only returns key if it holds nothing but letters, digits and what is in
// extra, and "" otherwise.
func only(key, extra string) string {
	for i := range len(key) {
		if !isAlnum(key[i]) && strings.IndexByte(extra, key[i]) < 0 {
			return ""
		}
	}
	return key
}

// wireNamespace is the name space in which FormatUUIDv5 turns foreign keys into
// UUIDs. It is fixed for ever: another value would be another key.
const wireNamespace = "5b5a6c4e-7d0f-5b0e-9c77-0f4f5f1d8a21"

// Wire returns the exact header value for key: a pure function of both, so that
// every attempt, in every process, sends the same. The error says which limit
// the key breaks; it does not show the key. Nothing is trimmed.
func (c Contract) Wire(key string) (string, error) {
	if key == "" {
		return "", errors.New("contract: the key is empty")
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			return "", fmt.Errorf("contract: byte %d of the key is %#02x, not visible ASCII", i, key[i])
		}
	}
	wire := c.Format.spell(key)
	if wire == "" {
		return "", fmt.Errorf("contract: the key does not have the form that %s asks for", c.who())
	}
	lo, hi := c.limits()
	if n := len(wire); n < lo || n > hi {
		return "", fmt.Errorf("contract: the key has %d bytes, %s takes %d to %d", n, c.who(), lo, hi)
	}
	if c.Quoted {
		return quote(wire), nil
	}
	return wire, nil
}

// Unwire is the inverse of Wire, for the server's side and for keys that a
// caller has put on a request: it returns the key that gives this header value.
// A key that FormatUUIDv5 has turned into a UUID is given back as that UUID.
func (c Contract) Unwire(value string) (string, error) {
	key := value
	if c.Quoted {
		var ok bool
		if key, ok = unquote(value); !ok {
			return "", fmt.Errorf("contract: the key is not a quoted string, as %s asks", c.who())
		}
	}
	if c.Format == FormatHex {
		id, err := uuid.Parse(key)
		if err != nil || len(key) != 32 {
			return "", errors.New("contract: the key is not 32 hex digits")
		}
		key = id.String()
	}
	if again, err := c.Wire(key); err != nil {
		return "", err
	} else if again != value {
		return "", errors.New("contract: the key is not in its one spelling")
	}
	return key, nil
}

// limits are MinKey and MaxKey, or Default's.
func (c Contract) limits() (lo, hi int) {
	return cmp.Or(c.MinKey, defaultMinKey), cmp.Or(c.MaxKey, defaultMaxKey)
}

func (c Contract) who() string {
	if c.Name == "" {
		return "the contract"
	}
	return c.Name
}

// isUUID reports whether key is a UUID in its canonical spelling.
func isUUID(key string) bool {
	if len(key) != 36 {
		return false
	}
	id, err := uuid.Parse(key)
	return err == nil && id.String() == key
}

func isAlnum(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// quote writes a structured-field string (RFC 8941, 4.1.6).
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// unquote reads a structured-field string (RFC 8941, 4.2.5).
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for i, end := 1, len(s)-1; i < end; i++ {
		switch s[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == end || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}
