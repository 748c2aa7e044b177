// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// kubernetes decodes as Kubernetes tools do.
func kubernetes(src []byte) (any, error) {
	js, err := yaml.YAMLToJSONStrict(src)
	if err != nil && strings.Contains(string(src), "<<") && strings.Contains(err.Error(), "already set") {
		js, err = yaml.YAMLToJSON(src)
	}
	if err != nil {
		return nil, err
	}
	var v any
	err = kjson.UnmarshalCaseSensitivePreserveInts(js, &v)
	return v, err
}

// checkDecode compares Decode with the reference.
func checkDecode(t *testing.T, src []byte) {
	t.Helper()
	got, err := Decode(src)
	want, werr := kubernetes(src)
	if err == nil && werr == nil {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("decoding differs (-kubernetes +ours):\n%s\n%q", diff, src)
		}
		return
	}
	// JSON's own escapes are read wherever they stand: kubectl reads JSON as JSON, the reference reads it as YAML.
	// What says that it is YAML 1.2 is refused by Kubernetes for saying so.
	if err == nil && strings.Contains(werr.Error(), "found incompatible YAML document") && strings.Contains(string(src), "%YAML") {
		return
	}
	if err == nil && !strings.Contains(string(src), `\u`) && !strings.Contains(string(src), `\/`) && !(got == nil && strings.Contains(string(src), "...")) {
		t.Errorf("Kubernetes refuses what we read as %#v: %v\n%q", got, werr, src)
	}
	if err != nil && werr == nil {
		for _, known := range []string{"twice", "deeper", "aliases stand", "contains itself", "not YAML or JSON text"} {
			if strings.Contains(err.Error(), known) {
				return
			}
		}
		t.Errorf("Kubernetes reads %#v and we give: %v\n%q", want, err, src)
	}
}

func TestGeneratedDecode(t *testing.T) {
	t.Parallel()
	for seed := range int64(3000) {
		g := newGen(seed)
		v := g.mapping(4)
		src := g.text(v)
		got, err := Decode([]byte(src))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, src)
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, src)
		}
		checkDecode(t, []byte(src))
	}
}

func TestGeneratedWith(t *testing.T) {
	t.Parallel()
	for seed := range int64(5000) {
		checkWith(t, seed)
		if t.Failed() {
			return
		}
	}
}

// checkWith edits a generated document in a few steps.
func checkWith(t *testing.T, seed int64) {
	t.Helper()
	g := newGen(seed)
	src := g.text(g.mapping(4))
	f, err := Parse("", []byte(src))
	if err != nil {
		return // a control character in the open, refused
	}
	d := f.Docs[0]
	for range 4 {
		obj, err := d.Object()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d.text)
		}
		if same, err := d.With(obj); err != nil || same != d {
			t.Fatalf("seed %d: With of the same value: %v", seed, err)
		}
		want := g.mutate(obj, 3).(map[string]any)
		next, err := d.With(want)
		if err != nil {
			if _, perr := d.parseNodes(); perr != nil {
				return
			}
			t.Fatalf("seed %d: %v\n--- text\n%s\n--- want\n%s", seed, err, d.text, Marshal(want))
		}
		d = next
	}
}

func TestWithKeepsLines(t *testing.T) {
	t.Parallel()
	for seed := range int64(5000) {
		g := newGen(seed)
		m := g.mapping(4)
		m["labels"] = map[string]any{"app": "x", "on": "y"}
		m["containers"] = []any{map[string]any{"name": "a", "image": g.value(2)}, map[string]any{"name": "b"}}
		var b strings.Builder
		g.block(&b, m, 0, false)
		d := one(t, b.String())
		obj, err := d.Object()
		if err != nil {
			continue
		}
		if _, err := d.parseNodes(); err != nil {
			continue
		}
		want := copyMap(obj)
		l := copyMap(obj["labels"].(map[string]any))
		l["new"] = "yes"
		want["labels"] = l
		want["containers"] = append([]any{map[string]any{"name": "proxy", "args": []any{"a"}}}, obj["containers"].([]any)...)
		want["added"] = []any{int64(1)}
		next, err := d.With(want)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, d.text)
		}
		if lost := lostLines(d.text, next.text); lost != "" && !strings.Contains(lost, "{") && !strings.Contains(lost, "[") {
			t.Fatalf("seed %d: lost %q\n--- text\n%s\n--- next\n%s", seed, lost, d.text, next.text)
		}
	}
}

// lostLines returns a line of a that b does not have in the same order, "" when all are there.
func lostLines(a, b string) string {
	bl := strings.SplitAfter(b, "\n")
	j := 0
	for _, l := range strings.SplitAfter(a, "\n") {
		for j < len(bl) && bl[j] != l {
			j++
		}
		if j == len(bl) {
			return l
		}
		j++
	}
	return ""
}

