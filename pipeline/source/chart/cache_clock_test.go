// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestArchivesFromTheFutureGoFirst: after the clock was set back they would stay, and what is new would be removed at
// once.
func TestArchivesFromTheFutureGoFirst(t *testing.T) {
	c := archiveCache{dir: t.TempDir(), size: 250}
	content := make([]byte, 100)
	for _, key := range []string{"a", "b"} {
		c.storeArchive(key, content)
		at := time.Now().Add(365 * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(c.dir, key+cachedSuffix), at, at); err != nil {
			t.Fatal(err)
		}
	}
	abandoned := filepath.Join(c.dir, "new-1")
	if err := os.WriteFile(abandoned, content, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(2 * abandonedAfter)
	if err := os.Chtimes(abandoned, at, at); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"c", "d"} {
		c.storeArchive(key, content)
		if _, ok := c.getVerifiedArchive(key, DigestOf(content)); !ok {
			t.Errorf("what was just put is gone: %s", key)
		}
	}
	if _, err := os.Stat(abandoned); err == nil {
		t.Error("a file that somebody began is kept")
	}
}
