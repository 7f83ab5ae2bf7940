package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idem-go/idem/mockserver"
)

// ofJSON is the head of an answer of the API, without a mark or a hint.
func ofJSON() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

// delay is the fault of a worker that takes d.
func delay(d time.Duration) mockserver.Fault {
	return mockserver.Fault(fmt.Sprintf("delay@claimed for=%v", d))
}

// answered is the fault of an answer in front of the server.
func answered(status int, mime, body string, headers ...string) mockserver.Fault {
	text := fmt.Sprintf("%d@received type=%q body=%q", status, mime, body)
	for _, h := range headers {
		text += fmt.Sprintf(" header=%q", h)
	}
	return mockserver.Fault(text)
}

// quiet waits for as long as the contract wants between two requests.
func (r *rig) quiet() { time.Sleep(r.Gap) }

// again is the text of a fault that answers a repeat as the API words it.
func again(status int, body string) string {
	return fmt.Sprintf("%d@head type=application/json body=%q", status, body)
}

func reader(t *testing.T, v any) io.Reader {
	t.Helper()
	return bytes.NewReader(marshal(t, v))
}

// all reads an answer to its end.
func all(t *testing.T, resp *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(data)
}
