package contract_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/contract"
)

func TestKeys(t *testing.T) {
	for _, c := range []contract.Contract{{}, contract.Default()} {
		for method, want := range map[string]bool{
			"POST": true, "PATCH": true, "PUT": true, "DELETE": true,
			"GET": false, "HEAD": false, "OPTIONS": false, "TRACE": false, "": false, "post": false, "PROPFIND": false,
		} {
			assert.Equal(t, want, c.Keys(method), "%q", method)
		}
	}
	c := contract.Contract{Methods: []string{"POST"}}
	assert.True(t, c.Keys("POST"))
	assert.False(t, c.Keys("PUT"))
	assert.False(t, contract.Contract{Methods: []string{}}.Keys("POST"))
}

func TestRefuses(t *testing.T) {
	for _, c := range []contract.Contract{{}, contract.Default()} {
		var got []int
		for status := range 600 {
			if c.Refuses(status) {
				got = append(got, status)
			}
		}
		assert.Equal(t, []int{401, 407, 413, 429}, got)
	}
	assert.True(t, contract.Contract{Refusals: []int{403}}.Refuses(403))
	assert.False(t, contract.Contract{Refusals: []int{403}}.Refuses(401))
	assert.False(t, contract.Contract{Refusals: []int{}}.Refuses(401))
}

func TestStoredKeeps(t *testing.T) {
	for _, tt := range []struct {
		s                            contract.Stored
		c200, c299, c300, c404, c5xx bool
	}{
		{contract.StoredBelow500, true, true, true, true, false},
		{contract.StoredSuccess, true, true, false, false, false},
		{contract.StoredAll, true, true, true, true, true},
	} {
		assert.Equal(t, []bool{tt.c200, tt.c299, tt.c300, tt.c404, tt.c5xx},
			[]bool{tt.s.Keeps(200), tt.s.Keeps(299), tt.s.Keeps(300), tt.s.Keeps(404), tt.s.Keeps(500)}, "%v", tt.s)
	}
	assert.False(t, contract.StoredSuccess.Keeps(199))
}

func TestWithDefaults(t *testing.T) {
	got, want := contract.Contract{}.WithDefaults(), contract.Default()
	want.Name, want.Source = "", ""
	assert.Equal(t, want, got, "the zero Contract is Default but for its name")
	assert.Equal(t, contract.Default(), contract.Default().WithDefaults())

	empty := contract.Contract{
		Methods: []string{}, Answers: []contract.Match{}, Refusals: []int{}, Replayed: []contract.Marker{}, Hints: []contract.Hint{},
	}.WithDefaults()
	for _, list := range []any{empty.Methods, empty.Answers, empty.Refusals, empty.Replayed, empty.Hints} {
		assert.NotNil(t, list)
		assert.Empty(t, list, "an empty list stays: it means none")
	}

	own := contract.Contract{
		Name: "n", Source: "s", Header: "H", Place: contract.InBody, FirstSentHeader: "F", Methods: []string{"POST"},
		Format: contract.FormatWord, Quoted: true, MinKey: 2, MaxKey: 3, Window: -1, Gap: time.Second, Lease: time.Second,
		Answers: []contract.Match{{Status: 400, Means: contract.Final}}, Refusals: []int{403},
		Replayed: []contract.Marker{{Header: "R"}}, PromisesMarker: true, Hints: []contract.Hint{{Header: "T", Stop: "1"}},
		Stored: contract.StoredAll,
	}
	assert.Equal(t, own, own.WithDefaults(), "what is set stays")
	v := reflect.ValueOf(own)
	for i := range v.NumField() {
		assert.False(t, v.Field(i).IsZero(), "the field %s is not tried here", v.Type().Field(i).Name)
	}
}

// A caller may change what a call of the catalogue returned, down to the
// elements of its lists: the next call does not see it.
func TestCatalogueIsNotShared(t *testing.T) {
	spoil := func(c contract.Contract) {
		for i := range c.Methods {
			c.Methods[i] = "SPOILT"
		}
		for i := range c.Answers {
			c.Answers[i] = contract.Match{}
		}
		for i := range c.Refusals {
			c.Refusals[i] = 0
		}
		for i := range c.Replayed {
			for j := range c.Replayed[i].Yes {
				c.Replayed[i].Yes[j] = "spoilt"
			}
			for j := range c.Replayed[i].No {
				c.Replayed[i].No[j] = "spoilt"
			}
			c.Replayed[i] = contract.Marker{}
		}
		for i := range c.Hints {
			c.Hints[i] = contract.Hint{}
		}
	}
	for i, c := range contract.All() {
		before := contract.All()[i]
		spoil(c)
		spoil(contract.Contract{}.WithDefaults())
		assert.Equal(t, before, contract.All()[i], before.Name)
		for j, other := range contract.All() {
			assert.NotContains(t, other.Methods, "SPOILT", "%d has spoilt %d", i, j)
		}
	}
}

func TestByName(t *testing.T) {
	for _, c := range contract.All() {
		got, err := contract.ByName(strings.ToUpper(c.Name))
		require.NoError(t, err)
		assert.Equal(t, c, got)
	}
	_, err := contract.ByName("nobody")
	require.EqualError(t, err, `contract: no contract is named "nobody"; there are `+names())
	_, err = contract.ByName("")
	require.Error(t, err)
}

func names() string {
	var names []string
	for _, c := range contract.All() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func TestAllIsValidAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range contract.All() {
		assert.NoError(t, c.Validate(), c.Name)
		assert.NotEmpty(t, c.Name)
		assert.Equal(t, strings.ToLower(c.Name), c.Name)
		assert.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		assert.True(t, strings.HasPrefix(c.Source, "https://"), "%s has no source", c.Name)
	}
	assert.Equal(t, contract.Default(), contract.All()[0])
}
