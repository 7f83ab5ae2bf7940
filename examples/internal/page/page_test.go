package page

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPlain(t *testing.T) {
	const one = "  0.002s  attempt 1: EOF   waits 158ms | http://127.0.0.1:45431, key 168ed3a2…\nsends    7  \n"
	const other = "12.5s attempt 1: EOF waits 9.2s | http://127.0.0.1:8, key 00000000…\nsends 8123"
	differs := []*regexp.Regexp{regexp.MustCompile(`(sends) +\d+`)}
	assert.Equal(t, plain(one, differs), plain(other, differs))
	assert.NotEqual(t, plain(one, nil), plain(other, nil))
	assert.NotEqual(t, plain("attempt 1", nil), plain("attempt 2", nil))
	assert.NotEqual(t, plain("EOF", nil), plain("reset", nil))
}
