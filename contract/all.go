package contract

import (
	"fmt"
	"strings"
)

// All returns every contract of the catalogue, Default first.
func All() []Contract {
	return []Contract{Default(), IETF()}
}

// ByName returns the contract of that name from [All], ignoring case.
func ByName(name string) (Contract, error) {
	var names []string
	for _, c := range All() {
		if strings.EqualFold(c.Name, name) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Contract{}, fmt.Errorf("contract: no contract is named %q; there are %s", name, strings.Join(names, ", "))
}
