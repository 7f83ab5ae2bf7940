package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the tests start this binary again, as a process of the shop that
// dies at a step.
func TestMain(m *testing.M) {
	if os.Getenv("STAGEDOOR_DSN") == "" {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv("STAGEDOOR_DSN"), os.Getenv("STAGEDOOR_PROVIDER"), os.Getenv("STAGEDOOR_DIE_AT")); err != nil {
		log.Fatal(err)
	}
}

const shortClaim = 500 * time.Millisecond

// child serves the shop until it is killed, by its own hand at the step dieAt.
func child(dsn, provider, dieAt string) error {
	store, err := connect(dsn)
	if err != nil {
		return err
	}
	at := func(step string) {
		if step == dieAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal is there
		}
	}
	shop, err := newShop(store, Config{
		Provider: provider, Base: stepped(at), Stale: shortClaim, At: at, OnError: func(err error) { log.Print(err) },
	})
	if err != nil {
		return err
	}
	server := httptest.NewServer(shop.Handler())
	fmt.Println(server.URL)
	go shop.reconcile(context.Background(), 50*time.Millisecond)
	for {
		if _, err := shop.finishOrders(context.Background()); err != nil {
			log.Print(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stepped is the network to the provider, with two steps more: before the first
// byte leaves, and when an answer is there that nobody has looked at.
func stepped(at func(string)) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		at("bound")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			at("answered")
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// process starts the shop in a process of its own, which dies at a step, and
// returns its URL. The caller ends it.
func process(t *testing.T, store *Store, provider *Provider, dieAt string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STAGEDOOR_DSN="+store.dsn, "STAGEDOOR_PROVIDER="+provider.URL, "STAGEDOOR_DIE_AT="+dieAt)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(url)
}

// A real process is killed at every step of an order, and another is started: there
// is one charge, whether or not the buyer asks again.
func TestKilled(t *testing.T) {
	steps := []struct {
		name  string
		order bool // whether it was placed by then
	}{
		{"claimed", false}, {"ordered", false},
		{"committed", true}, {"intent claimed", true}, {"bound", true}, {"answered", true},
		{"charged", true}, {"settled", true}, {"stored", true},
	}
	for database, dsn := range databases() {
		for _, step := range steps {
			t.Run(database+"/"+step.name, func(t *testing.T) {
				t.Parallel()
				onFresh(t, dsn, func(s *Store) { killAndRestart(t, s, step.name, step.order, true) })
			})
			if step.order {
				t.Run(database+"/"+step.name+", and the buyer is gone", func(t *testing.T) {
					t.Parallel()
					onFresh(t, dsn, func(s *Store) { killAndRestart(t, s, step.name, true, false) })
				})
			}
		}
	}
}

func killAndRestart(t *testing.T, s *Store, step string, placed, buyerReturns bool) {
	h := newHouse(t, s, Config{})
	first, url := process(t, s, h.provider, step)
	defer end(first)
	_, err := post(url, "click")
	require.Error(t, err, "it dies before it answers")
	_ = first.Wait()
	status, ok := first.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGKILL, status.Signal(), first.ProcessState.String())
	before := 0
	if placed {
		before = 1
	}
	require.Equal(t, before, count(t, s, "SELECT count(*) FROM orders"), "one transaction: all or nothing")
	require.Equal(t, before, count(t, s, "SELECT count(*) FROM claims"))

	second, url := process(t, s, h.provider, "")
	defer end(second)
	if !buyerReturns {
		require.Eventually(t, func() bool {
			return count(t, s, "SELECT count(*) FROM claims WHERE status = 201") == 1
		}, 20*time.Second, 50*time.Millisecond)
	}
	var got reply
	require.Eventually(t, func() bool {
		got, err = post(url, "click")
		return err == nil && got.status != http.StatusConflict && got.status != http.StatusServiceUnavailable
	}, 20*time.Second, 100*time.Millisecond)
	assert.Equal(t, 201, got.status, got.body)
	again, err := post(url, "click")
	require.NoError(t, err)
	assert.True(t, again.replayed())
	assert.Equal(t, got.body, again.body)
	assert.Equal(t, 2, count(t, s, "SELECT count(*) FROM outbox"), "placed and paid")
	assert.Equal(t, 0, count(t, s, "SELECT count(*) FROM orders WHERE state <> 'paid'"))
	h.one()
	for _, r := range h.provider.Requests("") {
		assert.Contains(t, []string{"", chargeKey(t, s)}, r.Key, "of a GET, or of the one charge")
	}
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// post sends the order that a test of a crash is about, to a process that may die.
func post(url, key string) (reply, error) {
	r, err := http.NewRequest(http.MethodPost, url+"/orders", strings.NewReader(want("S01", "good")))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Authorization", "Bearer ann")
	r.Header.Set("Idempotency-Key", key)
	return roundTrip(r)
}
