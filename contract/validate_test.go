package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

func TestValidate(t *testing.T) {
	require.NoError(t, contract.Contract{}.Validate(), "the zero Contract is whole")
	require.NoError(t, contract.Contract{Place: contract.InBody, Header: "meta.idempotency_key"}.Validate())
	require.NoError(t, contract.Contract{Methods: []string{"PROPFIND"}}.Validate())

	answer := func(m contract.Match) contract.Contract {
		return contract.Contract{Answers: []contract.Match{{Status: 409, Means: contract.Done}, m}}
	}
	hint := func(h contract.Hint) contract.Contract { return contract.Contract{Hints: []contract.Hint{h}} }
	marker := func(m contract.Marker) contract.Contract { return contract.Contract{Replayed: []contract.Marker{m}} }
	for _, tt := range []struct {
		c    contract.Contract
		want string // the whole text; each is one line
	}{
		{contract.Contract{Place: 2}, "contract: Place Place(2) is not known"},
		{contract.Contract{Header: "A B"}, `contract: Header "A B" is not a header name`},
		{contract.Contract{Header: "Clé"}, `contract: Header "Clé" is not a header name`},
		{contract.Contract{Header: "A\nB"}, `contract: Header "A\nB" is not a header name`},
		{contract.Contract{Place: contract.InBody, Header: "a..b"}, `contract: Header "a..b" is not the path of a member`},
		{contract.Contract{Place: contract.InBody, Quoted: true}, "contract: Quoted is for headers, not for the body"},
		{contract.Contract{FirstSentHeader: "First:"}, `contract: FirstSentHeader "First:" is not a header name`},
		{contract.Contract{Methods: []string{""}}, `contract: Methods: "" is not a method`},
		{contract.Contract{Methods: []string{"PO ST"}}, `contract: Methods: "PO ST" is not a method`},
		{contract.Contract{Methods: []string{"post"}}, `contract: Methods: "post" is another method than POST`},
		{contract.Contract{Methods: []string{"Get"}}, `contract: Methods: "Get" is another method than GET`},
		{contract.Contract{Methods: []string{"GET"}}, "contract: Methods: a GET never carries a key"},
		{contract.Contract{Methods: []string{"HEAD"}}, "contract: Methods: a HEAD never carries a key"},
		{contract.Contract{Methods: []string{"OPTIONS"}}, "contract: Methods: a OPTIONS never carries a key"},
		{contract.Contract{Methods: []string{"TRACE"}}, "contract: Methods: a TRACE never carries a key"},
		{contract.Contract{Format: 99}, "contract: Format Format(99) is not known"},
		{contract.Contract{MinKey: -1}, "contract: keys of -1 to 255 bytes cannot be"},
		{contract.Contract{MinKey: 256}, "contract: keys of 256 to 255 bytes cannot be"},
		{contract.Contract{Format: contract.FormatHex, MaxKey: 31}, "contract: FormatHex makes keys of 32 bytes, MinKey and MaxKey take 1 to 31"},
		{contract.Contract{Format: contract.FormatUUID, MinKey: 37}, "contract: FormatUUID makes keys of 36 bytes, MinKey and MaxKey take 37 to 255"},
		{contract.Contract{Format: contract.FormatUUIDv5, MaxKey: 35}, "contract: FormatUUIDv5 makes keys of 36 bytes, MinKey and MaxKey take 1 to 35"},
		{contract.Contract{Gap: -1}, "contract: Gap -1ns must not be negative"},
		{contract.Contract{Lease: -time.Second}, "contract: Lease -1s must not be negative"},
		{contract.Contract{Stored: 3}, "contract: Stored Stored(3) is not known"},
		{answer(contract.Match{Status: 99, Means: contract.Done}), "contract: Answers[1]: 99 is not a status"},
		{answer(contract.Match{Status: 600, Means: contract.Done}), "contract: Answers[1]: 600 is not a status"},
		{answer(contract.Match{Status: 409}), "contract: Answers[1]: Unclassified is no meaning"},
		{answer(contract.Match{Status: 409, Means: 8}), "contract: Answers[1]: Meaning(8) is no meaning"},
		{answer(contract.Match{Status: 409, Value: "x", Means: contract.Done}), `contract: Answers[1]: the value "x" has no path`},
		{answer(contract.Match{Status: 409, Path: ".x", Means: contract.Done}), `contract: Answers[1]: ".x" is not the path of a member`},
		{answer(contract.Match{Status: 422, Means: contract.InProgress}), "contract: Answers[1]: only a code can make a 422 InProgress"},
		{answer(contract.Match{Status: 422, Path: "code", Means: contract.Transient}), "contract: Answers[1]: only a code can make a 422 Transient"},
		{contract.Contract{Refusals: []int{200}}, "contract: Refusals: 200 is not a status of refusal"},
		{contract.Contract{Refusals: []int{399}}, "contract: Refusals: 399 is not a status of refusal"},
		{contract.Contract{Refusals: []int{600}}, "contract: Refusals: 600 is not a status of refusal"},
		{marker(contract.Marker{}), `contract: Replayed[0]: "" is not a header name`},
		{marker(contract.Marker{Header: "A", DiffersFrom: "B "}), `contract: Replayed[0]: DiffersFrom "B " is not a header name`},
		{hint(contract.Hint{Retry: "1"}), "contract: Hints[0]: one of Header and Path must be set, and not both"},
		{hint(contract.Hint{Header: "A", Path: "b", Retry: "1"}), "contract: Hints[0]: one of Header and Path must be set, and not both"},
		{hint(contract.Hint{Header: "A:", Retry: "1"}), `contract: Hints[0]: "A:" is not a header name`},
		{hint(contract.Hint{Path: "a.", Stop: "1"}), `contract: Hints[0]: "a." is not the path of a member`},
		{hint(contract.Hint{Header: "A"}), "contract: Hints[0]: neither Retry nor Stop is set"},
	} {
		assert.EqualError(t, tt.c.Validate(), tt.want)
	}
}

func TestValidateJoinsAllFaults(t *testing.T) {
	err := contract.Contract{
		Place: 9, FirstSentHeader: " ", Methods: []string{"GET"}, Format: 99, MinKey: -1, Gap: -1, Stored: 9,
		Answers: []contract.Match{{}}, Refusals: []int{1}, Replayed: []contract.Marker{{}}, Hints: []contract.Hint{{}},
	}.Validate()
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	assert.Len(t, lines, 12)
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "contract: "), line)
	}
}
