// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestTemplatesOfCommitMessagesAreCheckedWhenRead, and not when the first commit is made.
func TestTemplatesOfCommitMessagesAreCheckedWhenRead(t *testing.T) {
	for template, want := range map[string]string{
		"Render {{.Name}} of {{.Namespace}} at {{.Path}} on {{.Branch}}: {{.Count}} objects": "",
		"{{.Source.Subject}} by {{.Source.Author}} ({{slice .Source.Revision 10 17}})":       "",
		"{{slice .Source.Subject 0 50}}":    "",
		"{{if eq .Count 0}}none{{end}}":     "",
		"Render {{.Pipeline}}":              "web.yaml: line 8: spec.publish[1].git.message: making the commit message: ",
		"Render {{.Name":                    "web.yaml: line 8: spec.publish[1].git.message: reading the template of the commit message: ",
		"{{range $i := .Name}}{{$i}}{{end}": "line 8",
	} {
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {git: {url: https://git.example.com/config}}\n"+
			"  publish:\n  - git: {branch: rendered}\n  - git: {branch: other, message: %q}\n", template)
		entries := Parse("web.yaml", []byte(text))
		if len(entries) != 1 || entries[0].Key != "web" {
			t.Fatalf("%s: got %+v", template, entries)
		}
		if err := entries[0].Err; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", template, err, want)
		}
	}
}

// TestABugInAParserStopsOneDocument has a check panic about one pipeline of two.
func TestABugInAParserStopsOneDocument(t *testing.T) {
	text := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec: {source: {git: {url: https://git.example.com/config}}, publish: [{git: {branch: rendered}}]}\n"
	entries := Parse("web.yaml", []byte(fmt.Sprintf(text+"---\n"+text, "odd", "web")), func(p *v1alpha1.RenderPipeline) error {
		if p.Metadata.Name == "odd" {
			panic("a bug")
		}
		return nil
	})
	if len(entries) != 2 || entries[0].Key != "odd" || entries[1].Key != "web" || entries[1].Err != nil {
		t.Fatalf("got %+v", entries)
	}
	if err := entries[0].Err; err == nil || !strings.Contains(err.Error(), "this is a bug in Prerig, please report it: a bug") {
		t.Errorf("got %v", err)
	}
}
