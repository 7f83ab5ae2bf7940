package contract_test

import (
	"testing"

	"github.com/idem-go/idem/contract"
	"github.com/stretchr/testify/assert"
)

func TestFromBody(t *testing.T) {
	c := contract.Contract{Place: contract.InBody, Header: "meta.key"}
	for body, want := range map[string]string{
		`{"meta":{"key":"k-1"}}`:                       "k-1",
		`{"amount":1,"meta":{"note":"x","key":"k-1"}}`: "k-1",
		`{"meta":[{"key":"k-1"},{"key":"k-1"}]}`:       "k-1",
		`{"meta":{"key":""}}`:                          "",
		`{"meta":{"key":null}}`:                        "",
		`{"key":"k-1"}`:                                "",
		`not JSON`:                                     "",
		``:                                             "",
	} {
		key, err := c.FromBody([]byte(body))
		assert.NoError(t, err, body)
		assert.Equal(t, want, key, body)
	}
	_, err := c.FromBody([]byte(`{"meta":[{"key":"k-1"},{"key":"k-2"}]}`))
	assert.ErrorContains(t, err, "two keys")
}
