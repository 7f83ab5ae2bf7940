package idem_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIntentState(t *testing.T) {
	t0 := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble
	digest := "sha256:" + strings.Repeat("0a", 32)
	golden := map[string]struct {
		state idem.State
		json  string
	}{
		"least":     {idem.State{Key: "k", Since: t0}, `{"key":"k","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"sent":      {idem.State{Key: "k", FirstSent: t0}, `{"key":"k","first_sent":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"all":       {idem.State{Key: someKey, Since: t0, FirstSent: t0.Add(time.Hour), Fingerprint: digest, Outcome: idem.Answered}, `{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","first_sent":"2000-01-01T01:00:00Z","fingerprint":"` + digest + `","outcome":"answered"}`},
		"odd key":   {idem.State{Key: `<"\&>`, Since: t0}, `{"key":"\u003c\"\\\u0026\u003e","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`},
		"fractions": {idem.State{Key: "k", Since: t0.Add(123456789)}, `{"key":"k","since":"2000-01-01T00:00:00.123456789Z","outcome":"unknown"}`},
	}
	for name, test := range golden {
		t.Run(name, func(t *testing.T) {
			data := toJSON(t, test.state)
			assert.Equal(t, test.json, string(data))
			var back idem.State
			require.NoError(t, json.Unmarshal(data, &back))
			assert.Equal(t, test.state, back)
			in, err := idem.Resume(test.state, nil)
			require.NoError(t, err)
			again := in.State()
			assert.Equal(t, test.state.Key, again.Key)
			assert.Equal(t, test.state.FirstSent, again.FirstSent)
			assert.Equal(t, test.state.Fingerprint, again.Fingerprint)
			assert.Equal(t, test.state.Outcome, again.Outcome)
			assert.Equal(t, test.state.Outcome, in.Outcome())
			if !test.state.Since.IsZero() {
				assert.Equal(t, test.state.Since, again.Since)
			}
			assert.Equal(t, again, writtenDown(t, toJSON(t, in)).State(), "and once more")
		})
	}
	t.Run("over a life", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.transport.MaxAttempts = 1
			in := idem.Open()
			require.Equal(t, t0, time.Now().UTC())
			assert.Equal(t, `{"key":"`+in.Key()+`","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`, strings.ReplaceAll(string(toJSON(t, utc(in.State()))), "+00:00", "Z"))
			time.Sleep(time.Hour)
			s := in.State()
			assert.True(t, t0.Add(time.Hour).Equal(s.Since), "not sent before now")
			assert.Equal(t, s.Since.Round(0), s.Since, "without a monotonic reading")

			_, _, err := r.post(t.Context(), in, "x") // lost
			require.Error(t, err)
			s = in.State()
			assert.Zero(t, s.Since)
			assert.True(t, t0.Add(time.Hour).Equal(s.FirstSent))
			assert.Regexp(t, `^sha256:[0-9a-f]{64}$`, s.Fingerprint)
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			first := s

			time.Sleep(time.Hour)
			_, _, err = r.post(t.Context(), in, "x") // 402: not settled
			require.NoError(t, err)
			assert.Equal(t, first, in.State(), "the first send stays the first")

			_, _, err = r.post(t.Context(), in, "x") // 201
			require.NoError(t, err)
			first.Outcome = idem.Answered
			assert.Equal(t, first, in.State())
		}, lost, status(402), created)
	})
	t.Run("an unsettled answer is written as unknown", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.NoError(t, err)
			require.Equal(t, idem.Answered, in.Outcome())
			assert.Equal(t, idem.OutcomeUnknown, in.State().Outcome)
		}, status(402))
	})
	t.Run("in the middle of a call", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			now := time.Now()
			go func() { _, _, _ = r.post(t.Context(), in, "x") }()
			time.Sleep(time.Second)
			s := in.State()
			assert.True(t, now.Equal(s.FirstSent))
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
			time.Sleep(time.Minute)
			assert.Equal(t, idem.Answered, in.State().Outcome)
		}, hold(2*time.Second))
	})
	t.Run("never says NotExecuted", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			r.down("api")
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.Equal(t, idem.NotExecuted, theError(t, err).Outcome)
			require.Equal(t, idem.NotExecuted, in.Outcome())
			s := in.State()
			assert.Equal(t, idem.OutcomeUnknown, s.Outcome)
			assert.Zero(t, s.FirstSent, "nothing was sent")
			s.Outcome = idem.NotExecuted // by hand
			again, err := idem.Resume(s, nil)
			require.NoError(t, err)
			assert.Equal(t, idem.OutcomeUnknown, again.Outcome())
			assert.Equal(t, idem.OutcomeUnknown, again.State().Outcome)
		}, created)
	})
	t.Run("answered stays answered", func(t *testing.T) {
		row(t, func(t *testing.T, r *rig) {
			in := idem.Open()
			_, _, err := r.post(t.Context(), in, "x")
			require.NoError(t, err)
			again := writtenDown(t, toJSON(t, in))
			assert.Equal(t, idem.Answered, again.Outcome())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _, err = r.post(ctx, again, "x")
			assert.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, idem.Answered, theError(t, err).Outcome)
		}, created)
	})
}

