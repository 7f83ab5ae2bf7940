package idem

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutcome_Text(t *testing.T) {
	var zero Outcome
	assert.Equal(t, OutcomeUnknown, zero, "the zero value is the cautious one")
	for o, text := range map[Outcome]string{OutcomeUnknown: "unknown", NotExecuted: "not executed", Answered: "answered"} {
		assert.Equal(t, text, o.String())
		data, err := json.Marshal(o)
		require.NoError(t, err)
		assert.JSONEq(t, `"`+text+`"`, string(data))
		for _, before := range []Outcome{OutcomeUnknown, NotExecuted, Answered} {
			got := before
			require.NoError(t, json.Unmarshal(data, &got))
			assert.Equal(t, o, got)
		}
	}
	for _, bad := range []string{"", "Answered", "answered ", "2", "not_executed", "replayed", strings.Repeat("x", 1000)} {
		got := Answered
		err := got.UnmarshalText([]byte(bad))
		require.Error(t, err, bad)
		assert.Less(t, len(err.Error()), 200, "the text of the error is bounded")
		assert.Equal(t, Answered, got, "a text that is refused changes nothing")
	}
	assert.Equal(t, "7", Outcome(7).String(), "a number without a name")
	assert.Error(t, json.Unmarshal([]byte(`2`), &zero), "the text, not the number")
}

func TestReplay_Text(t *testing.T) {
	var zero Replay
	assert.Equal(t, ReplayUnknown, zero)
	for r, text := range map[Replay]string{ReplayUnknown: "unknown", NotReplayed: "not replayed", Replayed: "replayed"} {
		assert.Equal(t, text, r.String())
		data, err := r.MarshalText()
		require.NoError(t, err)
		got := Replayed
		require.NoError(t, got.UnmarshalText(data))
		assert.Equal(t, r, got)
	}
	got := Replayed
	require.Error(t, got.UnmarshalText([]byte("answered")))
	assert.Equal(t, Replayed, got)
	assert.Equal(t, "9", Replay(9).String())
}

