// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/render/isolation"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// rendererProcess is a renderer.
type rendererProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *tailBuffer
	apart   bool // in namespaces of its own
	once    sync.Once
	exited  chan struct{}
	renders int // that it has done
}

// CollectAt is the heap growth in percent at which a renderer collects garbage: a process that lives for some
// milliseconds need not collect at all. It is set in its environment because the renderer would otherwise collect
// while its packages are initialised, which made up a quarter of the processor time of its start. The memory limit
// forces a longer-lived process to collect.
const CollectAt = 400

// startRenderer starts a renderer with only this in its environment, in its own process group, and in namespaces of
// its own without any network if the system allows it. The renderer ends when this process does.
func (p *Pool) startRenderer() (*rendererProcess, error) {
	if p.options.NoSandbox {
		return launchRenderer(p.options, false)
	}
	var started *rendererProcess
	_, err := p.namespaces.Start(func(namespaces bool) (err error) {
		started, err = launchRenderer(p.options, namespaces)
		return err
	})
	return started, err
}

func launchRenderer(options Options, namespaces bool) (*rendererProcess, error) {
	command := exec.Command(options.Command[0], options.Command[1:]...)
	command.Env = []string{fmt.Sprint("GOGC=", CollectAt)}
	command.Dir = "/"
	command.SysProcAttr = isolation.Attributes(namespaces)
	p := &rendererProcess{command: command, stderr: &tailBuffer{}, apart: namespaces, exited: make(chan struct{})}
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = p.stderr
	// A killed renderer cannot have passed on its standard error, since it starts no processes; do not wait for
	// long.
	command.WaitDelay = time.Second
	if err := isolation.Launch(command); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 64<<10)
	return p, nil
}

// killGroup ends the renderer and everything that it may have started, and waits for it.
func (p *rendererProcess) killGroup() {
	p.once.Do(func() {
		p.killStarted()
		_ = p.command.Process.Kill()
		_ = p.in.Close()
		_ = p.command.Wait()
		close(p.exited)
	})
	<-p.exited
}

// explainEnd explains why a renderer ended without a result.
func (p *rendererProcess) explainEnd(err error, limits Limits) error {
	if strings.HasPrefix(err.Error(), "the renderer sent") || errors.As(err, new(*tree.LimitError)) {
		return err // it has not ended, and is about to be
	}
	// It has ended, or is about to: its own exit is more informative than a kill.
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, p.out); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	p.once.Do(func() {
		_ = p.in.Close()
		timer := time.AfterFunc(2*time.Second, func() { _ = p.command.Process.Kill() })
		_ = p.command.Wait()
		timer.Stop()
		close(p.exited)
	})
	<-p.exited
	text := p.stderr.String()
	state := p.command.ProcessState
	switch {
	case strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") || strings.Contains(text, "failed to allocate"):
		return fmt.Errorf("the renderer needs more memory than its limit of %d bytes", limits.Memory)
	case strings.Contains(text, "stack exceeds"):
		return errors.New("the renderer's stack grew too large: the input is nested too deeply")
	case strings.Contains(text, "SIGXCPU"), state != nil && strings.Contains(state.String(), "SIGXCPU"), state != nil && strings.Contains(state.String(), "cpu time"):
		return fmt.Errorf("the renderer used more processor time than %s allow", limits.Timeout)
	case state != nil:
		return fmt.Errorf("%w (%s): %w: %s", ErrEnded, state, err, lastLines(text))
	}
	return err
}

// lastLines keeps an error short.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(text, "?")), "\n")
	if len(lines) > 3 {
		lines = lines[:3]
	}
	return strings.Join(lines, "; ")
}