func utc(s idem.State) idem.State {
	s.Since = s.Since.UTC()
	return s
}

func TestIntentBadStates(t *testing.T) {
	now := since()
	digest := "sha256:" + strings.Repeat("0a", 32)
	for name, s := range map[string]idem.State{
		"zero":                 {},
		"no key":               {Since: now},
		"bad key":              {Key: "se cret", Since: now},
		"long key":             {Key: strings.Repeat("secret", 50), Since: now},
		"nil UUID":             {Key: uuid.Nil.String(), Since: now},
		"no time":              {Key: "secret-key"},
		"no time but answered": {Key: "secret-key", Outcome: idem.Answered},
		"unknown outcome":      {Key: "secret-key", Since: now, Outcome: 7},
		"other fingerprint":    {Key: "secret-key", Since: now, Fingerprint: "md5:0a"},
		"cut fingerprint":      {Key: "secret-key", Since: now, Fingerprint: digest[:len(digest)-1]},
		"long fingerprint":     {Key: "secret-key", Since: now, Fingerprint: digest + "0"},
		"line end":             {Key: "secret-key", Since: now, Fingerprint: digest + "\n"},
		"capitals":             {Key: "secret-key", Since: now, Fingerprint: strings.ToUpper(digest)},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := idem.Resume(s, nil)
			require.Error(t, err)
			assert.Nil(t, in)
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "\n")
			data, err := json.Marshal(s)
			if err != nil {
				return
			}
			used := new(idem.Intent)
			err = json.Unmarshal(data, used)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "secret")
			assert.Empty(t, used.Key(), "left as it was")
		})
	}
	for _, data := range []string{
		``, `null`, `{}`, `[]`, `"` + someKey + `"`, `7`, `{"key":7}`, `{"key":"` + someKey + `"}`, `{"key":"` + someKey + `","since":"yesterday"}`,
		`{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","outcome":"done"}`, `{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z","outcome":7}`,
		`{"key":"` + someKey + `","since":"2000-01-01T00:00:00Z"`, `{"key":["` + someKey + `"],"since":"2000-01-01T00:00:00Z"}`,
	} {
		in := new(idem.Intent)
		err := in.UnmarshalJSON([]byte(data))
		if assert.Error(t, err, data) {
			assert.NotContains(t, err.Error(), someKey)
		}
		assert.Empty(t, in.Key())
	}
}

func TestIntentJSON(t *testing.T) {
	t.Run("into a used Intent", func(t *testing.T) {
		data := toJSON(t, idem.Open())
		in := idem.Open()
		key := in.Key()
		require.Error(t, json.Unmarshal(data, in))
		assert.Equal(t, key, in.Key())
		assert.Equal(t, idem.NotExecuted, in.Outcome())
		again := writtenDown(t, data)
		require.Error(t, json.Unmarshal(data, again), "even the same State")
		bad := idem.Open().Child("")
		err := json.Unmarshal(data, bad)
		if err == nil {
			assert.NoError(t, bad.Bind(newRequest(t, nil, "POST", "http://api/x", "x")), "taken, so it must work")
		}
	})
	t.Run("in a struct", func(t *testing.T) {
		type job struct {
			Name   string       `json:"name"`
			Intent *idem.Intent `json:"intent,omitempty"`
		}
		in := idem.Open()
		data := toJSON(t, job{"a", in})
		assert.Contains(t, string(data), in.Key())
		var back job
		require.NoError(t, json.Unmarshal(data, &back))
		assert.Equal(t, in.Key(), back.Intent.Key())
		assert.Equal(t, idem.OutcomeUnknown, back.Intent.Outcome())
		assert.Equal(t, `{"name":"b"}`, string(toJSON(t, job{Name: "b"})))
		require.NoError(t, json.Unmarshal([]byte(`{"intent":null}`), &back))
		assert.Nil(t, back.Intent)
	})
	t.Run("unknown members are ignored", func(t *testing.T) {
		in := new(idem.Intent)
		require.NoError(t, json.Unmarshal([]byte(`{"version":2,"key":"k","since":"2000-01-01T00:00:00+02:00"}`), in))
		assert.Equal(t, "k", in.Key())
		assert.Equal(t, idem.OutcomeUnknown, in.Outcome())
	})
}