func TestResultOf_Foreign(t *testing.T) {
	assert.Zero(t, ResultOf(nil))
	assert.Zero(t, ResultOf(&http.Response{StatusCode: 200}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/", nil)
	require.NoError(t, err)
	assert.Zero(t, ResultOf(&http.Response{StatusCode: 200, Request: req}))
}

// What happens to a ledger, one event after the other.
type ledgerEvent func(*ledger)

var ledgerStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func enters(l *ledger) { l.enter() }
func leaves(l *ledger) { l.leave() }
func begins(l *ledger) { l.begin(ledgerStart) }
func lates(l *ledger)  { l.late() }

// folds ends an attempt that sent n times.
func folds(n int, a answer, status int) ledgerEvent {
	return func(l *ledger) { l.fold(n, a, status, time.Now()) }
}

// tries is a whole attempt of a call that is under way.
func tries(n int, a answer, status int) ledgerEvent {
	return func(l *ledger) { l.begin(ledgerStart); l.fold(n, a, status, time.Now()) }
}

// called is a whole call.
func called(attempts ...ledgerEvent) ledgerEvent {
	return func(l *ledger) {
		l.enter()
		for _, a := range attempts {
			a(l)
		}
		l.leave()
	}
}

// stored is an answer from a layer's own store.
func stored(status int) ledgerEvent { return func(l *ledger) { l.settle(status) } }

var (
	// The ends of an attempt with one send.
	triesLost   = tries(1, noAnswer, 0)
	triesUnsent = tries(0, noAnswer, 0)
	tries201    = tries(1, settled, 201)
	tries402    = tries(1, decided, 402)
	tries404    = tries(1, decided, 404)
	tries409    = tries(1, noAnswer, 409)
	tries422    = tries(1, decided, 422)
	tries429    = tries(1, refused, 429)
	tries503    = tries(1, noAnswer, 503)
)

func TestLedger(t *testing.T) {
	for _, c := range []struct {
		name   string
		past   bool
		events []ledgerEvent
		want   Outcome
		status int // that an Answered rests on
	}{
		// nothing sent
		{"nothing", false, nil, NotExecuted, 0},
		{"a call that was never begun", false, []ledgerEvent{called()}, NotExecuted, 0},
		{"never sent", false, []ledgerEvent{called(triesUnsent, triesUnsent, triesUnsent)}, NotExecuted, 0},
		{"an attempt is under way", false, []ledgerEvent{enters, begins}, OutcomeUnknown, 0},
		{"a call is under way, nothing sent yet", false, []ledgerEvent{enters}, OutcomeUnknown, 0},
		{"between two attempts that sent nothing", false, []ledgerEvent{enters, triesUnsent}, OutcomeUnknown, 0},

		// one send
		{"one lost", false, []ledgerEvent{called(triesLost)}, OutcomeUnknown, 0},
		{"one 201", false, []ledgerEvent{called(tries201)}, Answered, 201},
		{"one 402", false, []ledgerEvent{called(tries402)}, Answered, 402},
		{"one 404", false, []ledgerEvent{called(tries404)}, Answered, 404},
		{"one 422", false, []ledgerEvent{called(tries422)}, Answered, 422},
		{"one 409", false, []ledgerEvent{called(tries409)}, OutcomeUnknown, 0},
		{"one 429", false, []ledgerEvent{called(tries429)}, NotExecuted, 0},
		{"one 503", false, []ledgerEvent{called(tries503)}, OutcomeUnknown, 0},
		{"unsent, then 402", false, []ledgerEvent{called(triesUnsent, tries402)}, Answered, 402},
		{"unsent, then lost", false, []ledgerEvent{called(triesUnsent, triesLost)}, OutcomeUnknown, 0},
		{"lost, then unsent", false, []ledgerEvent{called(triesLost, triesUnsent)}, OutcomeUnknown, 0},

		// refusals close one send
		{"refused three times", false, []ledgerEvent{called(tries429, tries429, tries429)}, NotExecuted, 0},
		{"429, then 402", false, []ledgerEvent{called(tries429, tries402)}, Answered, 402},
		{"429, then 402, in two calls", false, []ledgerEvent{called(tries429), called(tries402)}, Answered, 402},
		{"429, then unsent", false, []ledgerEvent{called(tries429, triesUnsent)}, NotExecuted, 0},
		{"429, then lost", false, []ledgerEvent{called(tries429, triesLost)}, OutcomeUnknown, 0},
		{"lost, then 429", false, []ledgerEvent{called(triesLost, tries429)}, OutcomeUnknown, 0},
		{"503, then 429", false, []ledgerEvent{called(tries503, tries429)}, OutcomeUnknown, 0},
		{"409, then 429", false, []ledgerEvent{called(tries409, tries429)}, OutcomeUnknown, 0},
		{"a refusal without a send", false, []ledgerEvent{called(tries(0, refused, 429))}, NotExecuted, 0},

		// re-sends within an attempt: the refusal closes the last only
		{"sent twice, refused", false, []ledgerEvent{called(tries(2, refused, 401))}, OutcomeUnknown, 0},
		{"sent twice, 402", false, []ledgerEvent{called(tries(2, decided, 402))}, OutcomeUnknown, 0},
		{"sent twice, 201", false, []ledgerEvent{called(tries(2, settled, 201))}, Answered, 201},
		{"sent 32 times, refused", false, []ledgerEvent{called(tries(32, refused, 429))}, OutcomeUnknown, 0},
		{"refused, then sent twice and refused", false, []ledgerEvent{called(tries429, tries(2, refused, 429))}, OutcomeUnknown, 0},

		// an unmarked 4xx after an open send
		{"lost, then 402", false, []ledgerEvent{called(triesLost, tries402)}, OutcomeUnknown, 0},
		{"lost, then 404", false, []ledgerEvent{called(triesLost, tries404)}, OutcomeUnknown, 0},
		{"lost, then 409 of the business", false, []ledgerEvent{called(triesLost, tries(1, decided, 409))}, OutcomeUnknown, 0},
		{"lost, then mismatch", false, []ledgerEvent{called(triesLost, tries422)}, OutcomeUnknown, 0},
		{"lost in one call, 404 in the next", false, []ledgerEvent{called(triesLost), called(tries404)}, OutcomeUnknown, 0},
		{"503, then 402", false, []ledgerEvent{called(tries503, tries402)}, OutcomeUnknown, 0},
		{"lost, then a marked 402", false, []ledgerEvent{called(triesLost, tries(1, settled, 402))}, Answered, 402},
		{"lost, then 201", false, []ledgerEvent{called(triesLost, tries201)}, Answered, 201},

		// a new send reopens what was not settled
		{"402, then 402", false, []ledgerEvent{called(tries402), called(tries402)}, OutcomeUnknown, 0},
		{"402, then lost", false, []ledgerEvent{called(tries402), called(triesLost)}, OutcomeUnknown, 0},
		{"402, then 429", false, []ledgerEvent{called(tries402), called(tries429)}, OutcomeUnknown, 0},
		{"402, then unsent", false, []ledgerEvent{called(tries402), called(triesUnsent)}, Answered, 402},
		{"402, then a call that was never begun", false, []ledgerEvent{called(tries402), called()}, Answered, 402},
		{"402, then a call is under way", false, []ledgerEvent{called(tries402), enters}, OutcomeUnknown, 0},
		{"402, then a marked 402", false, []ledgerEvent{called(tries402), called(tries(1, settled, 402))}, Answered, 402},
		{"402, then 201", false, []ledgerEvent{called(tries402), called(tries201)}, Answered, 201},
		{"402, then an attempt that never ends", false, []ledgerEvent{called(tries402), called(begins)}, OutcomeUnknown, 0},
		{"402, then a late send", false, []ledgerEvent{called(tries402), lates}, OutcomeUnknown, 0},

		// settled never falls
		{"201, then lost", false, []ledgerEvent{called(tries201), called(triesLost)}, Answered, 201},
		{"201, then 402", false, []ledgerEvent{called(tries201), called(tries402)}, Answered, 201},
		{"201, then 429", false, []ledgerEvent{called(tries201), called(tries429)}, Answered, 201},
		{"201, then unsent", false, []ledgerEvent{called(tries201), called(triesUnsent)}, Answered, 201},
		{"201, then a late send", false, []ledgerEvent{called(tries201), lates}, Answered, 201},
		{"201, and a call is under way", false, []ledgerEvent{called(tries201), enters, begins}, Answered, 201},
		{"201, then another settled answer", false, []ledgerEvent{called(tries201), called(tries(1, settled, 200))}, Answered, 200},

		// an attempt that ends in no way at all, such as by a panic in Base
		{"an attempt that never ends", false, []ledgerEvent{called(begins)}, OutcomeUnknown, 0},
		{"an attempt that never ends, then 402", false, []ledgerEvent{called(begins), called(tries402)}, OutcomeUnknown, 0},
		{"an attempt that never ends, then 429", false, []ledgerEvent{called(begins), called(tries429)}, OutcomeUnknown, 0},
		{"an attempt that never ends, then 201", false, []ledgerEvent{called(begins), called(tries201)}, Answered, 201},

		// late sends, seen after the attempt had ended
		{"unsent, then a late send", false, []ledgerEvent{called(triesUnsent), lates}, OutcomeUnknown, 0},
		{"refused, then a late send", false, []ledgerEvent{called(tries429), lates}, OutcomeUnknown, 0},
		{"unsent, a late send, 402", false, []ledgerEvent{called(triesUnsent), lates, called(tries402)}, OutcomeUnknown, 0},
		{"unsent, a late send, 429", false, []ledgerEvent{called(triesUnsent), lates, called(tries429)}, OutcomeUnknown, 0},

		// two calls at once
		{"A in flight, B refused", false, []ledgerEvent{enters, begins, called(tries429)}, OutcomeUnknown, 0},
		{"A in flight, B unsent", false, []ledgerEvent{enters, begins, called(triesUnsent)}, OutcomeUnknown, 0},
		{"A in flight, B 402", false, []ledgerEvent{enters, begins, called(tries402)}, OutcomeUnknown, 0},
		{"A in flight, B 201", false, []ledgerEvent{enters, begins, called(tries201)}, Answered, 201},
		{"A in flight, B 402, A refused", false, []ledgerEvent{enters, begins, called(tries402), folds(1, refused, 429), leaves}, OutcomeUnknown, 0},
		{"A in flight, B 402, A unsent", false, []ledgerEvent{enters, begins, called(tries402), folds(0, noAnswer, 0), leaves}, OutcomeUnknown, 0},
		{"A in flight, B refused, A unsent", false, []ledgerEvent{enters, begins, called(tries429), folds(0, noAnswer, 0), leaves}, NotExecuted, 0},
		{"A in flight, B refused, A 402", false, []ledgerEvent{enters, begins, called(tries429), folds(1, decided, 402), leaves}, Answered, 402},
		{"A in flight, B 201, A lost", false, []ledgerEvent{enters, begins, called(tries201), folds(1, noAnswer, 0), leaves}, Answered, 201},
		{"A in flight, B 201, A 402", false, []ledgerEvent{enters, begins, called(tries201), folds(1, decided, 402), leaves}, Answered, 201},
		{"A and B both 402", false, []ledgerEvent{enters, begins, enters, begins, folds(1, decided, 402), folds(1, decided, 402), leaves, leaves}, OutcomeUnknown, 0},

		// a key with a past
		{"past, nothing", true, nil, OutcomeUnknown, 0},
		{"past, unsent", true, []ledgerEvent{called(triesUnsent)}, OutcomeUnknown, 0},
		{"past, 429", true, []ledgerEvent{called(tries429)}, OutcomeUnknown, 0},
		{"past, 402", true, []ledgerEvent{called(tries402)}, OutcomeUnknown, 0},
		{"past, mismatch", true, []ledgerEvent{called(tries422)}, OutcomeUnknown, 0},
		{"past, a marked 402", true, []ledgerEvent{called(tries(1, settled, 402))}, Answered, 402},
		{"past, 201", true, []ledgerEvent{called(tries201)}, Answered, 201},
		{"past, 201, then lost", true, []ledgerEvent{called(tries201), called(triesLost)}, Answered, 201},

		// answers that needed no send
		{"stored", false, []ledgerEvent{called(stored(201))}, Answered, 201},
		{"stored, with a past", true, []ledgerEvent{called(stored(402))}, Answered, 402},
		{"stored, then 402", false, []ledgerEvent{called(stored(201)), called(tries402)}, Answered, 201},
		{"lost, then stored", false, []ledgerEvent{called(triesLost), called(stored(200))}, Answered, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &ledger{past: c.past}
			for _, event := range c.events {
				event(l)
			}
			got, status := l.state(0)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.status, status)
			assert.Equal(t, c.want, l.outcome(0))
		})
	}
}

