package otelidem_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every way in which a call ends, and the spans that it leaves.
func TestSpans(t *testing.T) {
	within := func(d time.Duration) func(context.Context, *idem.Client) {
		return func(ctx context.Context, client *idem.Client) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			_ = charge(ctx, client)
		}
	}
	for _, test := range []struct {
		name      string
		faults    []mockserver.Fault
		transport *idem.Transport                     // nil: the zero one
		do        func(context.Context, *idem.Client) // nil: one charge
		want      []string
	}{
		{
			name: "done",
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=1 sends=1`,
				`CLIENT "POST" version=1.1 status_code=201`,
			},
		}, {
			name:   "the answer is lost",
			faults: []mockserver.Fault{"reset@stored"},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=replayed attempts=2 sends=2`,
				`CLIENT "POST" Error type=connection_reset`,
				`CLIENT "POST" resend_count=1 version=1.1 status_code=201`,
			},
		}, {
			name:   "turned away twice",
			faults: []mockserver.Fault{"503@received retry-after=1", "429@received retry-after=1"},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=3 sends=3`,
				`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
				`CLIENT "POST" Error resend_count=1 version=1.1 status_code=429 type=429`,
				`CLIENT "POST" resend_count=2 version=1.1 status_code=201`,
			},
		}, {
			name:   "the body is cut",
			faults: []mockserver.Fault{"cut@body after=5"},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=replayed attempts=2 sends=2`,
				`CLIENT "POST" Error version=1.1 status_code=201 type=connection_closed`,
				`CLIENT "POST" resend_count=1 version=1.1 status_code=201`,
			},
		}, {
			name:   "nobody listens",
			faults: []mockserver.Fault{"refuse@dial"},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=2 sends=1`,
				`CLIENT "POST" Error type=connection_refused`,
				`CLIENT "POST" resend_count=1 version=1.1 status_code=201`,
			},
		}, {
			name:      "given up with an answer",
			faults:    []mockserver.Fault{"503@received", "503@received"},
			transport: &idem.Transport{MaxAttempts: 2},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=exhausted attempts=2 sends=2`,
				`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
				`CLIENT "POST" Error resend_count=1 version=1.1 status_code=503 type=503`,
			},
		}, {
			name:      "given up without one",
			faults:    []mockserver.Fault{"drop@received"},
			transport: &idem.Transport{MaxAttempts: 1},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=exhausted attempts=1 sends=1`,
				`CLIENT "POST" Error type=connection_closed`,
			},
		}, {
			name:   "the server asks for too long a wait",
			faults: []mockserver.Fault{"503@received retry-after=3600"},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=wait_too_long attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
			},
		}, {
			name:      "no budget is left",
			faults:    []mockserver.Fault{"503@received"},
			transport: &idem.Transport{Budget: idem.NewBudget(0, 0)},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=over_budget attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
			},
		}, {
			name: "the server says no",
			do: func(ctx context.Context, client *idem.Client) {
				_, _ = client.Call(ctx, idem.Open(), http.MethodPost, "/charges", order{200_000}, nil)
			},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=answered replay=unknown attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=402 type=402`,
			},
		}, {
			name: "another request came with this key",
			do: func(ctx context.Context, client *idem.Client) {
				first := idem.Open()
				second, err := idem.Adopt(first.Key(), time.Now())
				require.NoError(t, err)
				_, _ = client.Call(ctx, first, http.MethodPost, "/charges", order{500}, nil)
				_, _ = client.Call(ctx, second, http.MethodPost, "/charges", order{600}, nil)
			},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=1 sends=1`,
				`CLIENT "POST" version=1.1 status_code=201`,
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=mismatch attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=422 type=422`,
			},
		}, {
			name:      "the attempt's time is over",
			faults:    []mockserver.Fault{"freeze@received"},
			transport: &idem.Transport{AttemptTimeout: time.Second},
			want: []string{
				`INTERNAL "idem POST" keyed=true outcome=answered replay=unknown attempts=2 sends=2`,
				`CLIENT "POST" Error type=timeout`,
				`CLIENT "POST" resend_count=1 version=1.1 status_code=201`,
			},
		}, {
			name:   "the caller's time is over",
			faults: []mockserver.Fault{"freeze@received"},
			do:     within(time.Second),
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=deadline_exceeded attempts=1 sends=1`,
				`CLIENT "POST" Error type=deadline_exceeded`,
			},
		}, {
			name:   "the caller goes away during an attempt",
			faults: []mockserver.Fault{"freeze@received"},
			do: func(ctx context.Context, client *idem.Client) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				_ = charge(ctx, client)
			},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=canceled attempts=1 sends=1`,
				`CLIENT "POST" Error type=canceled`,
			},
		}, {
			name:   "the caller goes away during a wait",
			faults: []mockserver.Fault{"503@received retry-after=30"},
			do: func(ctx context.Context, client *idem.Client) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				_ = charge(ctx, client)
			},
			want: []string{
				`INTERNAL "idem POST" Error keyed=true outcome=unknown replay=unknown reason=canceled attempts=1 sends=1`,
				`CLIENT "POST" Error version=1.1 status_code=503 type=503`,
			},
		}, {
			name: "refused before anything is sent",
			do: func(ctx context.Context, client *idem.Client) {
				_, err := client.Call(ctx, nil, http.MethodPost, "/charges", order{500}, nil)
				assert.ErrorIs(t, err, idem.ErrNoIntent)
			},
		}, {
			name: "a read that is given up",
			transport: &idem.Transport{MaxAttempts: 1, Base: base(func(r *http.Request) (*http.Response, error) {
				return answer(r, http.StatusServiceUnavailable, ""), nil
			})},
			do: func(ctx context.Context, client *idem.Client) {
				_, _ = client.Call(ctx, nil, http.MethodGet, "/charges/7", nil, nil)
			},
			want: []string{
				`INTERNAL "idem GET" Error keyed=false outcome=unknown replay=unknown reason=exhausted attempts=1 sends=1`,
				`CLIENT "GET" Error version=1.1 status_code=503 type=503`,
			},
		}, {
			name: "a read",
			do: func(ctx context.Context, client *idem.Client) {
				_, _ = client.Call(ctx, nil, http.MethodGet, "/charges/7", nil, nil)
			},
			want: []string{
				`INTERNAL "idem GET" Error keyed=false outcome=answered replay=unknown attempts=1 sends=1`,
				`CLIENT "GET" Error version=1.1 status_code=404 type=404`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				server := mockserver.New(t, mockserver.Config{})
				server.On("POST /charges").Then(test.faults...)
				if test.transport == nil {
					test.transport = &idem.Transport{}
				}
				client := w.newClient(server, test.transport)
				if test.do == nil {
					test.do = func(ctx context.Context, client *idem.Client) { _ = charge(ctx, client) }
				}
				test.do(t.Context(), client)
				assert.Equal(t, test.want, w.lines())
			})
		})
	}
}

