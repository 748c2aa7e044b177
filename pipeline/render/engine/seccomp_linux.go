// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package engine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the system calls that a Go program with open files needs: memory, threads, time, and reading and
// writing open files. The most frequent ones come first, since the kernel checks them in order.
var calls = []uint32{
	unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_MADVISE, unix.SYS_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_MUNMAP,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SCHED_YIELD, unix.SYS_CLOCK_GETTIME, unix.SYS_GETPID, unix.SYS_GETTID,
	unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_BRK, unix.SYS_MREMAP, unix.SYS_MINCORE, unix.SYS_PREAD64, unix.SYS_READV,
	unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EVENTFD2,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST,
	unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_RESTART_SYSCALL, unix.SYS_UNAME, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// Parts of what a filter looks at (struct seccomp_data). Both machines have the low half of an argument first.
const (
	dataCall = 0
	dataArch = 4
	dataArg0 = 16
	argSize  = 8
)

// bpfProgram builds a filter.
type bpfProgram []unix.SockFilter

func (p *bpfProgram) addInstruction(code uint16, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, K: k})
}

func (p *bpfProgram) loadWord(offset uint32) {
	p.addInstruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset)
}

// returnAction ends the filter.
func (p *bpfProgram) returnAction(with uint32) { p.addInstruction(unix.BPF_RET|unix.BPF_K, with) }

// addBranch runs the steps if the comparison with the loaded value holds, and otherwise continues after them.
func (p *bpfProgram) addBranch(comparison uint16, k uint32, steps func(*bpfProgram)) {
	at := len(*p)
	p.addInstruction(unix.BPF_JMP|comparison|unix.BPF_K, k)
	steps(p)
	(*p)[at].Jf = uint8(len(*p) - at - 1)
}

const (
	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// checkArgument allows a call only if the comparison with one of its arguments holds.
func (p *bpfProgram) checkArgument(call uint32, index uint32, comparison uint16, k uint32, then, otherwise uint32) {
	p.addBranch(unix.BPF_JEQ, call, func(p *bpfProgram) {
		p.loadWord(dataArg0 + argSize*index)
		p.addBranch(comparison, k, func(p *bpfProgram) { p.returnAction(then) })
		p.returnAction(otherwise)
	})
}

// seccompFilter returns the filter program for the process with the specified ID. further adds what is allowed besides; it may be nil.
func seccompFilter(pid uint32, further func(*bpfProgram)) bpfProgram {
	var p bpfProgram
	p.loadWord(dataArch)
	p.addBranch(unix.BPF_JEQ, auditArch, func(p *bpfProgram) {
		p.loadWord(dataCall)
		if foreignCalls != 0 {
			p.addBranch(unix.BPF_JGE, foreignCalls, func(p *bpfProgram) { p.returnAction(refuse) })
		}
		if further != nil {
			further(p)
		}
		for _, call := range calls {
			p.addBranch(unix.BPF_JEQ, call, func(p *bpfProgram) { p.returnAction(allow) })
		}
		// Memory, but none that could be run as a program, and none that RLIMIT_DATA does not count: what is shared,
		// as MAP_SHARED_VALIDATE is, too, and what grows like a stack (is_data_mapping in mm/internal.h of Linux
		// 6.12).
		p.addBranch(unix.BPF_JEQ, unix.SYS_MMAP, func(p *bpfProgram) {
			p.loadWord(dataArg0 + argSize*2)
			p.addBranch(unix.BPF_JSET, unix.PROT_EXEC, func(p *bpfProgram) { p.returnAction(refuse) })
			p.loadWord(dataArg0 + argSize*3)
			p.addBranch(unix.BPF_JSET, unix.MAP_SHARED|unix.MAP_GROWSDOWN|unix.MAP_HUGETLB, func(p *bpfProgram) { p.returnAction(refuse) })
			p.returnAction(allow)
		})
		p.checkArgument(unix.SYS_MPROTECT, 2, unix.BPF_JSET, unix.PROT_EXEC, refuse, allow)
		// Threads, but no processes.
		p.checkArgument(unix.SYS_CLONE, 0, unix.BPF_JSET, unix.CLONE_THREAD, allow, refuse)
		p.checkArgument(unix.SYS_PRCTL, 0, unix.BPF_JEQ, unix.PR_SET_VMA, allow, refuse)
		// Signals and limits of this process only.
		p.checkArgument(unix.SYS_TGKILL, 0, unix.BPF_JEQ, pid, allow, refuse)
		p.checkArgument(unix.SYS_KILL, 0, unix.BPF_JEQ, pid, allow, refuse)
		p.checkArgument(unix.SYS_PRLIMIT64, 0, unix.BPF_JEQ, 0, allow, refuse)
		p.addBranch(unix.BPF_JEQ, unix.SYS_FCNTL, func(p *bpfProgram) {
			p.loadWord(dataArg0 + argSize)
			for _, command := range []uint32{unix.F_GETFL, unix.F_SETFL, unix.F_GETFD, unix.F_SETFD} {
				p.addBranch(unix.BPF_JEQ, command, func(p *bpfProgram) { p.returnAction(allow) })
			}
			p.returnAction(refuse)
		})
		// Its flags are in memory, which a filter cannot read; the C library then uses the older call.
		p.addBranch(unix.BPF_JEQ, unix.SYS_CLONE3, func(p *bpfProgram) { p.returnAction(absent) })
		p.returnAction(refuse)
	})
	p.returnAction(refuse)
	return p
}

// filterCalls has the kernel refuse every system call but a few, in all threads.
func filterCalls(further func(*bpfProgram)) bool {
	// What is set here is taken over by the other threads with the filter.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	steps := seccompFilter(uint32(unix.Getpid()), further)
	whole := unix.SockFprog{Len: uint16(len(steps)), Filter: &steps[0]}
	thread, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&whole)))
	runtime.KeepAlive(steps)
	return failed == 0 && thread == 0
}
