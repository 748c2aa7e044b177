// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/internal/cputime"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src   string
		docs  []string
		lines []int
	}{
		"one":                  {"a: b\n", []string{"a: b\n"}, []int{1}},
		"two":                  {"a: b\n---\nc: d", []string{"a: b\n", "---\nc: d"}, []int{1, 4 - 1}},
		"comment on the start": {"--- # x\na: b\n--- {c: d}\n", []string{"--- # x\na: b\n", "--- {c: d}\n"}, []int{2, 3}},
		"header comments":      {"# licence\n\n---\na: b\n", []string{"# licence\n\n---\na: b\n"}, []int{4}},
		"empty documents":      {"---\n---\n# c\n---\na: b\n", []string{"---\n", "---\n# c\n", "---\na: b\n"}, []int{1, 2, 5}},
		"document end":         {"a: b\n...\n# c\n---\nd: e\n", []string{"a: b\n...\n", "# c\n---\nd: e\n"}, []int{1, 5}},
		"end at the end":       {"a: b\n...\n", []string{"a: b\n...\n"}, []int{1}},
		"directives":           {"%YAML 1.1\n---\na: b\n...\n%YAML 1.1\n---\nc: d\n", []string{"%YAML 1.1\n---\na: b\n...\n", "%YAML 1.1\n---\nc: d\n"}, []int{3, 7}},
		"crlf":                 {"a: b\r\n---\r\nc: d\r\n", []string{"a: b\r\n", "---\r\nc: d\r\n"}, []int{1, 3}},
		"bom":                  {"\ufeff---\na: b\n---\nc: d\n", []string{"\ufeff---\na: b\n", "---\nc: d\n"}, []int{2, 4}},
		"in a block scalar":    {"a: |\n  ---\n  x\n---\nb: c\n", []string{"a: |\n  ---\n  x\n", "---\nb: c\n"}, []int{1, 5}},
		"in quotes":            {"a: \"x\n --- y\"\n", []string{"a: \"x\n --- y\"\n"}, []int{1}},
		"not a marker":         {"---a: b\n----: c\n", []string{"---a: b\n----: c\n"}, []int{1}},
		"json":                 {"{\n \"a\": 1\n}\n", []string{"{\n \"a\": 1\n}\n"}, []int{1}},
		"nothing":              {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Parse("f.yaml", []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			var docs []string
			var lines []int
			for i, d := range f.Docs {
				docs = append(docs, string(d.Raw()))
				lines = append(lines, d.Line())
				if d.Index() != i || d.Path() != "f.yaml" {
					t.Error(d.Index(), d.Path())
				}
			}
			if diff := cmp.Diff(tt.docs, docs); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Error(diff)
			}
			if got := string(f.Bytes()); got != tt.src {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRefusedInput(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"a: b\n\x00":                           "f.yaml:2: found the byte 0x00",
		"a: \xff\n":                            "f.yaml:1: found the byte 0xff, which is not UTF-8",
		"a: \x1b[0m":                           "the byte 0x1b",
		"{\"a\":1}\n{\"b\":2}":                 "f.yaml:2: found a second JSON value",
		"a: b\n---\n# c\n{\"a\":1}\n{\"b\":2}": "f.yaml:5: found a second JSON value",
		"--- {\"a\":1}\n{\"b\":2}":             "f.yaml:2: found a second JSON value",
	} {
		if _, err := Parse("f.yaml", []byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", src, err, want)
		}
	}
}

func TestRefusedDocuments(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10))
	}
	merges := "a: &a {k0: 1}\n"
	for i := range 30 {
		merges += fmt.Sprintf("m%d: &m%d\n  <<: [*a, *a]\n  x: [*%s, *%s]\n", i, i, map[bool]string{true: "a", false: fmt.Sprintf("m%d", i-1)}[i == 0], map[bool]string{true: "a", false: fmt.Sprintf("m%d", i-1)}[i == 0])
	}
	for name, tt := range map[string]struct{ src, want string }{
		"duplicate key":     {"# c\na: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", `decoding f.yaml:6: found the key "c" twice in the same mapping`},
		"duplicate in flow": {"{a: 1, a: 2}", `f.yaml:1: found the key "a" twice`},
		"same text":         {"1: a\n\"1\": b\n", `f.yaml:2: found the key "1" twice`},
		"alias bomb":        {bomb, "f.yaml:1: the aliases stand for more than 100000 values"},
		"merge bomb":        {merges, "the aliases stand for more than"},
		"recursive anchor":  {"a: &a\n  b: *a\n", "f.yaml:2: the value of anchor &a contains itself"},
		"recursive in flow": {"a: &x 1\nb: &x [*x]\n", "f.yaml:2: the value of anchor &x contains itself"},
		"recursive deeper":  {"a: &x 1\nb: [&x {c: [*x]}]\n", "f.yaml:2: the value of anchor &x contains itself"},
		"deep flow":         {"a: " + strings.Repeat("[", 100000), "f.yaml:1: the nesting is deeper than 1000 levels"},
		"deep block":        {strings.Repeat("- ", 100000) + "x", "the nesting is deeper than 1000 levels"},
		"deep json":         {strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "the nesting is deeper than 1000 levels"},
		"infinity":          {"a: .inf\n", "f.yaml:1: .inf is a number that JSON does not have"},
		"unknown anchor":    {"a: 1\nb: *x\n", "f.yaml:2: found the alias *x without its anchor"},
		"bad indentation":   {"a:\n    b: 1\n  c: 2\n", "f.yaml:3:"},
		"tab":               {"a:\n\tb: 1\n", "f.yaml:2: found a tab"},
		"open quote":        {"a: \"b\nc: d\n", "f.yaml:1: the double quote is not closed"},
		"list":              {"- a\n", "f.yaml:1: expected a mapping and found a list"},
		"text":              {"\nhello\n", "f.yaml:2: expected a mapping and found text"},
		"large":             {"a: " + strings.Repeat("x", 50<<20), "and 33554432 are the most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := cputime.Begin(t)
			f, err := Parse("f.yaml", []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			d := f.Docs[0]
			_, err = d.Object()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := d.With(map[string]any{"a": "b"}); err == nil && name != "list" && name != "text" {
				t.Error("With edits a document that cannot be read")
			}
			d.Peek()
			d.Locate("a", 0)
			if _, _, err := d.Items(); err != nil && !strings.Contains(err.Error(), "f.yaml") {
				t.Error(err)
			}
			end(time.Minute)
		})
	}
}

