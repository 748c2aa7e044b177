// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// closeFilesOnExec sees to it that no file that this process was started with is passed on: a shell or a supervisor may
// have left one open. Those that Go opens are never passed on. Kernels before 5.11 do not know the call.
func closeFilesOnExec() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// isAlive reports whether a renderer that has waited can be used. It is looked for its end, and that is left to be waited for: a
// signal reaches also one that has ended, until then.
func (p *rendererProcess) isAlive() bool {
	var ended unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.command.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && ended.Signo == 0
}

// yielding is the amount by which a slow renderer lowers its priority, so that all other users of the
// processor come first.
const yielding = 10

// lowerPriority lets others have the processor first. Linux knows niceness of threads only; new ones take it from that
// which starts them.
func (p *rendererProcess) lowerPriority() {
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

// killStarted ends everything that the renderer may have started.
func (p *rendererProcess) killStarted() { _ = unix.Kill(-p.command.Process.Pid, unix.SIGKILL) }

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

// cpuTime is how much processor time it has used.
func (p *rendererProcess) cpuTime() (time.Duration, bool) {
	const processClock = 2 // the clock of all that a process has used (MAKE_PROCESS_CPUCLOCK in the kernel)
	var used unix.Timespec
	err := unix.ClockGettime(int32(^p.command.Process.Pid<<3|processClock), &used)
	return time.Duration(used.Nano()), err == nil
}

// privateMemoryBytes returns how many bytes it has that are its own.
func (p *rendererProcess) privateMemoryBytes() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.command.Process.Pid))
	var all, resident, shared int64
	if _, scanned := fmt.Sscan(string(text), &all, &resident, &shared); err != nil || scanned != nil {
		return math.MaxInt64
	}
	return (resident - shared) * int64(os.Getpagesize())
}
