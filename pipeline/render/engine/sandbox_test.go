// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestProbe has a renderer that was taken over try all that it can think of, with everything that this kernel gives and
// with one layer alone, namespaces not being allowed. Without any layer it must get through, or the attempts prove nothing.
func TestProbe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("PRERIG_SECRET", "s3cr3t-of-the-daemon")
	// A file that the daemon was started with, as shells and supervisors leave some open, is not the renderer's.
	inherited, err := unix.Open(filepath.Join(t.TempDir(), "inherited"), unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	probe := func(t *testing.T, layer string, options render.Options) (have string, found []string) {
		t.Helper()
		files := tree.NewView(build(t, map[string]string{"app/x": "x"}), tree.Limits{})
		options.Command = []string{self, "probe", layer, listener.Addr().String(), t.TempDir()}
		response, err := pool(t, options).Render(ctx, files, request("app"))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range response.Objects {
			switch object.Kind {
			case "Have":
				have = object.Name
			case "Found":
				found = append(found, object.Name)
			default:
				t.Errorf("the renderer has something: %s %s", object.Kind, object.Name)
			}
		}
		slices.Sort(found)
		return have, found
	}
	_, control := probe(t, "none", render.Options{NoSandbox: true})
	for _, name := range []string{
		"read a file", "read its own status", "list a directory", "make a file", "run a program", "start a process", "open a TCP socket",
		"open a raw socket", "dial TCP", "listen", "signal its parent", "raise limits of its parent", "hold on to its parent",
		"make memory to run", "make a file in memory",
	} {
		if !slices.Contains(control, name) {
			t.Errorf("a renderer without any layer cannot %s: the attempt proves nothing", name)
		}
	}
	t.Run("as it is", func(t *testing.T) {
		have, found := probe(t, "all", render.Options{})
		t.Logf("beside namespaces: %s", have)
		if len(found) > 0 && strings.Contains(have, "seccomp") {
			t.Errorf("the renderer can %s", strings.Join(found, ", "))
		}
	})
	t.Run("without namespaces", func(t *testing.T) {
		have, found := probe(t, "all", render.Options{NoSandbox: true})
		if len(found) > 0 && strings.Contains(have, "seccomp") {
			t.Errorf("the renderer can %s", strings.Join(found, ", "))
		}
	})
	t.Run("seccomp alone", func(t *testing.T) {
		have, found := probe(t, "seccomp", render.Options{NoSandbox: true})
		if have != "seccomp" {
			t.Skipf("this kernel has no seccomp: %s", have)
		}
		if diff := cmp.Diff([]string(nil), found); diff != "" {
			t.Errorf("what the renderer can (-want +got):\n%s", diff)
		}
	})
	t.Run("Landlock alone", func(t *testing.T) {
		have, found := probe(t, "landlock", render.Options{NoSandbox: true})
		if have == "none" {
			t.Skip("this kernel has no Landlock")
		}
		refused := []string{
			"read a file", "read an environment", "read its own status", "list a directory", "make a file", "make a directory", "make a link",
			"run a program", "trace its parent", "read memory of its parent",
		}
		if have >= "Landlock 4" {
			// Not "listen": Go listens for MPTCP, which kernels forgot about for a while.
			refused = append(refused, "dial TCP")
		}
		if have >= "Landlock 6" {
			refused = append(refused, "signal its parent", "signal a thread of its parent")
		}
		for _, name := range refused {
			if slices.Contains(found, name) {
				t.Errorf("the renderer can %s", name)
			}
		}
	})
	t.Run("an empty root alone", func(t *testing.T) {
		have, found := probe(t, "root", render.Options{NoSandbox: true})
		if have == "none" {
			t.Skip("only root, mostly of a namespace of its own, can change its root directory")
		}
		for _, name := range []string{"read a file", "read an environment", "read its own status", "list a directory", "make a file", "make a directory", "run a program"} {
			if slices.Contains(found, name) {
				t.Errorf("the renderer can %s", name)
			}
		}
	})
}
