// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

const megabyte = 1 << 20

// large fills a tree with files of a megabyte each, all different.
func large(b *tree.Builder, files int) error {
	for i := range files {
		if err := b.Add(fmt.Sprintf("dir/f%d", i), tree.File, bytes.Repeat([]byte{byte(i)}, megabyte)); err != nil {
			return err
		}
	}
	return nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLargeContentsAreNotHeldInMemory(t *testing.T) {
	const files = 64
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	b, inMemory, before := tree.NewBuilder(tree.Limits{}), tree.NewBuilder(tree.Limits{}), heap()
	b.Spill(dir)
	if err := large(b, files); err != nil {
		t.Fatal(err)
	}
	built := b.Build()
	if grown := heap() - before; grown > 12*megabyte {
		t.Errorf("%d MB of contents take %d bytes of memory", files, grown)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the directory holds %v, %v", names, err)
	}
	view := tree.NewView(built, tree.Limits{})
	for i := range files {
		if content, err := view.Read(fmt.Sprintf("dir/f%d", i)); err != nil || !bytes.Equal(content, bytes.Repeat([]byte{byte(i)}, megabyte)) {
			t.Errorf("f%d: %d bytes, %v", i, len(content), err)
		}
	}
	if err := large(inMemory, files); err != nil {
		t.Fatal(err)
	}
	if other := inMemory.Build(); other.ID() != built.ID() {
		t.Errorf("the tree is %s, in memory it would be %s", built.ID(), other.ID())
	}
}

func TestNoPlaceForLargeContents(t *testing.T) {
	b := tree.NewBuilder(tree.Limits{})
	b.Spill("/dev/null/nothing")
	if err := large(b, 8); err != nil {
		t.Fatalf("8 MB need no file: %v", err)
	}
	if err := large(b, 9); err == nil || !strings.Contains(err.Error(), "large contents") {
		t.Errorf("got %v", err)
	}
}
