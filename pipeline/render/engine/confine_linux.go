// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package engine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confine puts on the layers of a renderer and runs another program in the place of this one, with arguments and without an environment.
// The program must be made as Prerig's are, without C. It can open no file and no socket, and run nothing but itself. Confine returns
// only with an error.
func Confine(program string, args ...string) error {
	file, err := unix.Open(program, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", program, err)
	}
	argv := make([]*byte, 0, len(args)+2)
	for _, text := range append([]string{program}, args...) {
		arg, err := unix.BytePtrFromString(text)
		if err != nil {
			return fmt.Errorf("running %s: %w", program, err)
		}
		argv = append(argv, arg)
	}
	argv = append(argv, nil)
	var none [1]byte
	var environment [1]*byte
	emptyRoot()
	restrictFiles(onAllThreads, file)
	filterCalls(func(p *bpfProgram) {
		p.checkArgument(unix.SYS_EXECVEAT, 0, unix.BPF_JEQ, uint32(file), allow, refuse)
		for _, call := range startCalls {
			p.addBranch(unix.BPF_JEQ, call, func(p *bpfProgram) { p.returnAction(allow) })
		}
	})
	for {
		_, _, failed := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(file), uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&argv[0])),
			uintptr(unsafe.Pointer(&environment)), unix.AT_EMPTY_PATH, 0)
		runtime.KeepAlive(argv)
		if failed != unix.EAGAIN && failed != unix.EINTR { // another thread is being made
			return fmt.Errorf("running %s: %w", program, failed)
		}
	}
}
