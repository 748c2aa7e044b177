// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// noNamespaces is set when the system does not let us make any: then they are not tried again.
var noNamespaces atomic.Bool

// launching is held while a renderer is started, by all pools of this process. Until its exec, a child in a new user
// namespace waits for a pipe from us, and has everything open that we have, the ends of other such pipes too: os/exec lets
// starts overlap. If we are killed then, two children wait for each other's end for ever, and keep our sockets and locks.
var launching sync.Mutex

// collectAt is by how many percent a renderer's heap grows before it collects garbage: a process that lives for some milliseconds
// need not do that. It is in its environment, as it would collect else while its packages are initialised, which made up a quarter
// of the processor time of its start. The memory limit makes one that lives longer do it.
const collectAt = 400

// startRenderer starts a renderer: nothing else in its environment, an own process group, and namespaces of its own without any network
// where the system allows it. It ends when this process does.
func startRenderer(options Options) (*rendererProcess, error) {
	if !options.NoSandbox && !noNamespaces.Load() {
		p, err := launchRenderer(options, true)
		if err == nil || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EACCES) {
			return p, err
		}
		noNamespaces.Store(true)
	}
	return launchRenderer(options, false)
}

func launchRenderer(options Options, namespaces bool) (*rendererProcess, error) {
	command := exec.Command(options.Command[0], options.Command[1:]...)
	command.Env = []string{fmt.Sprint("GOGC=", collectAt)}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if namespaces {
		command.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
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
	// A renderer that is killed may have handed its standard error to nobody, as it starts nothing; do not wait for long.
	command.WaitDelay = time.Second
	launching.Lock()
	err = command.Start()
	launching.Unlock()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 64<<10)
	return p, nil
}

// keepFiles sees to it that no file that this process was started with is passed on: a shell or a supervisor may have left
// one open. Those that Go opens are never passed on. Kernels before 5.11 do not know the call.
func keepFiles() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// isAlive reports whether a renderer that has waited can be used. It is looked for its end, and that is left to be waited for: a
// signal reaches also one that has ended, until then.
func (p *rendererProcess) isAlive() bool {
	var ended unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.command.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && ended.Signo == 0
}

// yielding is how much a renderer that takes long steps back behind everything else that wants the processor.
const yielding = 10

// stepBack lets others have the processor first. Linux knows niceness of threads only; new ones take it from that which
// starts them.
func (p *rendererProcess) stepBack() {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.command.Process.Pid))
	if err != nil {
		return // it has ended
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, yielding)
		}
	}
}

// killGroup ends the renderer and everything that it may have started, and waits for it.
func (p *rendererProcess) killGroup() {
	p.once.Do(func() {
		_ = unix.Kill(-p.command.Process.Pid, unix.SIGKILL)
		_ = p.command.Process.Kill()
		_ = p.in.Close()
		_ = p.command.Wait()
		close(p.exited)
	})
	<-p.exited
}

// setLimits sets what the renderer may use. No file can be written or made, no further process is of use to it. One that may be
// used again has a second bound of its processor time, for all renders together; a limit cannot be raised.
func (p *rendererProcess) setLimits(limits Limits, again bool) error {
	allowed := limits.Timeout/time.Second*2 + 2
	seconds, most := uint64(allowed), uint64(allowed)
	if again {
		used, _ := p.cpuTime()
		seconds, most = seconds+uint64(used/time.Second), most+uint64(sessionCPU/time.Second)
	}
	for _, one := range []struct {
		what        int
		value, most uint64
	}{
		{unix.RLIMIT_CPU, min(seconds, most), most}, {unix.RLIMIT_DATA, uint64(limits.Memory), uint64(limits.Memory)},
		{unix.RLIMIT_FSIZE, 0, 0}, {unix.RLIMIT_CORE, 0, 0}, {unix.RLIMIT_NOFILE, 64, 64},
	} {
		value := unix.Rlimit{Cur: one.value, Max: one.most}
		if err := unix.Prlimit(p.command.Process.Pid, one.what, &value, nil); err != nil {
			return err
		}
		if p.renders > 0 {
			return nil // the others are as they were
		}
	}
	return nil
}

// explainEnd says why a renderer ended without a result.
func (p *rendererProcess) explainEnd(err error, limits Limits) error {
	if strings.HasPrefix(err.Error(), "the renderer sent") {
		return err
	}
	// It has ended, or is about to: its own end tells more than ours.
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
		return fmt.Errorf("the renderer ended without a result (%s): %w: %s", state, err, lastLines(text))
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
