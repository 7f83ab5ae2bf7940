package browsertest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tell makes the requests of the story: every mark, every colour. It returns
// what the request that is held is answered with.
func (r *rig) tell() <-chan int {
	t := r.t
	assert.Equal(t, 0, r.post("order-lost", `{"amount":500}`))
	time.Sleep(150 * time.Millisecond) // the axis is real time
	assert.Equal(t, 201, r.post("order-lost", `{"amount":500}`))
	assert.Equal(t, 0, r.post("order-hurried", `{"amount":2}`, "Mock-Fault: drop@received"))
	time.Sleep(120 * time.Millisecond)
	assert.Equal(t, 503, r.post("order-hurried", `{"amount":2}`, "Mock-Fault: 503@received retry-after=30"))
	time.Sleep(180 * time.Millisecond)
	assert.Equal(t, 201, r.post("order-hurried", `{"amount":2}`))
	assert.Equal(t, 0, r.post("order-crashed", `{"amount":3}`, "Mock-Fault: crash@claimed"))
	time.Sleep(200 * time.Millisecond)
	assert.Equal(t, 409, r.post("order-crashed", `{"amount":3}`))
	assert.Equal(t, 201, r.post("order-altered", `{"amount":4}`))
	time.Sleep(100 * time.Millisecond)
	assert.Equal(t, 422, r.post("order-altered", `{"amount":5}`))
	assert.Equal(t, 500, r.post("order-doubled", `{"amount":9}`, "Mock-Fault: 500@worked")) // not kept, though it worked
	time.Sleep(100 * time.Millisecond)
	assert.Equal(t, 201, r.post("order-doubled", `{"amount":9}`))
	// net/http sends a keyed request again by itself when a pooled connection dies.
	pooled := &http.Client{Transport: &http.Transport{}}
	defer pooled.CloseIdleConnections()
	assert.Equal(t, 201, send(t, pooled, r.api+"/orders", `{"amount":6}`, "Idempotency-Key: order-first"))
	assert.Equal(t, 201, send(t, pooled, r.api+"/orders", `{"amount":7}`, "Idempotency-Key: order-resent", "Mock-Stamp: story", "Mock-Fault: drop@stored send=1"))
	held := make(chan int, 1)
	go func() {
		held <- send(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r.api+"/orders", `{"amount":8}`, "Idempotency-Key: order-held", "Mock-Fault: hang@claimed")
	}()
	return held
}

