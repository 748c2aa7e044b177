// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// TestAFileOfManyDocumentsIsOneBrokenFile: a document of a few bytes is an entry of hundreds, and each that is wrong is
// read again below as many empty lines as are in front of it.
func TestAFileOfManyDocumentsIsOneBrokenFile(t *testing.T) {
	const one = "kind: RenderPipeline\n---\n"
	entries := Parse("a.yaml", []byte(strings.Repeat(one, maxFile/len(one))))
	if len(entries) != 1 || !entries[0].Opaque || !strings.Contains(entries[0].Err.Error(), "more than 10000 documents") {
		t.Errorf("%d entries, the first %v", len(entries), entries[0].Err)
	}
	entries = Parse("a.yaml", []byte(strings.Repeat(one, maxDocuments-1)))
	if len(entries) != maxDocuments-1 || !strings.Contains(entries[1].Err.Error(), "line 3") {
		t.Errorf("%d entries, the second %v", len(entries), entries[1].Err)
	}
}

// TestACommitOfManyDocumentsIsRefused: the sum of all files is bounded, too.
func TestACommitOfManyDocumentsIsRefused(t *testing.T) {
	builder := tree.NewBuilder(tree.Limits{})
	if err := builder.Add("last.yaml", tree.File, []byte("a: b\n---\nc: d\n")); err != nil {
		t.Fatal(err)
	}
	files := builder.Build()
	for before, want := range map[int]bool{0: true, maxRead - 2: true, maxRead - 1: false} {
		r := &treeReader{tree: files, view: tree.NewView(files, tree.Limits{}), out: make([]Entry, before)}
		if err := r.readDirectory("."); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "number of documents") {
			t.Errorf("after %d documents: %v", before, err)
		}
	}
}