// The call that makes an attempt does not count itself: its own view at the end
// of an attempt is that of a caller after the call.
func TestLedger_OwnView(t *testing.T) {
	l := new(ledger)
	l.enter()
	assert.Equal(t, NotExecuted, l.outcome(1))
	l.begin(ledgerStart)
	assert.Equal(t, OutcomeUnknown, l.outcome(1), "a send may be under way")
	assert.Equal(t, NotExecuted, l.fold(0, noAnswer, 0, time.Now()))
	l.begin(ledgerStart)
	assert.Equal(t, NotExecuted, l.fold(1, refused, 429, time.Now()))
	l.begin(ledgerStart)
	assert.Equal(t, Answered, l.fold(1, decided, 402, time.Now()))
	assert.Equal(t, Answered, l.outcome(1))
	assert.Equal(t, OutcomeUnknown, l.outcome(0), "for others the call is under way")
	l.enter() // another call
	assert.Equal(t, OutcomeUnknown, l.outcome(1))
	l.begin(ledgerStart)
	assert.Equal(t, OutcomeUnknown, l.fold(1, refused, 429, time.Now()))
	l.leave()
	l.leave()
}

// The window's clock: it starts with the first attempt that may have sent, and
// not with one that is known to have sent nothing.
func TestLedger_FirstSend(t *testing.T) {
	at := func(s int) time.Time { return ledgerStart.Add(time.Duration(s) * time.Second) }
	l := new(ledger)
	assert.Zero(t, l.firstSend())
	l.begin(at(1))
	assert.Equal(t, at(1), l.firstSend(), "while it is under way it may be sending")
	l.fold(0, noAnswer, 0, time.Now())
	assert.Zero(t, l.firstSend(), "nothing left after all")
	l.begin(at(2))
	l.fold(1, refused, 429, time.Now())
	assert.Equal(t, at(2), l.firstSend(), "a refusal was a send")
	l.begin(at(3))
	l.fold(0, noAnswer, 0, time.Now())
	assert.Equal(t, at(2), l.firstSend())

	// Two attempts at once: the earlier start counts, whichever of them sent.
	l = new(ledger)
	l.begin(at(1))
	l.begin(at(2))
	l.fold(0, noAnswer, 0, time.Now())
	assert.Equal(t, at(1), l.firstSend())
	l.fold(1, noAnswer, 0, time.Now())
	assert.Equal(t, at(1), l.firstSend())

	// A send seen only after its attempt had ended starts the clock as well: it
	// left after that end, so then is soon enough.
	l = new(ledger)
	l.begin(at(1))
	l.fold(0, noAnswer, 0, time.Now())
	l.late()
	assert.False(t, l.firstSend().IsZero(), "something was sent")
	first := l.firstSend()
	l.begin(first.Add(time.Hour))
	l.fold(1, noAnswer, 0, time.Now())
	assert.Equal(t, first, l.firstSend())

	// A known first send stays, whatever follows.
	l = &ledger{past: true, firstSent: at(0), sent: true}
	l.begin(at(9))
	l.fold(0, noAnswer, 0, time.Now())
	assert.Equal(t, at(0), l.firstSend())
}

