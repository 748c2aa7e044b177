// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/process/filelock"
)

func TestOneHasTheLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		t.Helper()
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	first, second := open(), open()
	if have, err := filelock.Try(first); !have || err != nil {
		t.Fatalf("nobody else has it: %v, %v", have, err)
	}
	if have, err := filelock.Try(second); have || err != nil {
		t.Fatalf("the first has it: %v, %v", have, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if have, err := filelock.Try(second); !have || err != nil {
		t.Fatalf("the first has left it: %v, %v", have, err)
	}
	if _, err := filelock.Try(first); err == nil {
		t.Error("a closed file was locked")
	}
}
