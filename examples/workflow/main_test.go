package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/examples/internal/page"
	"github.com/idem-go/idem/examples/internal/trouble"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests run the command in a process of its own, which is this binary.
func TestMain(m *testing.M) {
	if os.Getenv("WORKFLOW") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// workflow is the command, with the file of an order.
func workflow(t *testing.T, api, file string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), os.Args[0], "-api", api, "-file", file)
	c.Env = append(os.Environ(), "WORKFLOW=1", "GORACE=atexit_sleep_ms=0")
	return c
}

func steps() []string { return []string{"reservations", "charges", "shipments"} }

// As in examples/README.md: once, and once more with the same file.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		file := filepath.Join(t.TempDir(), "order.json")
		var out bytes.Buffer
		for range 2 {
			require.NoError(t, run(t.Context(), &out, file, idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}}))
		}
		page.Shows(t, "workflow", out.String())
		check(t, server, file)
	})
}

// The process is killed at each point of each step: before the step's work, so
// between two steps; and after it, when nobody but the server knows. Whoever goes
// on asks with the same keys, and every step is done once.
func TestKilled(t *testing.T) {
	for _, point := range []mockserver.Point{mockserver.Received, mockserver.Stored} {
		for n, step := range steps() {
			t.Run(string(point)+"/"+step, func(t *testing.T) {
				server := mockserver.New(t, mockserver.Config{Addr: "127.0.0.1:0"})
				server.On("POST /" + step).Then("hang@" + mockserver.Fault(point))
				file := filepath.Join(t.TempDir(), "order.json")

				first := workflow(t, server.URL, file)
				require.NoError(t, first.Start())
				key := ""
				require.Eventually(t, func() bool { // the step has its key in the file's Intent
					p, err := load(file)
					if err != nil {
						return false
					}
					key = p.Intent.Child(step).Key()
					return true
				}, 20*time.Second, time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				require.NoError(t, server.Await(ctx, key, 1, point))
				require.NoError(t, first.Process.Kill())
				require.Error(t, first.Wait())
				server.Release(key) // the request was in flight: it arrives all the same
				p, err := load(file)
				require.NoError(t, err)
				assert.Len(t, p.Done, n, "the file says no more than was known")

				out, err := workflow(t, server.URL, file).CombinedOutput()
				require.NoError(t, err, "%s", out)
				check(t, server, file)
			})
		}
	}
}

// Nobody is killed, but the network is bad.
func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		for _, step := range steps() {
			trouble.Meets(server, "POST /"+step)
		}
		file := filepath.Join(t.TempDir(), "order.json")
		api := idem.Config{BaseURL: server.URL, Transport: trouble.Transport(server)}
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, file, api))
		assert.Equal(t, "begun\nreservations: 1 (replayed)\ncharges: 2 (replayed)\nshipments: 3 (replayed)\n", out.String())
		check(t, server, file)

		requests := len(server.Requests(""))
		out.Reset()
		require.NoError(t, run(t.Context(), &out, file, api))
		assert.Equal(t, "reservations: 1 already\ncharges: 2 already\nshipments: 3 already\n", out.String())
		assert.Len(t, server.Requests(""), requests)
	})
}

// A step that cannot be made stops the rest; the file says where to go on.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		server.On("POST /charges").Then("503@received retry-after=300")
		file := filepath.Join(t.TempDir(), "order.json")
		api := idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}}
		var out bytes.Buffer
		assert.ErrorIs(t, run(t.Context(), &out, file, api), idem.ErrWaitTooLong)
		assert.Len(t, server.Effects(""), 1)
		time.Sleep(5 * time.Minute)
		require.NoError(t, run(t.Context(), &out, file, api))
		check(t, server, file)
	})
}

// A key that the server may have forgotten is not sent again.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(t, mockserver.Config{})
		server.On("POST /charges").Then("503@head retry-after=3600") // the charge is made
		file := filepath.Join(t.TempDir(), "order.json")
		api := idem.Config{BaseURL: server.URL, Transport: &idem.Transport{Base: server.Transport()}}
		var out bytes.Buffer
		assert.ErrorIs(t, run(t.Context(), &out, file, api), idem.ErrWaitTooLong)
		requests := len(server.Requests(""))
		time.Sleep(24 * time.Hour)
		assert.ErrorIs(t, run(t.Context(), &out, file, api), idem.ErrExpired)
		assert.Len(t, server.Requests(""), requests)
	})
}

func TestBadFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "order.json")
	api := idem.Config{BaseURL: "http://127.0.0.1:1"}
	for _, text := range []string{"", "{", "{}", `{"intent":{"key":""},"done":{}}`, `{"intent":{"key":"k"},"done":{}}`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		assert.Error(t, run(t.Context(), new(bytes.Buffer), file, api), text)
	}
}

// check checks that each step was done once, under the key that follows from the
// Intent in the file, and that nothing else was.
func check(t *testing.T, server *mockserver.Server, file string) {
	t.Helper()
	p, err := load(file)
	require.NoError(t, err)
	assert.Len(t, p.Done, 3)
	for _, step := range steps() {
		key := p.Intent.Child(step).Key()
		requests := server.Requests(key)
		require.NotEmpty(t, requests)
		for _, r := range requests {
			assert.Equal(t, "/"+step, r.URL)
			assert.Equal(t, requests[0].Body, r.Body)
		}
		assert.Len(t, server.Effects(key), 1)
		server.Believe(key, mockserver.Done)
	}
	assert.Len(t, server.Effects(""), 3)
	assert.NoError(t, server.Verify())
}
