// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/prerig/prerig/pipeline/cli/images"
)

// progressBar draws the progress of a run in a single, redrawn line of a terminal. It shows no output within the
// first second, and none at all without a terminal, to keep it out of logs.
type progressBar struct {
	out   io.Writer
	what  string
	width func() int

	mu    sync.Mutex
	timer *time.Timer
	shown bool
	ended bool
	drawn time.Time
	last  images.Progress
}

// newBar returns a bar on standard error, or nil if that is not a terminal. All methods are no-ops on nil.
func newBar(out io.Writer, what string) *progressBar {
	if v, ok := out.(visibleWriter); ok {
		out = v.to // what is drawn needs escape sequences
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	b := &progressBar{out: out, what: what, width: func() int {
		w, _, err := term.GetSize(int(file.Fd()))
		if err != nil || w < 20 {
			return 80
		}
		return w
	}}
	b.timer = time.AfterFunc(time.Second, b.drawInitialState)
	return b
}

// drawInitialState draws what is known by now, and what comes after.
func (b *progressBar) drawInitialState() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.shown = true
	b.drawLine()
}

// setProgress records the progress of the run; total is 0 while unknown.
func (b *progressBar) setProgress(done, total int, name string) {
	b.setImageProgress(images.Progress{Done: done, Total: total, Image: name})
}

// setImageProgress notes how far the run is.
func (b *progressBar) setImageProgress(p images.Progress) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = p
	if b.shown && time.Since(b.drawn) > redrawAfter {
		b.drawLine()
	}
}

// redrawAfter is how long a drawn state stays, so that drawing takes no time from the work.
const redrawAfter = 50 * time.Millisecond

func (b *progressBar) drawLine() {
	b.drawn = time.Now()
	const cells = 24
	var line string
	switch {
	case b.last.Total > 0:
		full := cells * b.last.Done / b.last.Total
		line = fmt.Sprintf("%s [%s%s] %d/%d %s", b.what, strings.Repeat("=", full), strings.Repeat(" ", cells-full),
			b.last.Done, b.last.Total, escapeControlCharacters(b.last.Image))
	case b.last.Done > 0:
		line = fmt.Sprintf("%s %d %s", b.what, b.last.Done, escapeControlCharacters(b.last.Image))
	default:
		line = b.what
	}
	if w := b.width() - 1; len(line) > w {
		line = line[:w]
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s", line)
}

// clearLine removes the bar.
func (b *progressBar) clearLine() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	b.shown, b.ended = false, true
}

// next ends the bar and returns one for the next step of the same run.
func (b *progressBar) next(what string) *progressBar {
	if b == nil {
		return nil
	}
	b.clearLine()
	return newBar(b.out, what)
}
