// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// process is a running part of a cluster.
type process struct {
	name    string
	log     string // the file that holds what it prints
	command *exec.Cmd
	done    chan struct{} // closed when it has ended
	err     error         // why it ended; valid after done
}

// startProcess starts a program in a directory, with only env in its environment. Its output is written to NAME.log
// in the directory. It is killed when this process ends in any way.
func startProcess(dir, name string, env []string, program string, args ...string) (*process, error) {
	log := filepath.Join(dir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	command := exec.Command(program, args...)
	command.Dir, command.Env = dir, env
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{name: name, log: log, command: command, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the parent's death signal when the thread ends that started the child, so this thread stays.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = command.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// kill kills the process and all its children, and waits for it. A graceful kube-apiserver would hold its port for
// over a minute, so no process is asked to shut down.
func (p *process) kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// exitError reports how the process ended, with the last lines that it printed, or nil while it runs.
func (p *process) exitError() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended early (%v); its last lines:\n%s", p.name, p.err, p.lastOutputLines(20))
	default:
		return nil
	}
}

// lastOutputLines returns the last lines that the process printed.
func (p *process) lastOutputLines(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
