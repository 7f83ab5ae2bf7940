package idem

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/idem-go/idem/contract"
)

// namespace is the root of all derived keys: the UUIDv5 of this repository's URL.
// It is fixed for ever: another value would make other keys of the same names.
const namespace = "cf4e9cf3-0f6f-5ab3-ab9a-44981106f4ef"

// mint does what uuid.NewString does, whatever source uuid.SetRand may have been
// given, and with one allocation less.
func mint() string {
	var u uuid.UUID
	_, _ = rand.Read(u[:])  // it cannot return an error
	u[6] = u[6]&0x0f | 0x40 // version 4 (RFC 9562, 5.4)
	u[8] = u[8]&0x3f | 0x80 // the variant of RFC 9562, 4.1
	return u.String()
}

func derive(space, name string) string {
	outer := uuid.NewSHA1(uuid.MustParse(namespace), []byte(space))
	return uuid.NewSHA1(outer, []byte(name)).String()
}

// checkKey checks what holds under every contract, and refuses the nil UUID: it
// is what a forgotten parameter looks like, and all who forget share it.
func checkKey(key string) error {
	if _, err := (contract.Contract{}).Wire(key); err != nil {
		return because(ErrInvalidKey, "%s", strings.TrimPrefix(err.Error(), "contract: "))
	}
	if isNilUUID(key) {
		return because(ErrInvalidKey, "the nil UUID")
	}
	return nil
}

func isNilUUID(key string) bool {
	const zeros = "00000000-0000-0000-0000-000000000000"
	key = strings.Trim(key, `"`)
	return key == zeros || key == strings.ReplaceAll(zeros, "-", "")
}

// shortKey makes a key fit to be shown: the first eight digits of a UUID, a
// length for anything else, which may hold a name or an address.
func shortKey(key string) string {
	if _, err := uuid.Parse(key); err == nil && len(key) == 36 {
		return key[:8] + "…"
	}
	return fmt.Sprintf("of %d bytes", len(key))
}
