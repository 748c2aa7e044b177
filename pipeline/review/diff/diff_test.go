// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/sergi/go-diff/diffmatchpatch"
)

func TestUnified(t *testing.T) {
	t.Parallel()
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for name, tc := range map[string]struct {
		chunks []Chunk
		want   string
	}{
		"equal": {[]Chunk{{[]byte(ten), []byte(ten)}}, ""},
		"insert in the middle": {
			[]Chunk{{[]byte(ten), []byte(strings.Replace(ten, "5\n", "5\nx\n", 1))}},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+x\n 6\n 7\n 8\n",
		},
		"from nothing": {[]Chunk{{nil, []byte("a\nb\n")}}, "--- a/f.yaml\n+++ b/f.yaml\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"to nothing":   {[]Chunk{{[]byte("a\n"), nil}}, "--- a/f.yaml\n+++ b/f.yaml\n@@ -1 +0,0 @@\n-a\n"},
		"no line end at the end of the old": {
			[]Chunk{{[]byte("a\nb"), []byte("a\nb\nc\n")}},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n",
		},
		"changes apart are hunks apart": {
			[]Chunk{{[]byte(ten), []byte("0\n" + ten + "11\n")}},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -8,3 +9,4 @@\n 8\n 9\n 10\n+11\n",
		},
		"an unchanged chunk between changed ones": {
			[]Chunk{
				{[]byte("a\n"), []byte("b\n")},
				{[]byte(strings.Repeat(ten, 5)), []byte(strings.Repeat(ten, 5))},
				{[]byte("c\n"), []byte("d\n")},
			},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -1,4 +1,4 @@\n-a\n+b\n 1\n 2\n 3\n@@ -49,4 +49,4 @@\n 8\n 9\n 10\n-c\n+d\n",
		},
		"a chunk without a line end takes the next one": {
			[]Chunk{{[]byte("a"), []byte("a")}, {[]byte("b\n"), []byte("c\n")}},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -1 +1 @@\n-ab\n+ac\n",
		},
		"an added item begins at its dash": {
			[]Chunk{{
				[]byte("l:\n- name: a\n  image: i\n"),
				[]byte("l:\n- name: b\n  image: i\n- name: a\n  image: i\n"),
			}},
			"--- a/f.yaml\n+++ b/f.yaml\n@@ -1,3 +1,5 @@\n l:\n+- name: b\n+  image: i\n - name: a\n   image: i\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tc.want, string(Unified("./f.yaml", tc.chunks))); d != "" {
				t.Errorf("diff (-want +got):\n%s", d)
			}
		})
	}
}

func TestUnifiedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/abs/f.yaml":     "--- a/abs/f.yaml\n",
		"dir//f.yaml":     "--- a/dir/f.yaml\n",
		"with blank.yaml": "--- a/with blank.yaml\t\n",
		"line\nend.yaml":  "--- a/\"line\\nend.yaml\"\n",
	} {
		if got := string(Unified(name, []Chunk{{nil, []byte("a\n")}})); !strings.HasPrefix(got, want) {
			t.Errorf("Unified(%q) begins %q, want %q", name, got[:len(want)], want)
		}
	}
}

// TestApplies has git apply make the new bytes of the old ones, for random texts with few different lines.
func TestApplies(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed, so no diff can be applied")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() []byte {
		var b bytes.Buffer
		for range rng.IntN(60) {
			fmt.Fprintf(&b, "%d\n", rng.IntN(12))
		}
		if rng.IntN(4) == 0 {
			b.WriteString("end")
		}
		return b.Bytes()
	}
	for i := range 60 {
		dir := t.TempDir()
		old, same, next := bytes.TrimSuffix(text(), []byte("end")), bytes.TrimSuffix(text(), []byte("end")), text()
		last := text()
		chunks := []Chunk{{old, bytes.TrimSuffix(text(), []byte("end"))}, {same, same}, {next, last}}
		var before, after []byte
		for _, c := range chunks {
			before, after = append(before, c.Old...), append(after, c.New...)
		}
		if len(before) == 0 || len(after) == 0 {
			continue // git names a missing file in another way
		}
		patch := Unified("f", chunks)
		if len(patch) == 0 {
			continue
		}
		must(t, os.WriteFile(filepath.Join(dir, "f"), before, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "p"), patch, 0o600))
		cmd := exec.CommandContext(t.Context(), git, "apply", "--whitespace=nowarn", "p")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("case %d: git apply: %v\n%s\n%s", i, err, out, patch)
		}
		got, err := os.ReadFile(filepath.Join(dir, "f"))
		must(t, err)
		if d := cmp.Diff(string(after), string(got)); d != "" {
			t.Fatalf("case %d (-want +got):\n%s", i, d)
		}
	}
}

