// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// TestFilledLater takes a document without its text: Changes keeps it as its mould, and Filled makes the text.
func TestFilledLater(t *testing.T) {
	file, err := Parse("a.yaml", []byte("kind: A\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "kind: B\nname: b\n"
	later := file.Docs[0].FillLater(NewMould([]string{"kind: ", "\nname: ", "\n"}, []int{1, 0}), []string{"b", "B"})
	changes := NewChanges(1)
	changes.Put(0, later)
	filled := later.Filled()
	if got := changes.Document(0).Text(); got != want || filled.Text() != want || !filled.IsFilled() || filled.Path() != "a.yaml" {
		t.Errorf("have %q and %q", got, filled.Text())
	}
	if filled.Filled() != filled || file.Docs[0].Filled() != file.Docs[0] {
		t.Error("a document with its text is another one")
	}
}

// TestOpenedDocument edits a document that was opened to be read.
func TestOpenedDocument(t *testing.T) {
	for text, want := range map[string]string{"a: 1 # one\nb: 2": "a: 3 # one\nb: 2", "{a: 1, b: 2}": "{a: 3, b: 2}"} {
		file, err := Parse("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o, obj := file.Docs[0].Open()
		if o == nil || obj["a"] != int64(1) {
			t.Fatalf("%q: have %v", text, obj)
		}
		next, err := o.With(map[string]any{"a": int64(3), "b": int64(2)})
		o.Close()
		if err != nil || next.Text() != want {
			t.Errorf("have %q, %v", next.Text(), err)
		}
	}
	file, err := Parse("", []byte("- a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if o, obj := file.Docs[0].Open(); o != nil || obj != nil {
		t.Errorf("a list is opened: %v", obj)
	}
}
