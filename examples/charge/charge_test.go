package charge_test

import (
	"errors"
	"net/http"
	"strings"
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

// A charge whose receipt cannot be read was made all the same: whoever is told "not
// charged" charges again.
func TestChargeThatCannotBeReadIsNotDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mockserver.Did(r.Context(), "charge", nil)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"ID":17}`)) // a number, where Receipt wants a string
		})})
		client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = charge.Charge(t.Context(), client, idem.Open(), charge.Order{Amount: 500})
		if !errors.Is(err, charge.ErrUnknown) || strings.Contains(err.Error(), "not charged") {
			t.Error(err)
		}
		if n := len(server.Effects("")); n != 1 {
			t.Errorf("charged %d times", n)
		}
	})
}

// Every end that a charge can come to, by the fault that all its attempts meet.
func TestChargeComesToEveryEnd(t *testing.T) {
	for _, end := range []struct {
		fault   mockserver.Fault
		outcome idem.Outcome
		effects int
	}{
		{"pass", idem.Answered, 1},
		{"402@received", idem.Answered, 0},                       // the server says no
		{"refuse@dial", idem.NotExecuted, 0},                     // nobody is there
		{"429@received", idem.NotExecuted, 0},                    // refused before the work
		{"503@received retry-after=120", idem.OutcomeUnknown, 0}, // longer than MaxRetryAfter: no second attempt
		{"reset@received", idem.OutcomeUnknown, 0},               // lost before the work
		{"reset@head", idem.OutcomeUnknown, 1},                   // lost after it, which looks the same
		{"cut@body after=9", idem.OutcomeUnknown, 1},             // the answer ends half way, each time
	} {
		t.Run(string(end.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := mockserver.New(t, mockserver.Config{})
				server.On("POST /charges").Always(end.fault)
				client, err := idem.NewClient(idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}})
				if err != nil {
					t.Fatal(err)
				}
				intent := idem.Open()
				_, err = charge.Charge(t.Context(), client, intent, charge.Order{Amount: 500})
				if intent.Outcome() != end.outcome || errors.Is(err, charge.ErrUnknown) != (end.outcome == idem.OutcomeUnknown) {
					t.Errorf("outcome %v, error: %v", intent.Outcome(), err)
				}
				if n := len(server.Effects(intent.Key())); n != end.effects {
					t.Errorf("charged %d times", n)
				}
			})
		})
	}
}
