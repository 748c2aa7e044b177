// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// TestGolden runs the function on testdata/<case>/input.yaml, a ResourceList, and compares the bytes of standard output with
// expected.yaml and those of standard error with stderr.txt; a case with an errors.txt instead must fail with that text.
// The output of a case that succeeds is put in once more and must not change, but for its results.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			input, err := os.ReadFile(filepath.Join(dir, "input.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var out, stderr bytes.Buffer
			err = fn.Execute(t.Context(), bytes.NewReader(input), &out, &stderr)
			if err != nil && !errors.Is(err, fn.ErrResults) {
				t.Fatal(err)
			}
			text, otherText := "stderr.txt", "errors.txt"
			if err != nil {
				text, otherText = otherText, text
			}
			golden(t, filepath.Join(dir, "expected.yaml"), out.Bytes())
			golden(t, filepath.Join(dir, text), stderr.Bytes())
			golden(t, filepath.Join(dir, otherText), nil)
			if err == nil {
				checkAgain(t, out.Bytes())
			}
			checkFiles(t, dir)
		})
	}
}

// golden compares with a file, where no bytes stand for no file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if len(got) == 0 {
			_ = os.Remove(path)
		} else if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

// checkAgain sees that the function does not change its own output, whose results it adds to.
func checkAgain(t *testing.T, once []byte) {
	t.Helper()
	var twice, stderr bytes.Buffer
	if err := fn.Execute(t.Context(), bytes.NewReader(once), &twice, &stderr); err != nil {
		t.Fatalf("the second run failed: %v\n%s", err, stderr.String())
	}
	if diff := cmp.Diff(string(withoutResults(once)), string(withoutResults(twice.Bytes()))); diff != "" {
		t.Errorf("the second run changed the first one's output:\n%s", diff)
	}
}

// withoutResults cuts a list in block style before its results.
func withoutResults(list []byte) []byte {
	if i := bytes.Index(list, []byte("\nresults:")); i >= 0 {
		return list[:i+1]
	}
	return list
}

// checkFiles sees that no file is left over from what the case was before.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"input.yaml", "expected.yaml", "stderr.txt", "errors.txt"}, e.Name()) {
			t.Errorf("%s is not a file of a case", filepath.Join(dir, e.Name()))
		}
	}
}
