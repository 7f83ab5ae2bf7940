package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// A tally counts. It is safe for concurrent use.
type tally struct {
	mu       sync.Mutex
	orders   int
	began    time.Time
	done     int // orders placed, and what became of them told
	attempts int
	sends    int
	effects  int
	restarts int
	again    int // asked again

	unknown, unknownDone int
	unsent               int

	doubled, missing, mistaken int
	findings                   []string // the first of them
}

func (t *tally) attempt(sends int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts++
	t.sends += sends
}

func (t *tally) placed(round int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if round == 0 {
		t.done++
	} else {
		t.again++
	}
}

// undone counts an order that is not done when all its calls have returned;
// true says that in truth it is.
func (t *tally) undone(o idem.Outcome, truly bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case o == idem.NotExecuted:
		t.unsent++
	case truly:
		t.unknown++
		t.unknownDone++
	default:
		t.unknown++
	}
}

func (t *tally) restart() { t.mu.Lock(); t.restarts++; t.mu.Unlock() }

func (t *tally) finished(effects int) { t.mu.Lock(); t.effects += effects; t.mu.Unlock() }

func (t *tally) doublef(format string, args ...any) { t.find(&t.doubled, "doubled", format, args) }
func (t *tally) losef(format string, args ...any)   { t.find(&t.missing, "lost", format, args) }
func (t *tally) wrongf(format string, args ...any)  { t.find(&t.mistaken, "wrong", format, args) }

// find counts a finding and keeps the text of the first few.
func (t *tally) find(count *int, kind, format string, args []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*count++
	if text := kind + ": " + fmt.Sprintf(format, args...); len(t.findings) < 20 && !slices.Contains(t.findings, text) {
		t.findings = append(t.findings, text)
	}
}

// verdict is nil if every promise was kept.
func (t *tally) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubled+t.missing+t.mistaken == 0 && t.effects == t.orders {
		return nil
	}
	return fmt.Errorf("soak: %d orders, %d effects, %d doubled, %d lost, %d wrong outcomes:\n  %s",
		t.orders, t.effects, t.doubled, t.missing, t.mistaken, strings.Join(t.findings, "\n  "))
}

// table prints what was counted.
func (t *tally) table(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range []struct {
		name string
		n    int
	}{
		{"orders", t.orders},
		{"attempts", t.attempts},
		{"sends", t.sends},
		{"restarts of a server", t.restarts},
		{"effects", t.effects},
		{"doubled", t.doubled},
		{"lost", t.missing},
		{"wrong outcomes", t.mistaken},
		{"unknown outcomes", t.unknown},
		{"  of them done in truth", t.unknownDone},
		{"not executed", t.unsent},
		{"asked again", t.again},
	} {
		_, _ = fmt.Fprintf(out, "%-24s %9d\n", line.name, line.n)
	}
	_, _ = fmt.Fprintf(out, "%-24s %9v\n", "time", time.Since(t.began).Round(100*time.Millisecond))
}

// bar shows the progress on out until it is told to stop: in one line of a
// terminal, else in a line every ten seconds and at the end.
func (t *tally) bar(out io.Writer) (stop func()) {
	terminal := false
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for running := true; running; {
			select {
			case <-tick.C:
			case <-done:
				running = false
			}
			switch {
			case terminal:
				_, _ = fmt.Fprintf(out, "\r%s\x1b[K", t.line())
			case !running, time.Since(last) > 10*time.Second:
				last = time.Now()
				_, _ = fmt.Fprintln(out, t.line())
			}
		}
		if terminal {
			_, _ = fmt.Fprintln(out)
		}
	}()
	return func() { close(done); <-gone }
}

// line is the progress as one line.
func (t *tally) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	const width = 20
	share := float64(t.done) / float64(max(t.orders, 1))
	full := int(share * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %d orders  %d attempts  %d sends  %d unknown  %d doubled  %d lost  %d wrong",
		strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share,
		t.done, t.attempts, t.sends, t.unknown, t.doubled, t.missing, t.mistaken)
}
