// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
)

// probe stands for a renderer that was taken over: it tries what it must not be able to do, and says so as objects.
func probe() {
	render.Enclose()
	var found []string
	note := func(what string, err error) {
		if err == nil {
			found = append(found, what)
		}
	}
	for _, name := range []string{"/etc/passwd", "/proc/1/environ", "/proc/self/environ"} {
		_, err := os.ReadFile(name)
		note("read "+name, err)
	}
	note("write a file", os.WriteFile("/tmp/prerig-probe", []byte("x"), 0o600))
	if len(os.Environ()) > 0 {
		found = append(found, "environment "+strings.Join(os.Environ(), " "))
	}
	for _, at := range []string{"tcp", "udp"} {
		conn, err := net.Dial(at, "192.0.2.1:9")
		if err == nil {
			conn.Close()
		}
		note("dial "+at, err)
	}
	addresses, err := net.InterfaceAddrs()
	if err == nil && len(addresses) > 0 {
		found = append(found, fmt.Sprint("addresses ", addresses))
	}
	_, err = exec.Command("/bin/sh", "-c", "true").CombinedOutput()
	note("run a program", err)
	for _, what := range found {
		head, _ := json.Marshal(render.Object{APIVersion: "v1", Kind: "Found", Name: what})
		send('O', append(head, '\n'))
	}
	send('D', []byte("{}"))
	os.Exit(0)
}

func send(kind byte, content []byte) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	_, _ = os.Stdout.Write(append(head, content...))
}
