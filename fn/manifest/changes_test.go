// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
)

// What is kept in lines comes back to the byte, whatever the text is, and a list is written with it as with the documents themselves.
func FuzzChanges(f *testing.F) {
	f.Add("a: 1\n", "b: 2\nb: 2\n", 3)
	f.Add("a: |\n  x\n\n  y\n", "a: {b: 1}", 1)
	f.Add("a: &x 1\r\nb: *x\r\n", "\n\n", 2)
	f.Add("", "# only\n", 0)
	f.Fuzz(func(t *testing.T, first, second string, which int) {
		texts := []string{first, second, first + second}
		changes := NewChanges(len(texts) + 1)
		for i, text := range texts {
			if which>>i&1 == 0 {
				changes.Put(i, newDocument("a.yaml", i, 7, text))
			}
		}
		for i, text := range texts {
			d := changes.Document(i)
			if got := changes.Changed(i); got != (which>>i&1 == 0) || got != (d != nil) {
				t.Fatalf("document %d: changed is %t, and the document %v", i, got, d)
			}
			var out bytes.Buffer
			if err := changes.WriteText(&out, i, newDocument("", 0, 0, "as it was")); err != nil {
				t.Fatal(err)
			}
			if d == nil {
				text = "as it was"
			} else if d.text != text || d.path != "a.yaml" || d.index != i || d.line != 7 {
				t.Fatalf("document %d: got %+v, want the text %q", i, d, text)
			}
			if out.String() != text {
				t.Fatalf("document %d: wrote %q, want %q", i, &out, text)
			}
		}
		writeBoth(t, texts, which)
	})
}

// writeBoth writes a list with changed items in both ways.
func writeBoth(t *testing.T, texts []string, which int) {
	t.Helper()
	var src strings.Builder
	src.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for _, text := range texts {
		src.WriteString("- apiVersion: v1\n  kind: ConfigMap\n  data:\n    a: ")
		src.Write(Marshal(text))
	}
	list, err := ParseResourceList([]byte(src.String()))
	if err != nil || len(list.Items) != len(texts) {
		return // the text cannot stand there
	}
	changes := NewChanges(len(list.Items))
	items := append([]*Document(nil), list.Items...)
	for i, d := range list.Items {
		next, err := d.With(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"b": texts[len(texts)-1-i]}})
		if which>>i&1 == 0 || err != nil {
			continue
		}
		items[i] = next
		changes.Put(i, next)
	}
	results := result.Results{{Message: "one", Severity: result.Info}, {Message: texts[0], Severity: result.Warning}}[:min(max(which, 0), 2)]
	var one, other bytes.Buffer
	if err := list.Write(&one, items, results); err != nil {
		t.Fatal(err)
	}
	if err := list.WriteChanges(&other, changes, results); err != nil {
		t.Fatal(err)
	}
	if whole := list.Bytes(items, results); one.String() != other.String() || one.String() != string(whole) {
		t.Fatalf("the items give\n%s\nthe changes\n%s\nand all at once\n%s", &one, &other, whole)
	}
}