func TestPage(t *testing.T) {
	r := start(t)
	r.until(`document.querySelector('#where').textContent.includes('keeps default')`)
	r.until(`!document.querySelector('#empty').hidden`)
	assert.Equal(t, 201, send(t, http.DefaultClient, r.control+"/scripts", `{"on":"POST /orders","key":"order-lost","then":["delay@claimed for=40ms; reset@stored","delay@head for=25ms"]}`))
	held := r.tell()

	r.step(t, "the story appears as it happens", func(t *testing.T) {
		r.until(`document.querySelectorAll('.row').length === 8`)
		for _, kind := range []string{"effect", "drop", "reset", "hold", "crash", "replay", "refusal", "resend", "fault"} {
			r.until(`document.querySelector('#space .mark.` + kind + `') !== null`)
		}
		for _, answer := range []string{"fresh", "replayed", "busy", "mismatched", "injected", "none"} {
			r.until(`document.querySelector('#space .bar.` + answer + `') !== null`)
		}
		for _, line := range []string{".wait", ".window", ".lease", ".early", ".resent", ".second"} {
			r.until(`document.querySelector('#space ` + line + `') !== null`)
		}
		r.until(`+document.querySelector('#n-breaches').textContent >= 5`)
		breaches := r.text("#breaches")
		for _, kind := range []string{"doubled", "early", "altered", "unfinished"} {
			assert.Contains(t, breaches, kind)
		}
		r.until(`document.querySelectorAll('.row.breach').length >= 4`)
		assert.Equal(t, "8", r.text("#n-keys"))
		assert.Equal(t, "1", r.text("#n-resends"))
	})
	r.step(t, "pictures", func(t *testing.T) { r.pictures() })
	r.step(t, "a request's details", func(t *testing.T) {
		r.open(`#r1 .ring`)
		assert.Contains(t, r.text("#request"), `{"amount":500}`)
		assert.Contains(t, r.text("#request"), "Idempotency-Key: order-lost")
		assert.Equal(t, "no answer", r.text("#answer"))
		for _, point := range []string{"received", "claimed", "worked", "stored"} {
			assert.Regexp(t, point+`\s+\+\d+\.\d\d ms`, r.text("#points"))
		}
		compiles(t, r.text("#go"))
		assert.Equal(t, `srv.On("POST /orders").Then("delay@claimed for=40ms; reset@stored")`, r.text("#go"))
		r.click("#copy")
		r.picture("detail")
		r.until(`['Copied', 'Selected'].includes(document.querySelector('#copy').textContent)`)
	})
	r.step(t, "a click beside a bar", func(t *testing.T) {
		r.click("#pause") // bars stand still
		r.run(chromedp.KeyEvent(kb.Escape))
		r.until(`document.querySelector('#detail').hidden`)
		at := eval[[]float64](r, `(b => [b.left - 12, b.y + b.height / 2])(document.querySelector('#r1 .ring').getBoundingClientRect())`)
		r.run(chromedp.MouseClickXY(at[0], at[1]))
		r.until(`!document.querySelector('#detail').hidden && document.querySelector('#detail').textContent.includes('Request 1')`)
		r.click("#pause")
	})
	r.step(t, "by keyboard", func(t *testing.T) {
		r.run(chromedp.KeyEvent(kb.Escape), chromedp.Focus(chromedp.CSS("#rows")))
		r.until(`document.querySelector('#detail').hidden`)
		eval[int](r, `atKey = null, atSeq = 0`)
		for range 8 {
			r.run(chromedp.KeyEvent(kb.ArrowDown)) // the newest is the first
		}
		r.run(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#go")))
		r.until(`document.querySelector('#rows').getAttribute('aria-activedescendant') === 'r2'`)
		assert.Contains(t, r.text("#answer"), "Idempotent-Replayed: true")
		assert.Equal(t, `srv.On("POST /orders").Then("delay@claimed for=40ms; reset@stored", "delay@head for=25ms")`, r.text("#go"))
	})
	r.step(t, "release all", func(t *testing.T) {
		r.click("#release")
		assert.Equal(t, 201, <-held)
		r.until(`document.querySelector('#said').textContent === 'released 1'`)
		r.until(`document.querySelector('#space [aria-label$="attempt 1: 201 fresh, met hang@claimed"]') !== null`)
	})
	r.step(t, "a script", func(t *testing.T) {
		r.run(chromedp.SendKeys(chromedp.CSS("#then"), "reset@stord"))
		r.click("#add button")
		r.until(`document.querySelector('#wrong').textContent.includes('right is reset@dial')`)
		r.run(chromedp.SetValue(chromedp.CSS("#on"), "POST /refunds"), chromedp.SetValue(chromedp.CSS("#then"), "402@worked | pass"))
		r.click("#add button")
		r.until(`document.querySelector('#scripts').textContent.includes('POST /refunds')`)
		assert.Equal(t, 402, send(t, http.DefaultClient, r.api+"/refunds", "{}", "Idempotency-Key: refund"))
		r.until(`[...document.querySelectorAll('.hits')].some(h => h.textContent === ' hits 1')`)
		r.click(`#scripts li:last-child button`)
		r.until(`!document.querySelector('#scripts').textContent.includes('POST /refunds')`)
	})
	r.step(t, "advance", func(t *testing.T) {
		r.click("#advance")
		r.until(`document.querySelector('#where').textContent.includes('24 h ahead')`)
		r.until(`document.querySelector('#space').textContent.includes('expired')`)
	})
	r.step(t, "pause", func(t *testing.T) {
		r.click("#pause")
		rows := r.text("#n-keys")
		assert.Equal(t, 201, r.post("while-paused", "{}", "Mock-Fault: pass"))
		r.until(`[...keys.values()].some(k => k.key === 'while-paused')`)
		assert.Equal(t, rows, r.text("#n-keys"))
		r.click("#pause")
		r.until(`document.querySelector('#n-keys').textContent !== '` + rows + `'`)
	})
	r.step(t, "scopes", func(t *testing.T) {
		assert.Equal(t, 201, r.post("k", "{}", "Mock-Scope: mine"))
		r.until(`[...document.querySelectorAll('#scope option')].some(o => o.value === 'mine')`)
		r.run(chromedp.Navigate(r.control + "/?scope=mine"))
		r.until(`document.querySelectorAll('.row').length === 1`)
		r.run(chromedp.Navigate(r.control + "/"))
		r.until(`document.querySelectorAll('.row').length === 10`)
	})
	r.step(t, "clean", func(t *testing.T) {
		r.click("#clean")
		r.until(`document.querySelectorAll('.row').length === 0 && document.querySelector('#n-requests').textContent === '0' && document.querySelector('#scripts').children.length === 0`)
	})
}

// pictures looks at the page in both widths and both schemes. The one of the
// README is written with -update; a folder named by PICTURES gets all of them.
func (r *rig) pictures() {
	t := r.t
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"wide": 1280, "narrow": 390} {
			_, err := chromedp.Run(r.ctx, func(ctx context.Context, tab *chromedp.Target) (cdp.Empty, error) {
				return cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				})
			})
			require.NoError(t, err)
			r.run(chromedp.EmulateViewport(width, 800), chromedp.Sleep(400*time.Millisecond)) // for the next picture to be drawn
			overflow := eval[bool](r, `document.documentElement.scrollWidth > innerWidth`)
			dark := eval[bool](r, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).every(c => c < 60)`)
			picture := r.picture(name + "-" + scheme)
			assert.False(t, overflow, "%s: nothing is beyond the edge", name)
			assert.Equal(t, scheme == "dark", dark)
			if *update && name == "wide" && scheme == "light" {
				require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", "idem-mock.png"), picture, 0o644))
			}
		}
	}
	r.run(chromedp.EmulateViewport(1280, 800))
}

// picture takes a picture of the page as it is.
func (r *rig) picture(name string) []byte {
	picture, err := chromedp.Run(r.ctx, chromedp.CaptureScreenshot())
	require.NoError(r.t, err)
	if dir := os.Getenv("PICTURES"); dir != "" {
		require.NoError(r.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600))
	}
	return picture
}

// compiles checks that a copied line is Go.
func compiles(t *testing.T, line string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	source := "package main\n\nimport \"github.com/idem-go/idem/mockserver\"\n\nfunc main() {\n\tsrv, err := mockserver.Start(mockserver.Config{})\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\t" + line + "\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// A thousand keys, and a hundred requests a second: a picture stays cheap. The
// limits hold for the quickest pictures, so that other work on the machine does
// not decide.
func TestPageUnderLoad(t *testing.T) {
	r := start(t, "-quiet")
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer c.CloseIdleConnections()
	for i := range 1000 {
		require.Equal(t, 201, send(t, c, r.api+"/orders", "{}", "Idempotency-Key: key-"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Now().Format("150405.000000000")))
	}
	r.until(`document.querySelector('#n-keys').textContent === '1000'`)
	cost := eval[float64](r, `window.quickest = n => { let least = Infinity; for (let i = 0; i < n; i++) { const t = performance.now(); draw(); least = Math.min(least, performance.now() - t); } return least; }; quickest(20)`)
	nodes := eval[int](r, `document.querySelectorAll('.row').length`)
	assert.Less(t, cost, 50.0, "milliseconds for one picture of ten a second")
	assert.Less(t, nodes, 40, "only what is in sight is in the document")
	t.Logf("a picture of 1,000 keys takes %.1f ms", cost)

	crowd := eval[float64](r, `(() => {
		const known = [...requests.values()][0];
		for (let i = 0; i < 5000; i++) learn({ ...known, key: 'crowd', seq: 1e6 + i, attempt: i + 1, start: new Date(Date.parse(known.start) + i).toISOString() });
		return quickest(10);
	})()`)
	assert.Less(t, crowd, 100.0, "milliseconds for a picture with 5,000 requests in one row")
	t.Logf("with 5,000 requests in one row it takes %.1f ms", crowd)
	r.run(chromedp.Navigate(r.control + "/"))
	r.until(`document.querySelector('#n-requests').textContent === '1000'`)

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	eval[int](r, `window.costs = []; const plain = draw; draw = () => { const t = performance.now(); plain(); costs.push(performance.now() - t); }; 0`)
	for range 200 {
		<-tick.C
		send(t, c, r.api+"/orders", "{}", "Idempotency-Key: busy")
	}
	r.until(`document.querySelector('#n-requests').textContent === '1200'`)
	quick := eval[float64](r, `costs.sort((a, b) => a - b)[Math.floor(costs.length / 4)]`)
	assert.Less(t, quick, 100.0, "milliseconds, while a hundred requests a second arrive")
	t.Logf("of %d pictures 25 %% took less than %.1f ms, 95 %% less than %.1f ms", eval[int](r, `costs.length`), quick, eval[float64](r, `costs[Math.floor(costs.length * 0.95)]`))
}
