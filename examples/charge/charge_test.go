package charge_test

import (
	"testing"
	"testing/synctest"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/charge"
	"github.com/idem-go/idem/mockserver"
)

func TestChargeSurvivesALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // half a minute of waiting takes no time
		server := mockserver.New(t, mockserver.Config{})
		server.On("POST /charges").Then("reset@stored", "503@received retry-after=30")
		client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}})
		if err != nil {
			t.Fatal(err)
		}
		intent := idem.Open()
		if _, err := charge.Charge(t.Context(), client, intent, charge.Order{Amount: 500}); err != nil {
			t.Error(err)
		}
		if n := len(server.Effects(intent.Key())); n != 1 {
			t.Errorf("charged %d times", n)
		}
	})
}