// A State that was saved before the send may be older than the send: after a
// crash nothing is known, even if the network is dead and nothing leaves now.
func TestIntentSavedBeforeTheSendAndKilled(t *testing.T) {
	for name, bind := range map[string]bool{"bound": true, "unbound": false} {
		t.Run(name, func(t *testing.T) {
			row(t, func(t *testing.T, r *rig) {
				in := idem.Open()
				req := newRequest(t, in, "POST", "http://api/charges", "order=1")
				if bind {
					require.NoError(t, in.Bind(req))
				}
				saved := toJSON(t, in)
				ctx, kill := context.WithCancel(req.Context())
				go func() { _, _, _ = r.send(req.WithContext(ctx)) }()
				time.Sleep(time.Second) // the work is done, the answer is awaited
				kill()
				require.Equal(t, 1, r.done())
				r.down("api")
				r.restarted()

				again := writtenDown(t, saved)
				for _, step := range []*idem.Intent{again, again.Child("mail")} {
					assert.Equal(t, idem.OutcomeUnknown, step.Outcome())
					_, _, err := r.post(t.Context(), step, "order=1")
					e := theError(t, err)
					assert.Zero(t, e.Sends)
					assert.Equal(t, idem.OutcomeUnknown, e.Outcome)
					assert.Equal(t, idem.OutcomeUnknown, step.Outcome())
					for _, a := range step.Attempts() {
						assert.Equal(t, idem.OutcomeUnknown, a.Outcome)
					}
				}
				assert.Equal(t, idem.OutcomeUnknown, writtenDown(t, toJSON(t, again)).Outcome())

				// Refused in every other way, it is not "not executed" either.
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, _, err := r.post(ctx, again, "order=1")
				assert.Equal(t, idem.OutcomeUnknown, theError(t, err).Outcome)
				r.serve("api", r.server)
				resp, _, err := r.post(t.Context(), again, "order=1") // 429
				require.NoError(t, err)
				assert.Equal(t, 429, resp.StatusCode)
				assert.Equal(t, idem.OutcomeUnknown, again.Outcome())
				assert.Equal(t, idem.OutcomeUnknown, idem.ResultOf(resp).Outcome)
			}, execThen(stall), status(429))
		})
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"key":"k","since":"2000-01-01T00:00:00Z","outcome":"unknown"}`))
	f.Add([]byte(`{"key":"` + someKey + `","first_sent":"2000-01-01T00:00:00.5+01:30","fingerprint":"sha256:` + strings.Repeat("0a", 32) + `","outcome":"answered"}`))
	f.Add([]byte(`{"key":"\u003c\"\\","since":"9999-12-31T23:59:59.999999999-23:59","first_sent":"0000-01-01T00:00:00Z","outcome":"not executed"}`))
	f.Add([]byte(`{"KEY":"k","Since":"0001-01-01T00:00:00+00:01"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"key":"k","since":null,"outcome":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := new(idem.Intent)
		if err := in.UnmarshalJSON(data); err != nil {
			if in.Key() != "" {
				t.Fatalf("an error, and a key: %v", err)
			}
			return
		}
		if in.Outcome() == idem.NotExecuted {
			t.Fatal("a resumed Intent says NotExecuted")
		}
		s := in.State()
		if s.Key == "" || s.Outcome == idem.NotExecuted || s.Since.IsZero() && s.FirstSent.IsZero() {
			t.Fatalf("not a State to resume: %+v", s)
		}
		written, err := json.Marshal(in)
		if err != nil {
			t.Fatalf("read, but cannot be written: %v", err)
		}
		again := new(idem.Intent)
		if err := json.Unmarshal(written, again); err != nil {
			t.Fatalf("written, but cannot be read: %v\n%s", err, written)
		}
		b := again.State()
		if s.Key != b.Key || !s.Since.Equal(b.Since) || !s.FirstSent.Equal(b.FirstSent) || s.Fingerprint != b.Fingerprint || s.Outcome != b.Outcome {
			t.Fatalf("not the same again:\n%+v\n%+v", s, b)
		}
	})
}
