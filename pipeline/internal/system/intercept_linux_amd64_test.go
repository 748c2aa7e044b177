// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Some system calls of a daemon wait until the test that has started it answers (seccomp_unotify(2)). So the test knows
// exactly at which one the daemon is killed, and answers what time it is.

// fileVariable names the file in which a daemon tells its process ID and descriptor, clockVariable asks for its clock.
const fileVariable, clockVariable = "PRERIG_TEST_INTERCEPT", "PRERIG_TEST_CLOCK"

// storing are the calls that put something into place on disk.
var storing = map[string][]uint32{
	"sync":   {unix.SYS_FSYNC, unix.SYS_FDATASYNC},
	"rename": {unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2},
	"remove": {unix.SYS_UNLINK, unix.SYS_UNLINKAT, unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE},
}

func init() {
	beforeDaemon = func() error {
		file := os.Getenv(fileVariable)
		if file == "" {
			return nil
		}
		clock := os.Getenv(clockVariable) != ""
		if clock {
			if err := leaveVDSO(); err != nil {
				return fmt.Errorf("making the clock a system call: %w", err)
			}
		}
		if err := listenToCalls(clock, file); err != nil {
			return fmt.Errorf("listening to system calls: %w", err)
		}
		return nil
	}
}

// listenToCalls has the calls of this process wait for who reads from the descriptor that it writes into a file: the
// clock, or those that store.
func listenToCalls(clock bool, file string) error {
	const architecture = 0xc000003e // AUDIT_ARCH_X86_64; no other calls are made
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	result := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	const notify, allow = 0x7fc00000, 0x7fff0000
	program := []unix.SockFilter{load(4), unless(architecture, 1), load(0), load(0)}
	if clock {
		program = append(program, unless(unix.SYS_CLOCK_GETTIME, 3), load(16), unless(unix.CLOCK_REALTIME, 1), result(notify))
	} else {
		for _, calls := range storing {
			for _, call := range calls {
				program = append(program, unless(call, 1), result(notify))
			}
		}
	}
	program = append(program, result(allow))
	out, err := unix.Open(file, unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Until the descriptor is written, who asks for the time waits in the place of a goroutine. So none is given up.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	line := fmt.Appendf(make([]byte, 0, 64), "%d ", os.Getpid())
	const allThreads = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	const flags = allThreads | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.RawSyscall(
		unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&filter)))
	if errno == 0 {
		line = append(strconv.AppendUint(line, uint64(fd), 10), '\n')
		_, _, errno = unix.RawSyscall(unix.SYS_WRITE, uintptr(out), uintptr(unsafe.Pointer(&line[0])), uintptr(len(line)))
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// leaveVDSO replaces what the kernel lends to each process, so that it can read the clock without a system call, with
// the call.
func leaveVDSO() error {
	code, err := vdso()
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(slices.Clone(code)))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return err
	}
	if err := unix.Mprotect(code, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC); err != nil {
		return err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" || s.Name == "clock_gettime" {
			copy(code[s.Value:], "\xb8\xe4\x00\x00\x00\x0f\x05\xc3") // mov $228, %eax; syscall; ret
		}
	}
	return unix.Mprotect(code, unix.PROT_READ|unix.PROT_EXEC)
}

// vdso returns the memory of what the kernel lends to this process.
func vdso() ([]byte, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return nil, err
		}
		return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), from)), to-from), nil
	}
	return nil, errors.New("there is no vDSO")
}

// mayIntercept returns an error where the kernel lets no test answer the system calls of a daemon.
func mayIntercept(clock bool) error {
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(actions)), "user_notif") {
		return errors.New("no process can answer the system calls of another one")
	}
	if !clock {
		return nil
	}
	code, err := vdso()
	if err != nil {
		return err
	}
	return unix.Mprotect(code, unix.PROT_READ|unix.PROT_EXEC) // it is so already, and may be sealed
}

// interceptor answers the system calls of a daemon, and of those that are started in its place.
type interceptor struct {
	t    *testing.T
	file string

	mu sync.Mutex
	// ahead is how far the daemon's clock is ahead of this one.
	ahead time.Duration
	asked int // how often it was asked for
	// calls are those before one of which the daemon is killed, when left of them are left.
	calls []uint32
	left  int
	kills int
	kill  func() bool
}

// intercept returns an interceptor, and the environment of the daemon.
func intercept(t *testing.T, clock bool) (*interceptor, []string) {
	t.Helper()
	if err := mayIntercept(clock); err != nil {
		t.Skipf("LEFT OUT: it needs another kernel: %v", err)
	}
	i := &interceptor{t: t, file: filepath.Join(t.TempDir(), "intercepted")}
	env := []string{fileVariable + "=" + i.file}
	if clock {
		env = append(env, clockVariable+"=1")
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { i.follow(done) })
	t.Cleanup(func() { close(done); group.Wait() })
	return i, env
}

// follow answers one daemon after the other.
func (i *interceptor) follow(done chan struct{}) {
	last := ""
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
		}
		text, err := os.ReadFile(i.file)
		if err != nil || !bytes.HasSuffix(text, []byte("\n")) || string(text) == last {
			continue
		}
		last = string(text)
		var pid, fd int
		if _, err := fmt.Sscan(last, &pid, &fd); err != nil {
			i.t.Errorf("reading %s: %v", last, err)
			return
		}
		process, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		mine, err := unix.PidfdGetfd(process, fd, 0)
		unix.Close(process)
		if err != nil {
			continue
		}
		i.answerAll(mine, pid, done)
		unix.Close(mine)
	}
}