// TestManyLines has more different lines than the first plane of characters.
func TestManyLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for i := range 70000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	got := Unified("f", []Chunk{{b.Bytes(), append([]byte("x\n"), b.Bytes()...)}})
	if want := "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+x\n line 0\n line 1\n line 2\n"; string(got) != want {
		t.Errorf("got %d bytes:\n%.200s", len(got), got)
	}
}

// TestTooManyDifferences has more of them than the shortest script is looked for with. It must come to an end all the same.
func TestTooManyDifferences(t *testing.T) {
	t.Parallel()
	lines := func(side string, n, equalEach int) []byte {
		var b bytes.Buffer
		b.WriteString("first\n")
		for i := range n {
			if equalEach > 0 && i%equalEach == 0 {
				fmt.Fprintf(&b, "line %d\n", i)
			} else {
				fmt.Fprintf(&b, "line %d of %s\n", i, side)
			}
		}
		b.WriteString("last\n")
		return b.Bytes()
	}
	same := bytes.Repeat([]byte("a\n"), 200_000)
	for name, tc := range map[string]struct {
		chunk       Chunk
		edits, kept int
	}{
		"all differ":           {Chunk{lines("old", 200_000, 0), lines("new", 200_000, 0)}, 4, 2},
		"every other differs":  {Chunk{lines("old", 200_000, 2), lines("new", 200_000, 2)}, 4, 3},
		"few differ of many":   {Chunk{lines("old", 20_000, 1), bytes.ReplaceAll(lines("old", 20_000, 1), []byte("7\n"), []byte("7 x\n"))}, 0, 18_002},
		"long repetitions":     {Chunk{slices.Concat([]byte("b\n"), same, []byte("c\n")), slices.Concat(same[:len(same)/2], []byte("d\n"))}, 0, 0},
		"all lines of a table": {Chunk{lines("old", 5_000, 0), lines("new", 5_000, 0)}, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, now := splitLines(tc.chunk.Old), splitLines(tc.chunk.New)
			edits, kept := editScript(old, now), 0
			for _, e := range edits {
				if e.kind == equal {
					kept += len(e.lines)
				}
				if e.kind != add {
					old = checkBegins(t, old, e.lines)
				}
				if e.kind != remove {
					now = checkBegins(t, now, e.lines)
				}
			}
			if len(old)+len(now) > 0 {
				t.Errorf("%d old and %d new lines are left", len(old), len(now))
			}
			if tc.edits > 0 && len(edits) != tc.edits || tc.kept > 0 && kept != tc.kept {
				t.Errorf("%d edits keep %d lines", len(edits), kept)
			}
		})
	}
}

// checkBegins returns what follows the lines that some begin with.
func checkBegins(t *testing.T, all, with [][]byte) [][]byte {
	t.Helper()
	for i, line := range with {
		if i >= len(all) || !bytes.Equal(all[i], line) {
			t.Fatalf("line %d of an edit, %q, is not there", i, line)
		}
	}
	return all[len(with):]
}

// TestIsWithin compares with how long the library's scripts of random lines are.
func TestIsWithin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		a, b := make([]rune, rng.IntN(40)), make([]rune, rng.IntN(40))
		for _, side := range [][]rune{a, b} {
			for i := range side {
				side[i] = rune(1 + rng.IntN(4))
			}
		}
		dmp, shortest := diffmatchpatch.New(), 0
		dmp.DiffTimeout = 0
		for _, d := range dmp.DiffMainRunes(a, b, false) {
			if d.Type != diffmatchpatch.DiffEqual {
				shortest += utf8.RuneCountInString(d.Text)
			}
		}
		if !isWithin(a, b, shortest) || shortest > 0 && isWithin(a, b, shortest-1) {
			t.Fatalf("%v and %v are not %d apart", a, b, shortest)
		}
	}
}

func TestColour(t *testing.T) {
	t.Parallel()
	in := "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n--- b\n+c\n"
	want := "\x1b[1m--- a/f\x1b[m\n\x1b[1m+++ b/f\x1b[m\n\x1b[36m@@ -1 +1,2 @@\x1b[m\n a\n\x1b[31m--- b\x1b[m\n\x1b[32m+c\x1b[m\n"
	if d := cmp.Diff(want, string(Colour([]byte(in)))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkUnified(b *testing.B) {
	var chunks []Chunk
	for i := range 5000 {
		same := fmt.Appendf(nil, "---\nkind: Service\nname: s%d\nports:\n- a\n- b\n", i)
		old := fmt.Appendf(nil, "---\nkind: Deployment\nname: d%d\nspec:\n  containers:\n  - name: app\n", i)
		chunks = append(chunks, Chunk{same, same}, Chunk{old, append(bytes.Clone(old), bytes.Repeat([]byte("  - injected\n"), 250)...)})
	}
	for b.Loop() {
		Unified("f", chunks)
	}
}
