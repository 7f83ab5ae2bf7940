package idem_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// VictoriaMetrics/VictoriaMetrics#11552
func TestCase_RACE_3(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var mu sync.Mutex
	keys := map[string]int{}
	s := socketServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		keys[r.Header.Get("Idempotency-Key")]++
		mu.Unlock()
		w.WriteHeader(503) // the body is not read
	}))
	for name, body := range map[string]func() io.Reader{
		"in memory":    func() io.Reader { return bytes.NewReader(data) },
		"stream":       func() io.Reader { return &opaque{r: bytes.NewReader(data)} },
		"at an offset": func() io.Reader { return &position{data: data} },
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 {
				tr, _ := socketTransport(t)
				in := idem.Open()
				b := body()
				resp, err := (&http.Client{Transport: tr}).Do(keyedPost(t, in, s.URL, b))
				if err == nil {
					require.Equal(t, 503, resp.StatusCode)
					resp.Body.Close()
				}
				require.Len(t, in.Attempts(), 3)
				require.Equal(t, idem.OutcomeUnknown, in.Outcome())
				if o, ok := b.(*opaque); ok {
					closedOnce(t, o, name)
					require.Zero(t, o.afterwards.Load())
				}
				mu.Lock()
				require.Len(t, keys, 1)
				clear(keys)
				mu.Unlock()
			}
		})
	}
}

// go-resty/resty#225
func TestCase_RACE_4(t *testing.T) {
	const size = 256 << 10
	var mixed, whole atomic.Int32
	var keys sync.Map
	s := socketServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys.Store(r.Header.Get("Idempotency-Key"), true)
		// Reads slowly at first, so that attempts time out in the middle.
		first := r.Header.Get("X-Slow") != ""
		buf := make([]byte, 16<<10)
		var want byte
		var n int
		for {
			k, err := r.Body.Read(buf)
			if k > 0 {
				if n == 0 {
					want = buf[0]
				}
				n += k
				if bytes.Count(buf[:k], []byte{want}) != k {
					mixed.Add(1)
				}
			}
			if err != nil {
				break
			}
			if first {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if n == size {
			whole.Add(1)
		}
		w.WriteHeader(503)
	}))
	tr, base := socketTransport(t)
	base.MaxIdleConnsPerHost = 4
	tr.AttemptTimeout = 20 * time.Millisecond
	var wg sync.WaitGroup
	var never sync.Map
	for i := range 24 {
		wg.Go(func() {
			data := bytes.Repeat([]byte{'A' + byte(i)}, size)
			var body io.Reader = bytes.NewReader(data)
			switch i % 3 {
			case 1:
				body = &opaque{r: bytes.NewReader(data)}
			case 2:
				body = &position{data: data}
			}
			in := idem.Open()
			req := keyedPost(t, in, s.URL, body)
			if i%2 == 0 {
				req.Header.Set("X-Slow", "1")
			}
			resp, err := (&http.Client{Transport: tr}).Do(req)
			if err == nil {
				resp.Body.Close()
			} else if theError(t, err).Outcome == idem.NotExecuted {
				never.Store(in.Key(), fmt.Sprint(err)) // a slow machine: not even connected
			}
		})
	}
	wg.Wait()
	s.CloseClientConnections()
	s.Close() // waits for the handlers
	never.Range(func(key, text any) bool {
		_, arrived := keys.Load(key)
		assert.False(t, arrived, "arrived: %s", text)
		return true
	})
	require.Zero(t, mixed.Load(), "bytes of another call")
	require.NotZero(t, whole.Load())
}