func TestDeepButAllowed(t *testing.T) {
	t.Parallel()
	src := strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1)
	if _, err := Decode([]byte(src)); err != nil {
		t.Error(err)
	}
}

func TestLargeListIsSplit(t *testing.T) {
	t.Parallel()
	item := "- kind: ConfigMap\n  data:\n    a: |\n" + strings.Repeat("      "+strings.Repeat("x", 100)+"\n", 10000)
	src := []byte("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n" + strings.Repeat(item, 40))
	rl, err := ParseResourceList(src)
	if err != nil || len(rl.Items) != 40 {
		t.Fatal(err)
	}
	if !bytes.Equal(rl.Bytes(rl.Items, nil), src) {
		t.Error("the bytes differ")
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	f, err := Parse("f", []byte("x: y\n---\n# c\nspec:\n  a: &a\n    k: 1\n  list:\n  - name: b\n  -   name: c\n  al: *a\n  m: {q: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := f.Docs[1]
	for _, tt := range []struct {
		path      []any
		line, col int
	}{
		{nil, 4, 1}, {[]any{"spec"}, 4, 1}, {[]any{"spec", "a", "k"}, 6, 5}, {[]any{"spec", "list", 1}, 9, 7}, {[]any{"spec", "list", 1, "name"}, 9, 7},
		{[]any{"spec", "al", "k"}, 6, 5}, {[]any{"spec", "m", "q", 1}, 11, 14}, {[]any{"nope"}, 0, 0}, {[]any{"spec", "list", 7}, 0, 0},
	} {
		line, col, ok := d.Locate(tt.path...)
		if line != tt.line || col != tt.col || ok != (tt.line > 0) {
			t.Errorf("%v: got %d:%d %v", tt.path, line, col, ok)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	const text = "# c\nspec:\n  a: &x {k: 1}\n  \"b\": 'y\n\n    z'\n  &n c : *x\n1:\n  <<: *x\nflow: {a: b}\n"
	f, err := Parse("f", []byte("x: y\n---\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]Entry{
		"": {{"spec", 3, 1}, {"1", 9, 1}, {"flow", 11, 1}}, "spec": {{"a", 4, 3}, {"b", 5, 3}, {"c", 8, 3}},
		"spec a": nil, "spec c": nil, "1": nil, "1 k": nil, "flow": nil, "nope": nil, "spec b": nil,
	} {
		got, ok := f.Docs[1].Entries(strings.Fields(path)...)
		if !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%q: got %v %v", path, got, ok)
		}
	}
	for _, text := range []string{"{a: b}\n", "- a\n", "? a\n: b\n", "<<: {a: b}\n", "~: a\n", "a: 'b\n", "a"} {
		if got, ok := one(t, text).Entries(); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestWithFallback(t *testing.T) {
	t.Parallel()
	d := one(t, "? a\n: b\nc: d\n")
	obj, err := d.Object()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := d.With(obj); err != nil || same != d {
		t.Error(err)
	}
	obj["c"] = "e"
	if _, err := d.With(obj); err == nil || !strings.Contains(err.Error(), "editing in.yaml:1: found a complex mapping key") {
		t.Error(err)
	}
}

func TestMarshal(t *testing.T) {
	t.Parallel()
	got := string(Marshal(map[string]any{
		"kind": "Pod", "apiVersion": "v1", "spec": map[string]any{"containers": []any{map[string]any{"image": "i", "name": "n", "args": []string{}}}},
		"metadata": map[string]string{"name": "x"}, "data": "a\nb", "n": 3, "f": 1.0, "empty": map[string]any{},
	}))
	want := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n  - name: \"n\"\n    args: []\n    image: i\ndata: |-\n  a\n  b\nempty: {}\nf: 1\n\"n\": 3\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	rl, err := ParseResourceList(benchList(20))
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for _, it := range rl.Items {
				label(t, it)
				it.Peek()
			}
		})
	}
}

func TestFillEmptyDocument(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"# c":        "# c\nkind: A\n",
		"---\n# c\n": "---\n# c\nkind: A\n",
		"--- # c":    "--- # c\nkind: A\n",
		"\n":         "\nkind: A\n",
	} {
		f, err := Parse("", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.Docs[0].With(map[string]any{"kind": "A"})
		if err != nil {
			t.Errorf("%q: %v", src, err)
		} else if string(d.Raw()) != want {
			t.Errorf("%q: got %q", src, d.Raw())
		}
	}
}

// TestLongLines has lists where looking for the start of a line from every element would take minutes.
func TestLongLines(t *testing.T) {
	t.Parallel()
	item := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("v", 500) + `"}}`
	n := 15000
	src := `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[` + strings.Repeat(item+",", n-1) + item + "]}"
	end := cputime.Begin(t)
	rl, err := ParseResourceList([]byte(src))
	if err != nil || len(rl.Items) != n {
		t.Fatal(err)
	}
	docs := append([]*Document{}, rl.Items...)
	for i := range docs {
		if m, ok := docs[i].Peek(); !ok || m.Name != "a" {
			t.Fatal(m, ok)
		}
		if i%10 == 0 {
			docs[i] = label(t, docs[i])
		}
	}
	out := rl.Bytes(docs, oneResult)
	if got, want := strings.Count(string(out), `"labels":{"a":"b"}`), n/10; got != want {
		t.Errorf("%d labels, want %d", got, want)
	}
	end(time.Minute)
}

// TestManyOuterAliases has a list whose elements all refer to an anchor in the first.
func TestManyOuterAliases(t *testing.T) {
	t.Parallel()
	src := "kind: List\nitems:\n- x: &a {b: c}\n" + strings.Repeat("- y: *a\n  z: 1\n", 20000)
	d := one(t, src)
	items, ok, err := d.Items()
	if err != nil || !ok {
		t.Fatal(err)
	}
	end := cputime.Begin(t)
	for _, it := range items {
		if _, err := it.Object(); err != nil {
			t.Fatal(err)
		}
	}
	end(time.Minute)
	items[5] = label(t, items[5])
	next, err := d.WithItems(items)
	if err != nil || !strings.Contains(string(next.Raw()), "- y: *a\n  z: 1\n  labels:\n    a: b\n- y") {
		t.Error(err)
	}
}

// TestUnclosedBracketIsNamed: the error is found lines below the bracket that is not closed, and names it.
func TestUnclosedBracketIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a: {b: c\nd:\n  e: []\n":                   `decoding x.yaml:3: expected a comma or "}" and found ":"; is the "{" of line 2 closed?`,
		"a:\n  b: [\n  - name: pay\n":               `decoding x.yaml:4: did not expect "- name: pay" here; is the "[" of line 3 closed?`,
		"a: {b: [c, {d: e}, {f: g\nh: [i]}]}\nk: ]": `is the "{" of line 2 closed?`,
		"a: {b: c} d\n":                             `did not expect`,
	} {
		file, err := Parse("x.yaml", []byte("# a comment\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Docs[0].Object()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
