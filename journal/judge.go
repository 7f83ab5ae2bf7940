package journal

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// pointless reports whether sending again cannot tell more: the server keeps this
// answer, or says that asking again is of no use.
func (c *claim) pointless(resp *http.Response, body [][]byte) bool {
	if resp == nil {
		return false
	}
	k := &c.j.set.contract
	switch k.Classify(resp.StatusCode, resp.Header, prefix(body)) {
	case contract.Mismatch, contract.Final, contract.KeyRefused:
		return true
	case contract.InProgress, contract.Transient:
		return false
	}
	replayed, _ := k.Marked(resp.StatusCode, resp.Header)
	return resp.StatusCode >= 500 && (replayed || k.Stored.Keeps(resp.StatusCode)) ||
		k.Advice(resp.StatusCode, resp.Header, prefix(body)) == contract.AdviseStop
}

// standsAnyway reports whether an answer is true whoever else has sent.
func (c *claim) standsAnyway(res idem.Result, resp *http.Response, body [][]byte) bool {
	if resp == nil || res.Outcome != idem.Answered {
		return false
	}
	means := c.j.set.contract.Classify(resp.StatusCode, resp.Header, prefix(body))
	return resp.StatusCode < 300 || res.Replay == idem.Replayed || means == contract.Done || means == contract.Settled
}

// tellLess hands over, as unknown, what only the holder of the lease could know.
func (c *claim) tellLess(res idem.Result, resp *http.Response, last error) error {
	res.Outcome = idem.OutcomeUnknown
	e := &idem.Error{Result: res, Reason: because(ErrLeaseLost, "%v", c.ref), Last: last}
	if resp != nil {
		e.Header = resp.Header
	}
	return e
}

// waitAsked is how long the server, or the Transport, wants the next call to wait.
func (c *claim) waitAsked(resp *http.Response) time.Duration {
	var wait time.Duration
	if all := c.intent.Attempts(); len(all) > 0 {
		wait = all[len(all)-1].Wait
	}
	if resp != nil {
		wait = max(wait, asked(resp.Header, time.Now()))
	}
	return wait
}

// asked is the wait that an answer asks for, in the spellings that the Transport
// reads: it says nothing of it where it had no attempt left to wait for. What is
// none is not positive.
func asked(h http.Header, now time.Time) time.Duration {
	if d := number(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	value := h.Get("Retry-After")
	if d := number(value, time.Second); d > 0 {
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the two clocks may differ
	}
	return at.Sub(now)
}

// number reads digits, with a fraction or without, as a number of units; zero
// for anything else.
func number(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case strings.Trim(s, "0123456789.") != "":
		return 0
	case n >= float64(math.MaxInt64/unit): // out of range is infinite
		return math.MaxInt64
	case err != nil:
		return 0
	}
	return time.Duration(n * float64(unit))
}

func resultOf(r *http.Request, resp *http.Response, err error) idem.Result {
	if e, ok := errors.AsType[*idem.Error](err); ok {
		return e.Result
	}
	if resp == nil {
		return idem.Result{}
	}
	return idem.ResultOf(&http.Response{Request: r}) // a Base need not set resp.Request
}

func whyUnsettled(res idem.Result, err error) error {
	if err != nil {
		return err
	}
	return errors.New("journal: status " + strconv.Itoa(res.Status) + " settles nothing")
}

func prefix(body [][]byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return body[0][:min(len(body[0]), 16<<10)]
}

func isRetryTx(err error) bool { return errors.Is(err, ErrRetryTx) }
