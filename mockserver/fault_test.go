package mockserver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFaultParse(t *testing.T) {
	one := func(t *testing.T, f Fault) clause {
		t.Helper()
		list, err := f.parse()
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	c := one(t, `503@received retry-after=30 header="X-A: b c" type=text/plain body="no; such = luck" forward=late send=2`)
	assert.Equal(t, "status", c.action)
	assert.Equal(t, Received, c.at)
	assert.Equal(t, 503, c.status)
	assert.Equal(t, map[string][]string{"Retry-After": {"30"}, "X-A": {"b c"}, "Content-Type": {"text/plain"}}, map[string][]string(c.header))
	assert.Equal(t, "no; such = luck", c.raw)
	assert.Equal(t, "late", c.forward)
	assert.Equal(t, 2, c.send)

	assert.Equal(t, 2*time.Second, one(t, "delay@claimed for=2s").wait)
	assert.Equal(t, uint32(40), one(t, "alert@handshake").code, "handshake failure, if it is not said")
	assert.Equal(t, uint32(2), one(t, "abort@received").code, "INTERNAL_ERROR, if it is not said")
	assert.Equal(t, uint32(0), one(t, "abort@received code=0").code)
	assert.Equal(t, -1, one(t, "cut@body").after, "half")
	assert.Equal(t, "now", one(t, "copy@received").forward)
	assert.Equal(t, "a\r\nb", one(t, `raw@head text="a\r\nb"`).raw)
	assert.Equal(t, `a\r`, one(t, "raw@head text=`a\\r`").raw)

	list, err := Fault("reset@received send=1;\n\t401@received send=2").parse()
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, []int{1, 2}, []int{list[0].send, list[1].send})
	list, err = Fault("pass").parse()
	require.NoError(t, err)
	assert.Empty(t, list)
}

// Every action at every point where it may stand, with every option it takes.
func TestFaultGrammar(t *testing.T) {
	values := map[string]string{
		"code": "7", "after": "3", "forward": "late", "for": "1s", "last": "this", "retry-after": "1",
		"header": "A:b", "type": "a/b", "body": "x", "text": "x", "end": "reset", "size": "2", "every": "1ms", "send": "1",
	}
	for name, r := range rules() {
		if name == "status" {
			name = "599"
		}
		for _, at := range r.points {
			base := name + "@" + string(at)
			if r.needs != "" {
				require.ErrorContains(t, Fault(base).Validate(), "needs "+r.needs+"=")
				base += " " + r.needs + "=" + values[r.needs]
			}
			require.NoError(t, Fault(base).Validate())
			for _, o := range append(r.options, "send") {
				f := Fault(base + " " + o + "=" + values[o])
				switch err := f.Validate(); {
				case o == r.needs:
					require.ErrorContains(t, err, "is there twice", f)
				case o == "forward" && at != Received:
					require.ErrorContains(t, err, "forward= is for faults at received", f)
				case o == "after" && at != Body && name != "cut":
					require.ErrorContains(t, err, "after= counts bytes of the body", f)
				default:
					require.NoError(t, err, f)
				}
			}
		}
	}
}

// A bad text says what would be right.
func TestFaultWrong(t *testing.T) {
	for f, want := range map[Fault]string{
		"":                                 `it is empty; "pass" is the fault that does nothing`,
		"pass;":                            `it is empty; "pass"`,
		"rest@stored":                      `there is no action "rest"; did you mean "reset"?`,
		"explode@stored":                   `there is no action "explode"; there are abort, alert, badchunk,`,
		"status@stored":                    `there is no action "status"`,
		"99@received":                      "99 is not a status from 200 to 599",
		"600@received":                     "600 is not a status from 200 to 599",
		"reset":                            `reset cannot be at ""; right is reset@dial, reset@handshake, reset@received`,
		"reset@store":                      `reset cannot be at "store"; right is reset@dial`,
		"refuse@received":                  `refuse cannot be at "received"; right is refuse@dial`,
		"pass@head":                        `"pass" stands alone, without a point`,
		"reset@stored code=3":              `reset has no option "code=3"; it takes after=, forward=, send=`,
		"503@received retry-after":         `503 has no option "retry-after"; it takes retry-after=`,
		"delay@received":                   "delay needs for=",
		"delay@received for=2":             "for=2: a duration such as 2s or 150ms is wanted",
		"delay@received for=-2s":           "a duration such as 2s",
		"raw@head":                         "raw needs text=",
		`raw@head text="open`:              `the quotes of "open are not closed`,
		"cut@body after=x":                 "after=x: a number from 0 on is wanted",
		"cut@body end=now":                 "end=now: right is fin or reset",
		"goaway@received last=one":         "last=one: right is before or this",
		"copy@received forward=twice":      "forward=twice: right is now or late",
		"503@received header=X":            `header=X: right is header="Name: value"`,
		`503@head header="Retry After: 1"`: `right is header="Name: value"`,
		`503@head header=" X: 1"`:          `right is header="Name: value"`,
		"drop@received send=0":             "send=0: a number from 1 on is wanted",
		"abort@received code=-1":           "code=-1: a number from 0 on is wanted",
		"drop@received send=1 send=2":      "send= is there twice",
		"503@stored forward=now":           "forward= is for faults at received",
		"reset@stored after=3":             "after= counts bytes of the body; right is reset@body after=3",
		"reset@stored, 503@received":       `reset cannot be at "stored,"`,
	} {
		err := f.Validate()
		require.ErrorContains(t, err, want, "%q", f)
		assert.True(t, strings.HasPrefix(err.Error(), "mockserver: fault "), err)
		assert.NotContains(t, err.Error(), "\n")
	}
}

// No text makes the parser panic; what it takes, it takes again.
func FuzzFault(f *testing.F) {
	for name, r := range rules() {
		for _, at := range r.points {
			f.Add(name + "@" + string(at) + " send=1; 503@head body=\"x\\\"\"")
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Fault(text).parse()
		if err != nil {
			if list != nil || !strings.HasPrefix(err.Error(), "mockserver: fault ") {
				t.Fatal(list, err)
			}
			return
		}
		for _, c := range list {
			if c.text != Fault(text) || rules()[c.action].points == nil {
				t.Fatal(c)
			}
		}
	})
}
