// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"testing"

	"github.com/prerig/prerig/fn/manifest"
)

// What stands before an object must not make it something that is passed over.
func TestObjectsAreRecognizedBehindWhatStandsBeforeThem(t *testing.T) {
	const object = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web}]}}}\n"
	for name, before := range map[string]string{
		"nothing": "", "a comment": "# web\n", "a document start": "---\n", "a byte order mark": "\ufeff",
		"a directive": "%YAML 1.1\n---\n", "a directive and a comment": "# web\n%YAML 1.2 # newer\n# web\n---\n",
		"a byte order mark and a directive": "\ufeff%YAML 1.1\n---\n",
	} {
		f, err := manifest.Parse("web.yaml", []byte(before+object))
		if err != nil {
			t.Fatal(name, err)
		}
		if docs := f.Docs; len(docs) != 1 {
			t.Errorf("behind %s: %d documents", name, len(docs))
		} else if found := recognizeDocument(docs[0]); found.reason != nil || found.err != nil {
			t.Errorf("behind %s it is passed over: %+v", name, found)
		}
	}
	f, err := manifest.Parse("values.yaml", []byte("%YAML 1.1\n---\nreplicas: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if found := recognizeDocument(f.Docs[0]); found.reason != plain {
		t.Errorf("values behind a directive: %+v", found)
	}
}
