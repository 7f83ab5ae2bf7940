package contract

import (
	"fmt"
	"strings"
)

// docs/contracts.md is written by the test that compares it.
//go:generate go test -count=1 -run ^TestDocs$ ../conformance -update

// All returns every contract of the catalogue: Default, IETF, then the APIs by
// the name of their functions.
func All() []Contract {
	return []Contract{
		Default(), IETF(),
		Adyen(),
		AmazonPay(),
		Azure(),
		BlueSnap(),
		Chargebee(),
		Checkout(),
		Dwolla(),
		Easypay(),
		EPay(),
		Flutterwave(),
		GoCardless(),
		Hyperline(),
		Increase(),
		Interchecks(),
		Klarna(),
		Lithic(),
		Mangopay(),
		MercadoPago(),
		Method(),
		ModernTreasury(),
		Mollie(),
		OpenBankingUK(),
		PayPal(),
		PPRO(),
		Qonto(),
		Razorpay(),
		Sinch(),
		SmartRetry(),
		Solidgate(),
		Square(),
		Stripe(),
		Telness(),
		Telnyx(),
		TrueLayer(),
		Whop(),
		Wise(),
		WiseBalance(),
		Worldline(),
		Zuora(),
	}
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
