// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// writeTree writes files below a new directory. A value that starts with "->" is a symbolic link.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// objectsIn decodes a stream of objects.
func objectsIn(t testing.TB, text string) (out []map[string]any) {
	t.Helper()
	for _, doc := range bytes.Split([]byte(text), []byte("\n---\n")) {
		var value map[string]any
		if err := yaml.Unmarshal(doc, &value); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if value != nil {
			out = append(out, value)
		}
	}
	return out
}

// canonicalObjects returns the objects as JSON, by their identity.
func canonicalObjects(t testing.TB, objects []map[string]any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, value := range objects {
		one := unstructured.Unstructured{Object: value}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out[one.GetAPIVersion()+" "+one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName()] = string(text)
	}
	return out
}
