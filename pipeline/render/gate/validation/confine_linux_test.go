// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/prerig/prerig/internal/testprograms"
)

// probe is a program that was taken over: its answers name what it reached.
func probe(file, address, self string) {
	fmt.Printf("{\"protocol\":%d}\n", protocol)
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	var reached []Problem
	try := func(what string, err error) {
		if err == nil {
			reached = append(reached, Problem{Message: what})
		}
	}
	_, err := os.ReadFile(file)
	try("reads a file", err)
	_, err = os.ReadDir(filepath.Dir(file))
	try("lists a directory", err)
	try("writes a file", os.WriteFile(file+".new", nil, 0o600))
	connection, err := net.Dial("tcp", address)
	try("connects", err)
	if connection != nil {
		connection.Close()
	}
	_, err = net.Listen("tcp", "127.0.0.1:0")
	try("listens", err)
	try("runs a program", exec.Command("/bin/true").Run())
	try("runs itself", unix.Exec(self, []string{self, "-test.run=^$"}, nil))
	try("kills its parent", unix.Kill(os.Getppid(), 0))
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	try("opens a socket", err)
	_, err = unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	try("has memory that is shared", err)
	text, _ := json.Marshal(Answer{Known: true, Problems: reached})
	fmt.Println(string(text))
}

// TestTheProgramIsConfined: what validates objects that are not trusted reaches neither files nor the network, as a renderer does not.
// Without being confined it does, or the attempts prove nothing.
func TestTheProgramIsConfined(t *testing.T) {
	renderer, err := testprograms.RendererPath()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for confine, want := range map[string]bool{"": true, renderer: false} {
		program := Program{Command: []string{self, "probe", file, listener.Addr().String(), self + ".none"}, Confine: confine}
		answers, err := program.Ask(t.Context(), []Request{{Operation: Create, Object: map[string]any{}}})
		if err != nil {
			t.Fatal(err)
		}
		var reached []string
		for _, one := range answers[0].Problems {
			reached = append(reached, one.Message)
		}
		if (len(reached) > 5) != want || !want && len(reached) > 0 || answers[0].Error != "" {
			t.Errorf("confined by %q it reaches: %s; %s", confine, strings.Join(reached, ", "), answers[0].Error)
		}
	}
}

// TestTheConfinedProgramValidates has Kubernetes' own validation answer about a valid and an invalid object.
func TestTheConfinedProgramValidates(t *testing.T) {
	renderer, err := testprograms.RendererPath()
	if err != nil {
		t.Fatal(err)
	}
	validator, err := testprograms.ValidatorPath()
	if err != nil {
		t.Fatal(err)
	}
	object := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}}
	}
	program := Program{Command: []string{validator}, Confine: renderer}
	answers, err := program.Ask(t.Context(), []Request{{Operation: Create, Object: object("a")}, {Operation: Create, Object: object("A_")},
		{Operation: Apply, Object: object("a")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 0} {
		if a := answers[i]; !a.Known || a.Error != "" || min(len(a.Problems), 1) != want {
			t.Errorf("object %d: %+v", i, a)
		}
	}
}
