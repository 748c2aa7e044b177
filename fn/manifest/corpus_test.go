// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/prerig/prerig/internal/corpustest"
)

// TestCorpus reads every manifest of the conformance corpus and compares with Kubernetes' own reader.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := corpustest.Dir(t)
	files, docs := 0, 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json", ".injected":
		default:
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := Parse(path, src)
		if err != nil {
			t.Error(err)
			return nil
		}
		files++
		if string(f.Bytes()) != string(src) {
			t.Errorf("%s: the bytes differ", path)
		}
		for _, d := range f.Docs {
			docs++
			checkDecode(t, d.Raw())
			checkPeek(t, d)
			checkItems(t, d)
			if obj, err := d.Object(); err == nil && obj != nil {
				if same, err := d.With(obj); err != nil || same != d {
					t.Errorf("%s: With of the same value: %v", d, err)
				}
				if _, ok := d.Peek(); !ok && obj["kind"] != nil {
					t.Logf("%s: not peeked", d)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d documents", files, docs)
}
