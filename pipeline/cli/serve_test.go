// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// lockedBuffer is written to by a daemon while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A hangup does not end the daemon: it looks for changed pipelines, long before their interval.
func TestHangupReloads(t *testing.T) {
	server := gittest.New(t)
	apps, pipelines := server.Repository(t, "apps"), server.Repository(t, "pipelines")
	apps.Commit("first", map[string]string{"apps/one/app.yaml": application("one", "app:1"), "apps/two/app.yaml": application("two", "app:1")})
	pipeline := func(name string) string {
		return fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s, namespace: team}\nspec:\n"+
			"  source: {git: {url: %s, ref: {branch: main}}}\n  build: {path: apps/%[1]s}\n  policies: [{builtIn: istio}]\n  publish: [{git: {branch: rendered}}]\n", name, apps.URL)
	}
	pipelines.Commit("first", map[string]string{"one.yaml": pipeline("one")})
	ctx, cancel := context.WithCancel(t.Context())
	log, ended := &lockedBuffer{}, make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"serve", "--pipelines-git-url", pipelines.URL, "--pipelines-git-interval", "1h", "--state", t.TempDir(),
			"--listen", "127.0.0.1:0", "--admin-listen", ""}, Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: log}, "test")
	}()
	rendered := func(name string) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if strings.Contains(apps.Git("for-each-ref"), "refs/heads/rendered") &&
				strings.Contains(apps.Git("ls-tree", "-r", "--name-only", "rendered"), "deployment-"+name+".yaml") {
				return
			}
			select {
			case code := <-ended:
				t.Fatalf("the daemon ended with %d\n%s", code, log)
			default:
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is not rendered\n%s", name, log)
			}
		}
	}
	rendered("one")
	pipelines.Commit("second", map[string]string{"two.yaml": pipeline("two")})
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rendered("two")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("the daemon ended with %d\n%s", code, log)
	}
}