// A second implementation, send by send, of what the package documentation says
// of the outcome; the ledger must agree after every event of random histories
// with up to three calls at once.
type plainLedger struct {
	past    bool
	calls   int
	running int    // attempts
	sends   []bool // open?
	settled bool
	stands  int // number of the send that an unsettled answer stands for; -1: none
	status  int
}

func (p *plainLedger) outcome(own int) (Outcome, int) {
	open := p.running
	for _, o := range p.sends {
		if o {
			open++
		}
	}
	switch {
	case p.settled:
		return Answered, p.status
	case p.past || p.calls > own:
		return OutcomeUnknown, 0
	case open == 0:
		return NotExecuted, 0
	case open == 1 && p.stands >= 0 && p.stands == len(p.sends)-1:
		return Answered, p.status
	}
	return OutcomeUnknown, 0
}

func (p *plainLedger) fold(n int, a answer, status int) {
	p.running--
	alone := p.running == 0 && p.calls == 1 && !p.past
	for _, o := range p.sends {
		alone = alone && !o
	}
	for range n {
		p.sends = append(p.sends, true)
	}
	switch last := len(p.sends) - 1; {
	case a == refused && n > 0:
		p.sends[last] = false
	case a == settled:
		p.settled, p.status = true, status
	case a == decided && n == 1 && alone && !p.settled:
		p.stands, p.status = last, status
	}
}

