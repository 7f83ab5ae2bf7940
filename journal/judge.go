package journal

import (
	"errors"
	"net/http"
	"strconv"
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
func (c *claim) waitAsked() time.Duration {
	all := c.intent.Attempts()
	if len(all) == 0 {
		return 0
	}
	last := all[len(all)-1]
	return max(last.Wait, last.Asked)
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