type notification struct {
	ID         uint64
	PID, Flags uint32
	Call       uint32
	_          uint32
	_          uint64
	Arguments  [6]uint64
}

type response struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// answerAll answers until the daemon, and all that it has started, have ended.
func (i *interceptor) answerAll(fd, pid int, done chan struct{}) {
	const receive, respond, goOn = 0xc0502100, 0xc0182101, 1
	for {
		select {
		case <-done:
			return
		default:
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, 100); err != nil && !errors.Is(err, unix.EINTR) || ready[0].Revents&unix.POLLHUP != 0 {
			return
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if unix.Kill(pid, 0) != nil {
				return
			}
			continue
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), receive, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // who has called was killed meanwhile
		}
		answer := response{ID: n.ID, Flags: goOn}
		if n.Call == unix.SYS_CLOCK_GETTIME {
			if err := i.tellTime(&n); err == nil {
				answer.Flags = 0
			}
		} else if i.isStruck(&n, pid) {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), respond, uintptr(unsafe.Pointer(&answer)))
	}
}

func (i *interceptor) tellTime(n *notification) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	now, err := unix.TimeToTimespec(time.Now().Add(i.ahead))
	if err != nil {
		return err
	}
	size := int(unsafe.Sizeof(now))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&now)), Len: uint64(size)}}
	_, err = unix.ProcessVMWritev(int(n.PID), local, []unix.RemoteIovec{{Base: uintptr(n.Arguments[1]), Len: size}}, 0)
	return err
}

// isStruck kills the daemon at the call that was asked for. Calls of others, which inherit the filter, do not count.
func (i *interceptor) isStruck(n *notification, pid int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left == 0 || !slices.Contains(i.calls, n.Call) {
		return false
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, n.PID)); err != nil {
		return false
	}
	if i.left--; i.left > 0 || !i.kill() {
		return false
	}
	i.kills++
	return true
}

// strikeAt kills the daemon at the nth of some calls from now on.
func (i *interceptor) strikeAt(calls []uint32, nth int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls, i.left = calls, nth
}

// killed returns how often the daemon was killed.
func (i *interceptor) killed() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.kills
}

// stepTo sets how far the daemon's clock is ahead.
func (i *interceptor) stepTo(ahead time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ahead = ahead
}

// pushImage pushes an image of the only application, and returns how the daemon answers to that.
func (c *chaos) pushImage(n int) (status int) {
	c.newest[0] = n
	image := fmt.Sprintf("image:%d", n)
	return c.tell(c.repository.Commit(image, map[string]string{"apps/app0/app.yaml": deployment("app0", image)}))
}

// TestKilledAtExactSystemCalls kills the daemon while it waits at the first, second, third … call after a push that
// puts something into place on disk. Nothing is lost or published twice.
func TestKilledAtExactSystemCalls(t *testing.T) {
	c := newChaos(t, size{pipelines: 1})
	i, env := intercept(t, false)
	p := c.serve(c.c, false, env...)
	i.kill = p.kill
	c.eventually("waiting for the first state", func() string {
		if c.shown(0) != 0 {
			return "it is not there"
		}
		return ""
	})
	each, pushes := 2, 0
	if full() {
		each = 10
	}
	for _, sort := range []string{"sync", "rename", "remove"} {
		for nth := 1; nth <= each; nth++ {
			before := i.killed()
			i.strikeAt(storing[sort], nth)
			for i.killed() == before {
				pushes++
				c.pushImage(pushes)
				c.settle()
			}
		}
	}
	commits, states := c.verify()
	if states != pushes+1 || commits != states {
		t.Errorf("%d states in %d commits, want one for each of %d pushes", states, commits, pushes)
	}
	if i.killed() != 3*each {
		t.Errorf("the daemon was killed %d times, want %d", i.killed(), 3*each)
	}
	t.Logf("%d kills in %d pushes", i.killed(), pushes)
}

// TestStepsOfTheDaemonsClock sets the clock of a running daemon, forward and back by seconds to years, with and without
// a restart right after it.
func TestStepsOfTheDaemonsClock(t *testing.T) {
	c := newChaos(t, size{pipelines: 1})
	i, env := intercept(t, true)
	p := c.serve(c.c, false, env...)
	const day = 24 * time.Hour
	steps := []time.Duration{
		time.Hour, -time.Hour, 365 * day, 0, time.Second, -time.Minute, 49 * time.Hour, -time.Second, 3650 * day, -365 * day,
	}
	if !full() {
		steps = steps[:2]
	}
	for n := range 2 * len(steps) {
		restart := n >= len(steps)
		if restart {
			p.kill()
		}
		i.stepTo(steps[n%len(steps)])
		if restart {
			p.awaitUp(2 * time.Minute)
		}
		if status := c.pushImage(n + 1); status != http.StatusAccepted {
			t.Errorf("a push after %s was answered with %d", steps[n%len(steps)], status)
		}
		c.settle()
	}
	if commits, states := c.verify(); states != 2*len(steps)+1 || commits != states {
		t.Errorf("%d states in %d commits, want one for each of %d pushes", states, commits, 2*len(steps))
	}
	if i.asked == 0 {
		t.Error("the daemon did not ask for the time")
	}
}
