package idem_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
)

// canned answers every request with a small JSON body, without a network.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		ContentLength: 13, Body: io.NopCloser(strings.NewReader(`{"id":"ch_1"}`)),
	}, nil
}

// BenchmarkPost compares a 512-byte POST that succeeds at once: with net/http
// bare, with the Timeout that a careful user sets, and with everything that this
// package does. The last two lines of the output are what is added.
func BenchmarkPost(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 512)
	run := func(name string, client *http.Client, ctx func() context.Context) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(ctx(), http.MethodPost, "http://api.example.com/charges", bytes.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	plain := context.Background
	run("bare", &http.Client{Transport: canned{}}, plain)
	run("bare with Timeout", &http.Client{Transport: canned{}, Timeout: 30 * time.Second}, plain)
	client := &http.Client{Transport: &idem.Transport{Base: canned{}}}
	run("idem without a key", client, plain)
	run("idem, an Intent a call", client, func() context.Context { return idem.WithIntent(context.Background(), idem.Open()) })
}