func FuzzDecode(f *testing.F) {
	for _, s := range decodeSeeds {
		f.Add([]byte(s))
	}
	for seed := range int64(60) {
		g := newGen(seed)
		f.Add([]byte(g.text(g.mapping(3))))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkDecode(t, src) })
}

func FuzzSplit(f *testing.F) {
	for _, s := range decodeSeeds {
		f.Add([]byte(s + "\n---\n" + s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkSplit(t, src) })
}

// checkSplit compares a file's documents with its bytes, and what they are peeked at with what they decode to.
func checkSplit(t *testing.T, src []byte) {
	t.Helper()
	file, err := Parse("f", src)
	if err != nil {
		return
	}
	if got := string(file.Bytes()); got != string(src) {
		t.Errorf("got %q from %q", got, src)
	}
	for _, d := range file.Docs {
		checkPeek(t, d)
		checkItems(t, d)
	}
}

// checkPeek compares what a scan is sure of, and so what Peek reads, with what the document decodes to.
func checkPeek(t *testing.T, d *Document) {
	t.Helper()
	m, ok := d.Scan()
	if !ok {
		return
	}
	obj, err := d.Object()
	if err != nil {
		return // peeking promises nothing about the rest
	}
	var want Meta
	text := func(v any) string { s, _ := v.(string); return s }
	want.APIVersion, want.Kind = text(obj["apiVersion"]), text(obj["kind"])
	if md, ok := obj["metadata"].(map[string]any); ok {
		want.Name, want.Namespace = text(md["name"]), text(md["namespace"])
	}
	if m != want {
		t.Errorf("scanned %+v, decoded %+v\n%q", m, want, d.text)
	}
}

// checkItems compares the elements of a list with what the list decodes to.
func checkItems(t *testing.T, d *Document) {
	t.Helper()
	items, ok, err := d.Items()
	if err != nil || !ok {
		return
	}
	obj, err := d.Object()
	if err != nil {
		return
	}
	list, _ := obj["items"].([]any)
	if len(list) != len(items) {
		t.Fatalf("%d items, decoded %d\n%q", len(items), len(list), d.text)
	}
	for i, it := range items {
		v, err := it.decodeAny()
		if err != nil {
			t.Fatalf("item %d: %v\n%q in %q", i, err, it.text, d.text)
		}
		if diff := cmp.Diff(list[i], v); diff != "" {
			t.Fatalf("item %d: %s\n%q in %q", i, diff, it.text, d.text)
		}
	}
	if same, err := d.WithItems(items); err != nil || same != d {
		t.Errorf("WithItems of the same items: %v\n%q", err, d.text)
	}
}

func FuzzWith(f *testing.F) {
	for i, s := range decodeSeeds {
		f.Add([]byte(s), int64(i))
	}
	f.Fuzz(checkEdit)
}

// checkEdit changes the first document of a file by a random edit, which has to lead to exactly what was asked for.
func checkEdit(t *testing.T, src []byte, seed int64) {
	t.Helper()
	file, err := Parse("", src)
	if err != nil || len(file.Docs) == 0 {
		return
	}
	d := file.Docs[0]
	obj, err := d.Object()
	if err != nil || obj == nil {
		return
	}
	if root, err := d.parseNodes(); err != nil {
		return
	} else if _, err := (&nodeDecoder{}).decodeValue(root); err != nil {
		return // decoded by the fallback, not edited
	}
	if same, err := d.With(obj); err != nil || same != d {
		t.Fatalf("With of the same value: %v\n%q", err, src)
	}
	want := newGen(seed).mutate(obj, 2).(map[string]any)
	if _, err := d.With(want); err != nil && !strings.Contains(err.Error(), "found a tab") { // as docs/limits.md says
		t.Errorf("%v\n--- text\n%s\n--- want\n%s", err, src, Marshal(want))
	}
}

func FuzzMarshal(f *testing.F) {
	for _, s := range genStrings {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkText("", []byte(s)) != nil {
			return
		}
		for _, v := range []any{s, map[string]any{"a": s}, []any{s}, map[string]any{"a": []any{map[string]any{"b": s}}}, map[string]any{s: "x"}} {
			if m, ok := v.(map[string]any); ok && len(s) > maxKey/2 && m[s] != nil {
				continue
			}
			text := Marshal(v)
			got, err := kubernetes(text)
			if err != nil {
				t.Fatalf("%v\n%q", err, text)
			}
			if diff := cmp.Diff(v, got); diff != "" {
				t.Errorf("%s\n%q", diff, text)
			}
			checkDecode(t, text)
		}
		got, err := Decode([]byte(flowWriter{}.flowText([]any{s, map[string]any{"a": s}}, "")))
		if diff := cmp.Diff([]any{s, map[string]any{"a": s}}, got); diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
