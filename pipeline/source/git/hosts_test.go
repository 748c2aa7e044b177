// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

const hostLine = "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n"

// The image has no directory for temporary files, and runs without a file system that can be written.
func TestKnownHostsNeedNoTemporaryDirectory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it is the image that has none")
	}
	t.Setenv("TMPDIR", "/nonexistent")
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, algorithms, err := knownHosts([]byte(hostLine), "git.example.com:22"); err != nil || len(algorithms) == 0 {
			t.Fatalf("algorithms %v, %v", algorithms, err)
		}
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(before)+10 {
		t.Errorf("%d files were open before, %d are now, %v", len(before), len(after), err)
	}
}

// An endpoint has brackets around an IPv6 address already.
func TestSSHToAnIPv6Address(t *testing.T) {
	identity := gittest.New(t).NewSSH(t).Identity
	for url, c := range map[string]struct{ known, address string }{
		"ssh://git@[2001:db8::1]/r.git":      {"2001:db8::1", "[2001:db8::1]:22"},
		"ssh://git@[2001:db8::1]:2222/r.git": {"[2001:db8::1]:2222", "[2001:db8::1]:2222"},
		"git@git.example.com:r.git":          {"git.example.com", "git.example.com:22"},
	} {
		hosts := strings.Replace(hostLine, "git.example.com", c.known, 1)
		remote, err := NewRemote(url, map[string][]byte{KeyIdentity: identity, KeyKnownHosts: []byte(hosts)}, nil)
		if err != nil || remote.ssh.address != c.address {
			t.Errorf("%s: got %+v, %v", url, remote, err)
		}
	}
}
