package conformance_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/contract"
)

// limits are keys that the contract takes and keys that it does not.
func (r *rig) limits() (takes, refuses []string) {
	short, long := strings.Repeat("k", r.MinKey), strings.Repeat("k", r.MaxKey)
	uuid := idem.Open().Key()
	takes, refuses = []string{uuid}, []string{long + "k"}
	if r.MinKey > 1 {
		refuses = append(refuses, short[1:])
	}
	switch r.Format {
	case contract.FormatUUID, contract.FormatHex:
		return takes, append(refuses, "order-1", long)
	case contract.FormatUUIDv5:
		return append(takes, "order.1", long), nil // each becomes a UUID
	case contract.FormatHyphen:
		refuses = append(refuses, uuid[:20]+"_")
	case contract.FormatWord:
		refuses = append(refuses, uuid[:20]+":")
	case contract.FormatColon:
		refuses = append(refuses, uuid[:20]+".")
	}
	if short != long {
		takes = append(takes, short)
	}
	return append(takes, long), refuses
}

// Keys beyond the contract's limits are refused before anything is sent.
func TestKeyLimits(t *testing.T) {
	each(t, func(r *rig) {
		takes, refuses := r.limits()
		c := r.client()
		body := r.charge(1)
		call := func(key string) (idem.Result, error) {
			var err error
			r.in, err = idem.Adopt(key, time.Now())
			if err != nil {
				return idem.Result{Outcome: idem.NotExecuted}, err // no contract takes it
			}
			if r.Place == contract.InBody {
				r.put(body, key)
			}
			return r.post(c, body)
		}
		for _, key := range refuses {
			res, err := call(key)
			assert.ErrorIs(r.t, err, idem.ErrInvalidKey, "%d bytes", len(key))
			assert.Equal(r.t, idem.NotExecuted, res.Outcome)
			assert.Zero(r.t, res.Attempts)
		}
		require.Empty(r.t, r.srv.Requests(""))
		for i, key := range takes {
			_, err := call(key)
			assert.NoError(r.t, err, "%d bytes", len(key))
			assert.Len(r.t, r.srv.Effects(""), i+1)
		}
	})
}

// A server that gets such a key does no work.
func TestKeyLimitsOfTheServer(t *testing.T) {
	each(t, func(r *rig) {
		_, refuses := r.limits()
		if r.Quoted || r.Format == contract.FormatHex {
			refuses = append(refuses, r.in.Key()) // not in the form of the wire
		}
		status, _ := r.spelled(contract.KeyRefused, 400)
		body := r.charge(1)
		for _, key := range refuses {
			wire := key
			if r.Quoted && len(key) > r.MaxKey {
				wire = `"` + key + `"`
			}
			if r.Place == contract.InBody {
				r.put(body, wire)
			}
			assert.Equal(r.t, status, r.other(http.MethodPost, wire, body), "%d bytes", len(key))
		}
		assert.Zero(r.t, r.runs.Load())
	})
}

// The methods that the contract names carry the key, and no others; the server
// keeps the key for those alone.
func TestMethods(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		each(t, func(r *rig) {
			res, err := r.send(method, r.charge(1))
			require.NoError(r.t, err)
			assert.Equal(r.t, 201, res.Status)
			hits := r.srv.Requests("")
			require.Len(r.t, hits, 1)
			switch {
			case r.Keys(method):
				r.oneKey(hits)
				assert.Equal(r.t, r.wire(), res.Key)
			case r.Place == contract.InHeader:
				assert.Empty(r.t, hits[0].Header.Values(r.Header))
			}
			if !r.Keys(method) {
				assert.Empty(r.t, res.Key)
			}
		})
		each(t, func(r *rig) {
			r.breach = true // a method without keys works twice
			r.other(method, r.wire(), r.charge(1))
			r.other(method, r.wire(), r.charge(1))
			runs := 2
			if r.Keys(method) {
				runs = 1
			}
			assert.EqualValues(r.t, runs, r.runs.Load())
		})
	}
}

func (r *rig) send(method string, body map[string]any) (idem.Result, error) {
	data := marshal(r.t, body)
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.srv.URL+"/charges", bytes.NewReader(data))
	require.NoError(r.t, err)
	resp, err := r.client().Do(r.in, req)
	if err != nil {
		return idem.Result{}, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return idem.ResultOf(resp), err
}

// Where the key is in the body it is verified, and never put in.
func TestKeyInBody(t *testing.T) {
	each(t, func(r *rig) {
		if r.Place != contract.InBody {
			return
		}
		none, other := r.charge(1), r.charge(1)
		delete(none, strings.Split(r.Header, ".")[0])
		r.put(other, idem.Open().Key())
		for _, bad := range []struct {
			body any
			is   error
		}{{none, idem.ErrInvalidKey}, {nil, idem.ErrInvalidKey}, {other, idem.ErrKeyConflict}} {
			res, err := r.post(r.client(), bad.body)
			assert.ErrorIs(r.t, err, bad.is)
			assert.Equal(r.t, idem.NotExecuted, res.Outcome)
		}
		require.Empty(r.t, r.srv.Requests(""))

		body := r.charge(1)
		before := marshal(r.t, body)
		res, err := r.post(r.client(), body)
		r.check(res, err, want{hits: 1, runs: 1, status: 201, outcome: idem.Answered, replay: r.fresh()})
		hit := r.srv.Requests("")[0]
		assert.Equal(r.t, string(before), string(hit.Body))
		for name := range hit.Header {
			assert.NotContains(r.t, strings.ToLower(name), "idempot")
		}
	})
}