func TestLedger_AgreesWithThePlainOne(t *testing.T) {
	const histories, events = 5_000, 14
	random := rand.New(rand.NewPCG(3, 4))
	for range histories {
		past := random.IntN(6) == 0
		l, p := &ledger{past: past}, &plainLedger{past: past, stands: -1}
		var trace []string
		for range events {
			switch k := random.IntN(10); {
			case k < 3 && p.calls < 3:
				trace = append(trace, "enter")
				l.enter()
				p.calls++
			case k < 5 && p.calls > p.running:
				trace = append(trace, "leave")
				l.leave()
				p.calls--
			case k < 7 && p.calls > p.running:
				trace = append(trace, "begin")
				l.begin(ledgerStart)
				p.running++
			case k < 10 && p.running > 0:
				n, a := random.IntN(3), answer(random.IntN(4))
				if n == 0 && a != noAnswer {
					n = 1 // an answer is to something
				}
				status := map[answer]int{noAnswer: 503, refused: 429, decided: 402, settled: 201}[a]
				trace = append(trace, "fold "+string(rune('0'+n))+" "+string(rune('0'+a)))
				got := l.fold(n, a, status, time.Now())
				p.fold(n, a, status)
				want, _ := p.outcome(1)
				require.Equal(t, want, got, "%v", trace)
			}
			for own := range 2 {
				want, wantStatus := p.outcome(own)
				got, status := l.state(own)
				require.Equal(t, want, got, "own %d: %v", own, trace)
				require.Equal(t, wantStatus, status, "own %d: %v", own, trace)
			}
		}
	}
}

// Whatever happens at once, a settled answer stays, and the end is right.
func TestLedger_Concurrent(t *testing.T) {
	l := new(ledger)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 50 {
				switch l.enter(); i % 4 {
				case 0:
					tries429(l)
				case 1:
					triesUnsent(l)
				case 2:
					tries429(l)
					triesUnsent(l)
				case 3:
					_ = l.outcome(1)
				}
				l.leave()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, NotExecuted, l.outcome(0))
	called(tries201)(l)
	for range 20 {
		wg.Go(func() {
			for range 50 {
				called(triesLost, tries402, tries429)(l)
				assert.Equal(t, Answered, l.outcome(0))
			}
		})
	}
	wg.Wait()
	got, status := l.state(0)
	assert.Equal(t, Answered, got)
	assert.Equal(t, 201, status)
}
