// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package statetest makes directories for the queues and daemons of tests.
package statetest

import (
	"os"
	"testing"
	"time"
)

// Dir returns an empty directory that is removed at the end of the test, after the cleanups that are registered later. Unlike
// t.TempDir it outlives a file that is written meanwhile: an embedded NATS server waits a tenth of a second for the goroutines that
// write the state of its consumers (waitOnFlusher in server/filestore.go of nats-server 2.15.2), and on a busy machine one can still
// write after the server has shut down.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prerig-state")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	return dir
}

func removeAll(t testing.TB, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := os.RemoveAll(dir)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("removing a state directory: %v", err)
			return
		}
	}
}
