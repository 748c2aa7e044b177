// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal with somebody who types.
type terminal struct {
	t      *testing.T
	master *os.File
	// tty is the end that a program has.
	tty *os.File

	mu    sync.Mutex
	shown bytes.Buffer
	news  chan struct{}
}

// openTerminal opens a pseudo-terminal of 200 columns.
func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.SetNonblock(int(master.Fd()), true)) // Fd makes it blocking, and Close would then wait for a read
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	must(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200}))
	term := &terminal{t: t, master: os.NewFile(dup(t, master), "master"), tty: tty, news: make(chan struct{}, 1)}
	t.Cleanup(func() { tty.Close(); term.master.Close() })
	go term.follow()
	return term
}

// dup returns a descriptor that the runtime can wait for.
func dup(t *testing.T, f *os.File) uintptr {
	t.Helper()
	fd, err := unix.Dup(int(f.Fd()))
	must(t, err)
	must(t, unix.SetNonblock(fd, true))
	return uintptr(fd)
}

func (m *terminal) follow() {
	buffer := make([]byte, 4096)
	for {
		n, err := m.master.Read(buffer)
		m.mu.Lock()
		m.shown.Write(buffer[:n])
		m.mu.Unlock()
		select {
		case m.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (m *terminal) screen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.ReplaceAll(m.shown.String(), "\r\n", "\n")
}

// typeAfter waits until a text is shown for the nth time, and types a line.
func (m *terminal) typeAfter(text string, nth int, line string) {
	m.t.Helper()
	deadline := time.After(3 * time.Minute)
	for strings.Count(m.screen(), text) < nth {
		select {
		case <-m.news:
		case <-deadline:
			m.t.Errorf("%q was not shown %d times:\n%s", text, nth, m.screen())
			m.master.Close()
			return
		}
	}
	if _, err := m.master.WriteString(line); err != nil {
		m.t.Error(err)
	}
}

// streams are those of a program at the terminal; what goes to standard output is kept apart.
func (m *terminal) streams(out *bytes.Buffer) Streams {
	return Streams{In: m.tty, Out: out, Err: m.tty, InTerminal: true}
}
