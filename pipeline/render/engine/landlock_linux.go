// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadCall makes a system call that changes the calling thread, on every thread that must be changed.
type threadCall func(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)

// onAllThreads is for programs that are made without C, as Prerig's are; in others the call fails and the layer is missing.
func onAllThreads(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno) {
	return syscall.AllThreadsSyscall(trap, a1, a2, a3)
}

// handledAccess is what a version of Landlock's interface can forbid. No rule allows any of it again.
func handledAccess(version int) unix.LandlockRulesetAttr {
	// The rights of files are numbered without a gap, so those up to the newest one that a version knows are a mask.
	upTo := func(newest uint64) uint64 { return newest<<1 - 1 }
	attr := unix.LandlockRulesetAttr{Handled_access_fs: upTo(unix.LANDLOCK_ACCESS_FS_MAKE_SYM)}
	if version >= 2 {
		attr.Handled_access_fs = upTo(unix.LANDLOCK_ACCESS_FS_REFER)
	}
	if version >= 3 {
		attr.Handled_access_fs = upTo(unix.LANDLOCK_ACCESS_FS_TRUNCATE)
	}
	if version >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		attr.Handled_access_fs = upTo(unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// restrictFiles forbids access to every file that is not already open, but for running the one of the descriptor program, which is -1
// for none, and all other access that the kernel's version of Landlock can restrict. It returns that version, or 0 if no restriction is
// in place.
func restrictFiles(call threadCall, program int) int {
	// Called this way, the call creates no ruleset and returns the version.
	found, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	version := int(found)
	if failed != 0 || version < 1 {
		return 0
	}
	attr := handledAccess(version)
	// The fields up to here are those of version 6; older kernels take a longer structure whose end is zero.
	size := unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	ruleset, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if failed != 0 {
		return 0
	}
	defer unix.Close(int(ruleset))
	if program >= 0 {
		rule := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE, Parent_fd: int32(program)}
		if _, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); failed != 0 {
			return 0
		}
	}
	if _, _, failed := call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); failed != 0 {
		return 0
	}
	if _, _, failed := call(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); failed != 0 {
		return 0
	}
	return version
}
