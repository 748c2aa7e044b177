// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine"
)

// attempts are what a renderer that was taken over would try. Each gives nil where it went through.
var attempts = map[string]func() error{
	"read a file":         func() error { _, err := os.ReadFile("/etc/passwd"); return err },
	"read an environment": func() error { _, err := os.ReadFile("/proc/1/environ"); return err },
	"read its own status": func() error { _, err := os.ReadFile("/proc/self/status"); return err },
	"list a directory":    func() error { _, err := os.ReadDir("/etc"); return err },
	// No file can grow, by a limit; but one could be made, or be emptied.
	"make a file":         func() error { return os.WriteFile(os.Args[4]+"/file", nil, 0o600) },
	"make a directory":    func() error { return os.Mkdir(os.Args[4]+"/directory", 0o700) },
	"make a link":         func() error { return os.Symlink("/etc/passwd", os.Args[4]+"/link") },
	"run a program":       func() error { return exec.Command("/bin/true").Run() },
	"replace itself":      execAway,
	"start a process":     fork,
	"open a TCP socket":   func() error { return open(unix.AF_INET, unix.SOCK_STREAM) },
	"open a UDP socket":   func() error { return open(unix.AF_INET, unix.SOCK_DGRAM) },
	"open an IPv6 socket": func() error { return open(unix.AF_INET6, unix.SOCK_STREAM) },
	"open a raw socket":   func() error { return open(unix.AF_NETLINK, unix.SOCK_RAW) },
	"open a Unix socket":  func() error { return open(unix.AF_UNIX, unix.SOCK_STREAM) },
	"dial TCP":            func() error { return dial("tcp", os.Args[3]) },
	"send UDP":            func() error { return dial("udp", "192.0.2.1:9") },
	"listen":              func() error { l, err := net.Listen("tcp", "127.0.0.1:0"); return closed(l, err) },
	"know its addresses":  addresses,
	"signal its parent":   func() error { return unix.Kill(unix.Getppid(), 0) },
	"signal a thread of its parent": func() error {
		return unix.Tgkill(unix.Getppid(), unix.Getppid(), 0)
	},
	"trace its parent":            func() error { return unix.PtraceSeize(unix.Getppid()) },
	"read memory of its parent":   readParent,
	"raise limits of its parent":  func() error { return unix.Prlimit(unix.Getppid(), unix.RLIMIT_CORE, nil, &unix.Rlimit{}) },
	"hold on to its parent":       func() error { fd, err := unix.PidfdOpen(unix.Getppid(), 0); return closedFD(fd, err) },
	"be told by its parent's end": func() error { _, err := unix.FcntlInt(1, unix.F_SETOWN, unix.Getppid()); return err },
	"make memory to run": func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	},
	"share memory":                  func() error { return mapMemory(unix.MAP_SHARED | unix.MAP_ANON) },
	"share memory with other flags": func() error { return mapMemory(unix.MAP_SHARED_VALIDATE | unix.MAP_ANON) },
	"make memory like a stack":      func() error { return mapMemory(unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_GROWSDOWN) },
	"use io_uring":                  useRing,
	"make a file in memory":         func() error { fd, err := unix.MemfdCreate("x", 0); return closedFD(fd, err) },
	"use keys":                      func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); return err },
	"enter a namespace":             func() error { return unix.Unshare(unix.CLONE_NEWUTS | unix.CLONE_NEWUSER) },
	// It is mounted nowhere: what is tried must do no harm where it goes through.
	"make a file system": func() error { fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC); return closedFD(fd, err) },
}

// mapMemory maps a little memory; that a limit of the process refuses none of it is what matters.
func mapMemory(flags int) error {
	_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, flags)
	return err
}

func addresses() error {
	found, err := net.InterfaceAddrs()
	if err == nil && len(found) == 0 {
		err = net.UnknownNetworkError("none")
	}
	return err
}

func open(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	return closedFD(fd, err)
}

func closedFD(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func closed(l net.Listener, err error) error {
	if err == nil {
		l.Close()
	}
	return err
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err == nil {
		_, err = conn.Write([]byte("x"))
		conn.Close()
	}
	return err
}

func useRing() error {
	var params [120]byte
	fd, _, failed := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if failed != 0 {
		return failed
	}
	return closedFD(int(fd), nil)
}

// execAway would replace this process: where it is allowed the test sees another program's output.
func execAway() error {
	if os.Args[2] == "none" {
		return nil // it would be, and nothing more be tried
	}
	return syscall.Exec("/bin/true", []string{"true"}, nil)
}

func fork() error {
	// The flags are those of a plain fork, whose child ends at once.
	pid, _, failed := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if failed != 0 {
		return failed
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func readParent() error {
	var buffer [8]byte
	local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
	_, err := unix.ProcessVMReadv(unix.Getppid(), local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	return err
}

// probe stands for a renderer that was taken over: it tries what it must not be able to do, and says so as objects.
func probe() {
	for _, variable := range os.Environ() {
		if variable == "GOGC=400" { // how often to collect garbage, which all renderers are given
			continue
		}
		tell("Environment", strings.ReplaceAll(variable, "\n", " "))
	}
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		if n, _ := strconv.Atoi(file.Name()); n < 3 {
			continue
		}
		// Go's runtime keeps the limits of its control group open, and the poller.
		name, err := os.Readlink("/proc/self/fd/" + file.Name())
		if err == nil && !strings.HasPrefix(name, "/sys/fs/cgroup/") && !strings.HasPrefix(name, "anon_inode:") && !strings.HasPrefix(name, "/proc/") {
			tell("Open", name)
		}
	}
	have := engine.Enclose(os.Args[2])
	tell("Have", have.String())
	for name, try := range attempts {
		if err := try(); err == nil {
			tell("Found", name)
		}
	}
	send('D', []byte("{}"))
	os.Exit(0)
}

func tell(kind, name string) {
	head, _ := json.Marshal(render.Object{APIVersion: "v1", Kind: kind, Name: name})
	send('O', append(head, '\n'))
}

func send(kind byte, content []byte) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	_, _ = os.Stdout.Write(append(head, content...))
}
