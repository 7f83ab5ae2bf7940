package browsertest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	_ "github.com/idem-go/idem/mockserver" // its command is what is tested
)

var update = flag.Bool("update", false, "write the picture in the README anew")

// rig is a running idem-mock and a browser with its page.
type rig struct {
	t            *testing.T
	api, control string
	ctx          context.Context //nolint:containedctx // the tab
}

// start builds and runs the command and opens its page.
func start(t *testing.T, args ...string) *rig {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" && os.Getenv("CI") != "" {
		t.Fatal("no Chromium in the PATH: .ci/services installs it")
	}
	if browser == "" {
		t.Skip("no Chromium in the PATH")
	}
	r := &rig{t: t}
	r.command(args)

	opts := append(chromedp.DefaultExecAllocatorOptions[:], //nolint:gocritic // a new slice is meant
		chromedp.ExecPath(browser), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(time.Minute),
	)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(closeTab)
	limited, cancel := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(cancel)
	r.ctx = limited
	messages := chromedp.Console(r.ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if (m.Type == "error" || m.Type == chromedp.ConsoleException) && !strings.Contains(m.Text, "400 (Bad Request)") {
				t.Errorf("the page says: %s %s", m.Text, m.URL)
			}
		}
	}()
	r.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(r.control+"/"))
	return r
}

// command builds idem-mock and runs it on free ports until the test ends.
func (r *rig) command(args []string) {
	t := r.t
	t.Helper()
	bin := filepath.Join(t.TempDir(), "idem-mock")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "github.com/idem-go/idem/mockserver/cmd/idem-mock").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"-addr", "127.0.0.1:0", "-control", "127.0.0.1:0"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	r.api = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	lines.Scan()
	r.control = strings.TrimSuffix(regexp.MustCompile(`http://\S+`).FindString(lines.Text()), "/")
	require.NotEmpty(t, r.control)
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
}

// step is a part of a test, with what it fails.
func (r *rig) step(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(part *testing.T) {
		r.t = part
		defer func() { r.t = t }()
		f(part)
	})
}

// run lets the browser do something.
func (r *rig) run(steps ...chromedp.Action[chromedp.Void]) {
	r.t.Helper()
	require.NoError(r.t, chromedp.Do(r.ctx, steps...))
}

// eval returns the value of a JavaScript expression.
func eval[T any](r *rig, expression string) T {
	r.t.Helper()
	v, err := chromedp.Run(r.ctx, chromedp.Evaluate[T](expression))
	require.NoError(r.t, err, expression)
	return v
}

// until waits until a JavaScript expression is true.
func (r *rig) until(expression string) {
	r.t.Helper()
	_, err := chromedp.Run(r.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(20*time.Second), chromedp.WithPollingInterval(50*time.Millisecond)))
	require.NoError(r.t, err, "never: %s", expression)
}

// text returns the text of an element, as it is seen.
func (r *rig) text(selector string) string {
	r.t.Helper()
	return eval[string](r, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// click clicks where an element is: the page may draw it anew at any time.
func (r *rig) click(selector string) {
	r.t.Helper()
	at := eval[[]float64](r, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: 'nearest' });
		const b = e.getBoundingClientRect();
		return [b.x + b.width / 2, b.y + b.height / 2];
	})()`, selector))
	r.run(chromedp.MouseClickXY(at[0], at[1]))
}

// open clicks a bar until its details are there: a busy machine may take so long
// from the look to the click that the bar has moved away.
func (r *rig) open(bar string) {
	r.t.Helper()
	for range 20 {
		r.click(bar)
		for range 20 {
			if eval[bool](r, `document.querySelector('#go') !== null && !document.querySelector('#detail').hidden`) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	require.Fail(r.t, "no click opens "+bar)
}

// post makes an order on a connection of its own; "Name: value" are headers.
func (r *rig) post(key, body string, headers ...string) int {
	r.t.Helper()
	return send(r.t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r.api+"/orders", body, append(headers, "Idempotency-Key: "+key)...)
}

func send(t *testing.T, c *http.Client, url, body string, headers ...string) int {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}
