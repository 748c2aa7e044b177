// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/freeport"
)

// process is a daemon, a worker or a server in a process of its own that is started again whenever it ends, as a service
// manager would.
type process struct {
	t       *testing.T
	program string
	args    []string
	env     []string
	logs    string
	silent  bool // it does not say when it is up, and its output is logged

	mu      sync.Mutex
	command *exec.Cmd
	up      chan struct{} // closed once it has written a line
	held    bool          // not started again for now
	dying   bool          // was sent a signal
	struck  time.Time     // when it was sent the last one
	ended   bool
	done    chan struct{}
}

// supervise runs this test program with an environment. What it does is hidden from the race detector, so it is left out with it, as
// in the short tests.
func supervise(t *testing.T, logs string, env []string) *process {
	t.Helper()
	if testing.Short() || raceDetector {
		t.Skip("LEFT OUT: make e2e-pipeline runs it, as all tests that start daemons as processes")
	}
	p := &process{program: self(t), args: []string{"-test.run=^$"}, env: env, logs: logs}
	p.begin(t)
	if !p.awaitUp(2 * time.Minute) {
		t.Fatal("a process did not come up")
	}
	return p
}

func (p *process) begin(t *testing.T) {
	t.Helper()
	p.t, p.up, p.done = t, make(chan struct{}), make(chan struct{})
	go p.keep()
	t.Cleanup(p.end)
}

func (p *process) end() {
	p.mu.Lock()
	p.ended = true
	command := p.command
	p.mu.Unlock()
	if p.t.Failed() && command != nil && command.Process.Signal(syscall.SIGQUIT) == nil {
		// What it was doing is in its log then.
		select {
		case <-p.done:
			return
		case <-time.After(10 * time.Second):
		}
	}
	p.kill()
	<-p.done
}

// keep starts the process again and again until it is to end.
func (p *process) keep() {
	defer close(p.done)
	for {
		p.mu.Lock()
		if p.ended {
			p.mu.Unlock()
			return
		}
		var out *os.File
		var err error
		var command *exec.Cmd
		if !p.held {
			out, err = p.start()
			command = p.command
		}
		up := p.up
		p.mu.Unlock()
		if err != nil {
			p.t.Errorf("starting a process: %v", err)
			return
		}
		if command != nil {
			p.attend(command, out, up)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// attend waits until a process has ended, and closes up once it has written a line.
func (p *process) attend(command *exec.Cmd, out *os.File, up chan struct{}) {
	read := make(chan error, 1)
	if p.silent {
		close(up)
		read <- nil
	} else {
		go func() {
			lines := bufio.NewReader(out)
			if _, err := lines.ReadString('\n'); err == nil {
				close(up)
			}
			_, err := io.Copy(io.Discard, lines)
			read <- err
		}()
	}
	_ = command.Wait()
	if out != nil {
		_ = out.SetReadDeadline(time.Now().Add(10 * time.Second))
		defer out.Close()
	}
	if err := <-read; errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Error("a process has ended, and something that it started has kept what it had open")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command = nil
	if p.up == up {
		p.up = make(chan struct{})
	}
}

// start is called with mu held. It gives where the process's output can be read, nil where that is logged.
func (p *process) start() (*os.File, error) {
	logs, err := os.OpenFile(p.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer logs.Close()
	command := exec.Command(p.program, p.args...)
	command.Env = append(os.Environ(), p.env...)
	command.Stdout, command.Stderr = logs, logs
	var out *os.File
	if !p.silent {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer write.Close()
		out, command.Stdout = read, write
	}
	if err := command.Start(); err != nil {
		if out != nil {
			out.Close()
		}
		return nil, err
	}
	p.command, p.dying = command, false
	return out, nil
}

// kill ends the process with SIGKILL where it runs.
func (p *process) kill() bool { return p.signal(syscall.SIGKILL) }

func (p *process) signal(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil || p.dying || p.command.Process.Signal(s) != nil {
		return false
	}
	p.dying, p.up, p.struck = true, make(chan struct{}), time.Now()
	return true
}

// lastStruck returns when the process was last sent a signal.
func (p *process) lastStruck() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// hold keeps the process from being started again until it is let go.
func (p *process) hold(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
}

// gone waits until the process that was sent a signal has ended. It must be held, as it is started again otherwise.
func (p *process) gone() {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		command := p.command
		p.mu.Unlock()
		if command == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%s did not end, and is killed", p.program)
			_ = command.Process.Kill()
			return
		}
	}
}

// awaitUp waits until the process says that it listens.
func (p *process) awaitUp(longest time.Duration) bool {
	p.mu.Lock()
	up := p.up
	p.mu.Unlock()
	select {
	case <-up:
		return true
	case <-time.After(longest):
		return false
	}
}

// freePorts returns n ports of this machine on which no program listens.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := freeport.Find("127.0.0.1", n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// free returns an address that is free now.
func free(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
}
