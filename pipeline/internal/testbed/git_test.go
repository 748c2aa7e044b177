// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAPushThatIsCutOffLeavesNoGitBehind ends a connection in the middle of the body of a push.
func TestAPushThatIsCutOffLeavesNoGitBehind(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("LEFT OUT: no /proc says which processes there are")
	}
	root := t.TempDir()
	g, err := ServeGit(root)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Repository(context.Background(), "apps"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /apps.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-git-receive-pack-request\r\nContent-Length: 20000\r\n\r\n0094")
		time.Sleep(300 * time.Millisecond) // so that the server is at it
		c.Close()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		left := processesFor(root)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes of git that are still there: %v", left)
		}
	}
}

// processesFor returns the processes that serve the repositories below a directory.
func processesFor(root string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "GIT_PROJECT_ROOT="+root+"\x00") {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}
