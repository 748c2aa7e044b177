// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package content

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
		} else if found := Recognize(docs[0]); found.Reason != nil || found.Err != nil {
			t.Errorf("behind %s it is passed over: %+v", name, found)
		}
	}
	f, err := manifest.Parse("values.yaml", []byte("%YAML 1.1\n---\nreplicas: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if found := Recognize(f.Docs[0]); found.Reason != Plain {
		t.Errorf("values behind a directive: %+v", found)
	}
}

// TestTextInScalarsMakesNoTemplate: an object may well hold a script or a template that is meant to stay one.
func TestTextInScalarsMakesNoTemplate(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: web\n"
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n"
	for name, tc := range map[string]struct {
		text string
		want *Reason
	}{
		"ytt in a literal text":         {config + "  a: |\n    #@ load\n", nil},
		"ytt in a folded text":          {config + "  a: >-\n    b #@ c\n\n    #@ d\n", nil},
		"ytt in quotes":                 {config + "  a: 'b\n\n    #@ c'\n", nil},
		"ytt in a script":               {pod + "    args:\n    - |\n      #@ start\n      exec web\n", nil},
		"ytt above":                     {"#@ load(\"@ytt:data\", \"data\")\n" + pod, Template},
		"ytt between":                   {pod + "    #@ if data.values.port:\n    ports: [{containerPort: 80}]\n    #@ end\n", Template},
		"ytt at the end of a line":      {pod + "    image: #@ data.values.image\n", Template},
		"ytt behind a value":            {pod + "    workingDir: /a #@ web\n", Template},
		"ytt behind a literal text":     {config + "  a: |\n    b\n  #@ end\n", Template},
		"a variable in a literal text":  {pod + "    args:\n    - |\n      timeoutSeconds: ${TIMEOUT}\n", nil},
		"a variable in quotes":          {pod + "    args:\n    - 'a\n\n      runAsUser: $USER'\n", nil},
		"a variable in a label":         {"apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    weight: $W\nspec:\n  containers: [{name: a}]\n", nil},
		"a variable for a number":       {pod + "    livenessProbe:\n      timeoutSeconds: ${TIMEOUT}\n", Unfilled},
		"a quoted variable":             {pod + "    ports:\n    - containerPort: \"$PORT\"\n", Unfilled},
		"a variable for the gRPC port":  {pod + "    livenessProbe:\n      grpc:\n        port: $PORT\n", Unfilled},
		"both, a script and its number": {pod + "    args:\n    - |\n      weight: $W\n    ports:\n    - containerPort: $PORT\n", Unfilled},
	} {
		f, err := manifest.Parse("web.yaml", []byte(tc.text))
		if err != nil {
			t.Fatal(name, err)
		}
		if found := Recognize(f.Docs[0]); found.Reason != tc.want || found.Err != nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestBrokenObjectsAreErrors, wherever the mistake stands: what is passed over is not injected.
func TestBrokenObjectsAreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		err  bool
	}{
		"a kind that is indented": {"apiVersion: apps/v1\n    kind: Deployment\nmetadata: {name: web}\n", true},
		"metadata that is open":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web\n", true},
		"no object":               {"a: b\n    kind: Deployment\nc: {\n", false},
		"no kind":                 {"apiVersion: v2\n  name: web\n", false},
		"a template":              {"apiVersion: apps/v1\n    kind: Deployment\nname: {{ .Values.name }}\n", false},
	} {
		f, err := manifest.Parse("web.yaml", []byte(tc.text))
		if err != nil {
			t.Fatal(name, err)
		}
		if found := Recognize(f.Docs[0]); (found.Err != nil) != tc.err || (found.Reason == nil) != tc.err {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