// The attempts are below their call, and the call below the caller's span.
func TestParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("503@received")
		client := w.newClient(server, &idem.Transport{})
		ctx, caller := w.TracerProvider.Tracer("test").Start(t.Context(), "checkout")
		require.NoError(t, charge(ctx, client))
		caller.End()
		spans := w.ended()
		require.Len(t, spans, 4)
		assert.Equal(t, spans[0].SpanContext().SpanID(), spans[1].Parent().SpanID())
		for _, attempt := range spans[2:] {
			assert.Equal(t, spans[1].SpanContext().SpanID(), attempt.Parent().SpanID())
		}
	})
}

// The span of an attempt takes as long as the attempt, without the wait after it.
func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		server := mockserver.New(t, mockserver.Config{})
		server.On("/").Then("delay@received for=2s; 503@claimed retry-after=10", "dribble@body size=1 every=100ms")
		require.NoError(t, charge(t.Context(), w.newClient(server, &idem.Transport{})))
		spans := w.ended()
		require.Len(t, spans, 3)
		took := func(i int) time.Duration { return spans[i].EndTime().Sub(spans[i].StartTime()) }
		assert.Equal(t, 2*time.Second, took(1))
		assert.Greater(t, took(2), time.Second, "the body is read inside the attempt")
		assert.GreaterOrEqual(t, took(0), took(1)+took(2)+10*time.Second)
	})
}
