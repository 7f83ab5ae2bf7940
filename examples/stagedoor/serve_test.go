package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The lines that -serve prints are run as they are, and do what they say.
func TestServe(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		missing(t, "the lines are for curl: "+err.Error())
	}
	onStores(t, func(t *testing.T, s *Store) {
		ctx, stop := context.WithCancel(t.Context())
		read, write := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- serve(ctx, write, s, nil, "127.0.0.1:0")
			_ = write.Close()
		}()
		printed := make([]string, 0, 20)
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			printed = append(printed, lines.Text())
			if strings.Contains(lines.Text(), "/webhooks") { // the last
				break
			}
		}
		text := strings.Join(printed[1:], "\n")
		run := func(script string) string {
			out, err := exec.Command("sh", "-ec", script).Output()
			require.NoError(t, err, script)
			return string(out)
		}
		first := run(text)
		assert.Equal(t, []string{"201", "422", "201", "409", "402", "400", "204"}, statuses(first))
		second := run(text)
		assert.Equal(t, []string{"201", "422", "201", "409", "402", "400", "204"}, statuses(second))
		assert.Equal(t, 4, strings.Count(second, "Idempotent-Replayed: true"))
		assert.NotContains(t, first, "Idempotent-Replayed")

		// Two charges were made, and so two mails are written and three credits given,
		// one of them by hand.
		require.Eventually(t, func() bool {
			return count(t, s, "SELECT count(*) FROM mails") == 2 && count(t, s, "SELECT sum(credits) FROM wallets") == 3
		}, 20*time.Second, 20*time.Millisecond)
		assert.Equal(t, 1000, count(t, s, "SELECT balance FROM wallets WHERE buyer = 'ann'"))
		url := regexp.MustCompile(`SHOP=(\S+)`).FindStringSubmatch(text)
		require.NotNil(t, url)
		stop()
		require.NoError(t, <-done)
		_, err := http.Get(url[1])
		assert.Error(t, err, "it is shut")
	})
}

// What runs beside the orders does all of its jobs: the order that nobody waits for is
// charged and finished, its events and webhooks are delivered, old keys are deleted.
func TestJobs(t *testing.T) {
	onStores(t, func(t *testing.T, s *Store) {
		h := newHouse(t, s, Config{})
		down := h.provider.On("POST /charges").Always("503@received")
		require.Equal(t, 503, h.order("ann", "click", want("S01", "good")).status)
		down.Always("pass")
		aged(t, s, "old", 10, 25*time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.jobs(ctx, h.provider, h.url)
		}()
		require.Eventually(t, func() bool {
			return count(t, s, "SELECT count(*) FROM mails") == 1 && count(t, s, "SELECT count(*) FROM wallets") == 1
		}, 20*time.Second, 20*time.Millisecond)
		stop()
		<-done
		h.one()
		assert.Equal(t, 1, count(t, s, "SELECT count(*) FROM claims WHERE status = 201"))
	})
}

func statuses(text string) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)^HTTP/1.1 (\d+)`).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
