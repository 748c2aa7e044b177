// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// TestTextsAreWhatAWriterWrites, in each style, and an object is written once.
func TestTextsAreWhatAWriterWrites(t *testing.T) {
	t.Parallel()
	object := render.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "a", YAML: []byte("kind: ConfigMap # a\napiVersion: v1\nmetadata: {name: a}\n")}
	same := object
	same.YAML = append([]byte(nil), object.YAML...)
	texts := &Texts{}
	for _, style := range []v1alpha1.Style{v1alpha1.StyleCanonical, v1alpha1.StylePreserve, v1alpha1.StyleCanonical} {
		want, err := formatText(object, style)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []render.Object{object, same} {
			if got, err := texts.textOfObject(o, style); err != nil || string(got) != string(want) {
				t.Errorf("%s: %v\n%s", style, err, got)
			}
		}
	}
	if len(texts.known) != 4 {
		t.Errorf("%d are remembered", len(texts.known))
	}
	first, _ := texts.textOfObject(object, v1alpha1.StyleCanonical)
	if again, _ := texts.textOfObject(object, v1alpha1.StyleCanonical); &again[0] != &first[0] {
		t.Error("it is written twice")
	}
	if _, err := texts.textOfObject(render.Object{YAML: []byte("a: [")}, v1alpha1.StyleCanonical); err == nil {
		t.Error("what cannot be read is written")
	}
}
