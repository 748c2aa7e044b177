// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"testing"

	"github.com/prerig/prerig/fn/manifest"
)

// TestStoredDocuments: what is written down and read again says the same of itself, also in its errors.
func TestStoredDocuments(t *testing.T) {
	file, err := manifest.Parse("a.yaml", []byte("# one\nkind: A\n---\nkind: List\nitems:\n- kind: B\n---\n{kind: [C}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range file.Docs {
		stored, ok := doc.Stored()
		again, err := stored.Document()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		_, want := doc.Object()
		_, got := again.Object()
		if again.Text() != doc.Text() || again.String() != doc.String() || again.Line() != doc.Line() || again.Index() != doc.Index() ||
			(want == nil) != (got == nil) || want != nil && want.Error() != got.Error() {
			t.Errorf("%s became %s: %v, %v", doc, again, want, got)
		}
	}
	items, _, err := file.Docs[1].Items()
	if err != nil || len(items) != 1 {
		t.Fatal(err)
	}
	if _, ok := items[0].Stored(); ok {
		t.Error("an element was stored without its list")
	}
	for _, wrong := range []manifest.Stored{{Text: "kind: A\n"}, {Line: 1, Index: -1}, {Line: 1, Text: "a: \x00\n"}, {Line: 1, Text: "{}{}"}} {
		if _, err := wrong.Document(); err == nil {
			t.Errorf("%+v is a document", wrong)
		}
	}
}
