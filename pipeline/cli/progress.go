// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/prerig/prerig/pipeline/images"
)

// bar draws how far a run is, in one line of a terminal that is drawn over. It shows nothing within the first second, and
// nothing at all where there is no terminal: logs do not want it.
type bar struct {
	out   io.Writer
	what  string
	width func() int
	now   func() time.Time

	start time.Time
	drawn bool
}

// newBar gives a bar on standard error, and nil where that is no terminal. All methods do nothing on nil.
func newBar(out io.Writer, what string) *bar {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	width := func() int {
		w, _, err := term.GetSize(int(file.Fd()))
		if err != nil || w < 20 {
			return 80
		}
		return w
	}
	return &bar{out: out, what: what, width: width, now: time.Now, start: time.Now()}
}

// update draws the bar, from the second second on.
func (b *bar) update(p images.Progress) {
	if b == nil || b.now().Sub(b.start) < time.Second && !b.drawn {
		return
	}
	b.drawn = true
	const cells = 24
	full := cells
	if p.Total > 0 {
		full = cells * p.Done / p.Total
	}
	line := fmt.Sprintf("%s [%s%s] %d/%d %s", b.what, strings.Repeat("=", full), strings.Repeat(" ", cells-full), p.Done, p.Total, p.Image)
	if w := b.width() - 1; len(line) > w {
		line = line[:w]
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s", line)
}

// done takes the bar away.
func (b *bar) done() {
	if b != nil && b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
