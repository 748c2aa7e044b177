// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// TestGolden edits testdata/with/<case>/input.yaml by patch.yaml, an RFC 7386 merge patch, and compares the bytes with
// expected.yaml.
func TestGolden(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/with/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			goldenCase(t, dir)
		})
	}
}

func goldenCase(t *testing.T, dir string) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !(*update && name == "expected.yaml") {
			t.Fatal(err)
		}
		return data
	}
	f, err := Parse("input.yaml", read("input.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := Decode(read("patch.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range f.Docs {
		if d.Empty() && len(f.Docs) > 1 {
			continue
		}
		obj, err := d.Object()
		if err != nil {
			t.Fatal(err)
		}
		want := mergePatch(obj, patch).(map[string]any)
		if f.Docs[i], err = d.With(want); err != nil {
			t.Fatal(err)
		}
		again, err := f.Docs[i].With(want)
		if err != nil || again != f.Docs[i] {
			t.Errorf("the second edit is not idle: %v", err)
		}
		break
	}
	got := f.Bytes()
	if *update {
		if err := os.WriteFile(filepath.Join(dir, "expected.yaml"), got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read("expected.yaml")), string(got)); diff != "" {
		t.Error(diff)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("expected input.yaml, patch.yaml and expected.yaml alone: %v %v", files, err)
	}
}

func mergePatch(v, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if m, ok := v.(map[string]any); ok {
		out = copyMap(m)
	}
	for k, e := range p {
		if e == nil {
			delete(out, k)
		} else {
			out[k] = mergePatch(out[k], e)
		}
	}
	return out
}
