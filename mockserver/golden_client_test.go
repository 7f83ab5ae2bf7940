package mockserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGoldenClient holds what a client sees that ends the wait by itself, or that
// meets an answer it cannot take, and how often it sends: in memory, in virtual
// time, as TestGolden has shown that TCP shows the same.
func TestGoldenClient(t *testing.T) {
	type clientSide func(c *http.Client, base *http.Transport) (context.Context, context.CancelFunc)
	plain := func(*http.Client, *http.Transport) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.Background())
	}
	rows := []struct {
		name string
		f    Fault
		side clientSide
	}{}
	add := func(name string, side clientSide, faults ...Fault) {
		for _, f := range faults {
			rows = append(rows, struct {
				name string
				f    Fault
				side clientSide
			}{name, f, side})
		}
	}
	waits := []Fault{"hang@received", "hang@body after=5"}
	add("deadline", func(*http.Client, *http.Transport) (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Second)
	}, waits...)
	add("cancel", func(*http.Client, *http.Transport) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}, waits...)
	add("cancel with a cause", func(*http.Client, *http.Transport) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(errors.New("my cause")) })
		return ctx, func() { cancel(nil) }
	}, waits...)
	add("Client.Timeout", func(c *http.Client, _ *http.Transport) (context.Context, context.CancelFunc) {
		c.Timeout = time.Second
		return context.WithCancel(context.Background())
	}, waits...)
	add("ResponseHeaderTimeout", func(_ *http.Client, base *http.Transport) (context.Context, context.CancelFunc) {
		base.ResponseHeaderTimeout = time.Second
		return context.WithCancel(context.Background())
	}, waits[0])
	add("MaxResponseHeaderBytes", func(_ *http.Client, base *http.Transport) (context.Context, context.CancelFunc) {
		base.MaxResponseHeaderBytes = 4096
		return context.WithCancel(context.Background())
	}, Fault("200@received header=X:"+strings.Repeat("x", 8000)))
	add("gzip", plain, `200@received header=Content-Encoding:gzip body="\x1f\x8b\x08\x00\x00"`)
	add("redirect", plain, "301@received header=Location:/elsewhere", "302@received header=Location:/elsewhere", "303@received header=Location:/elsewhere",
		"307@received header=Location:/elsewhere", "308@received header=Location:https://other.example/elsewhere")
	add("none", plain, "408@received", "204@received")

	var table strings.Builder
	fmt.Fprintln(&table, "# protocol | client | fault | what the caller sees | what it matches | requests received")
	for _, p := range []struct {
		name string
		Config
	}{{"http1", Config{TLS: true}}, {"h2", Config{TLS: true, HTTP2: true}}} {
		for _, row := range rows {
			synctest.Test(t, func(t *testing.T) {
				s := New(t, p.Config)
				s.On("POST /orders").Then(row.f)
				client := s.Client()
				ctx, cancel := row.side(client, client.Transport.(*transport).base)
				defer cancel()
				got := send(ctx, client, http.MethodPost, s.URL+"/orders", "{}", "Idempotency-Key: k")
				what := "Do"
				if got.Status != 0 {
					what = strconv.Itoa(got.Status)
				}
				switch {
				case row.name == "Client.Timeout": // its timer and its context's come at the same moment
					what += ": one of several texts"
				case got.Err != nil:
					what += ": " + normalise(got.Err.Error())
				}
				var paths []string
				for _, r := range s.Requests("") {
					paths = append(paths, r.Method+" "+r.URL+" key "+strconv.Quote(r.Key))
				}
				name := string(row.f)
				if len(name) > 80 {
					name = name[:40] + "…"
				}
				fmt.Fprintf(&table, "%s | %s | %s | %s | %s | %s\n", p.name, row.name, name, what, cmp.Or(matches(got.Err), "-"), strings.Join(paths, ", "))
			})
		}
	}
	// K idle connections that all fail: K + 1 requests of one Do.
	for _, k := range []int{1, 5, 20} {
		for _, key := range []string{"", "k"} {
			synctest.Test(t, func(t *testing.T) {
				s := New(t, Config{})
				client := s.Client()
				s.On("GET /orders").Always("delay@received for=1s")
				var all sync.WaitGroup
				for range k {
					all.Go(func() { send(t.Context(), client, http.MethodGet, s.URL+"/orders", "") })
				}
				all.Wait()
				s.On("POST /orders").Always("drop@received")
				err := postOrder(t, client, s, key, "{}").Err
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				fmt.Fprintf(&table, "http1 | %d idle connections | drop@received | key %q | %s | %d\n", k, key, matches(err), len(s.Requests(""))-k)
			})
		}
	}
	compareGolden(t, filepath.Join("testdata", "client.txt"), table.String())
}
