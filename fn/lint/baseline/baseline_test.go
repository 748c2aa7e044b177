// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

func finding(code, name, field, container string) result.Result {
	return result.Result{
		Message: "message of " + code, Severity: result.Warning, ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name, Namespace: "shop"},
		Field: &result.Field{Path: field}, Tags: map[string]string{result.TagCode: code, lint.TagContainer: container},
	}
}

// aboutMesh is a finding of scope mesh in the named workloads.
func aboutMesh(names ...string) result.Results {
	var rs result.Results
	for _, name := range names {
		r := finding("PR201", name, "spec.template.spec.containers[1]", "istio-proxy")
		r.Tags[lint.TagScope] = lint.ScopeMesh
		rs = append(rs, r)
	}
	return rs
}

const saved = `# Findings that prerig check knows of and does not report again (--baseline). It is written by --write-baseline.
findings:
- code: PR201
  message: message of PR201
- code: PR404
  field: spec.template.spec.containers[app].resources
  object: Deployment shop/web
- code: PR604
  count: 2
  field: spec.template.metadata.annotations["a"]
  object: Deployment shop/web
version: 1
`

func sample() result.Results {
	rs := append(aboutMesh("web", "api"), finding("PR604", "web", `spec.template.metadata.annotations["a"]`, ""), finding("PR604", "web", `spec.template.metadata.annotations["a"]`, ""),
		finding("PR404", "web", "spec.template.spec.containers[0].resources", "app"), result.Result{Severity: result.Error, Message: "decoding a.yaml: no YAML"})
	return lint.JoinMesh(rs)
}

func TestFile(t *testing.T) {
	data, err := New(sample()).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if data, _ := New(nil).Bytes(); !strings.Contains(string(data), "findings: []\n") {
		t.Errorf("without findings:\n%s", data)
	}
	for text, want := range map[string]string{
		"version: 2\nfindings: []\n":                                "its version is 2, and this prerig reads 1",
		"version: 1\nfindings: [{code: PR201, line: 3}]\n":          `unknown field "line"`,
		"version: 1\nfindings: [{object: Pod a}]\n":                 "finding 1 has no code",
		"version: 1\nfindings: [{code: PR201}]\n":                   "finding 1 has no object and no message",
		"version: 1\nfindings: [{code: a, object: b, count: -1}]\n": "a count is below zero",
		"[": "reading the baseline",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFilter(t *testing.T) {
	b, err := Parse([]byte(saved))
	if err != nil {
		t.Fatal(err)
	}
	moved := finding("PR404", "web", "spec.template.spec.containers[3].resources", "app")
	unreadable := result.Result{Severity: result.Error, Message: "decoding a.yaml: no YAML"}
	annotation := finding("PR604", "web", `spec.template.metadata.annotations["a"]`, "")
	for _, c := range []struct {
		name        string
		rs          result.Results
		fresh, gone string
		known       int
	}{
		{"the same", sample(), "decoding a.yaml: no YAML", "", 4},
		{"another workload of the mesh, a container that moved", append(aboutMesh("web", "new"), moved, annotation), "", "", 3},
		{"one workload alone", append(aboutMesh("api"), moved, annotation), "", "", 3},
		{"a third of two", append(aboutMesh("web"), moved, annotation, annotation, annotation), "PR604 Deployment shop/web", "", 4},
		{"another object", append(aboutMesh("web"), moved, annotation, finding("PR404", "api", "f", "")), "PR404 Deployment shop/api", "", 3},
		{"another rule of the same object", append(aboutMesh("web"), moved, annotation, finding("PR405", "web", "f", "")), "PR405 Deployment shop/web", "", 3},
		{"mended", append(aboutMesh("web"), annotation), "", "PR404: Deployment shop/web spec.template.spec.containers[app].resources", 2},
		{"everything mended", result.Results{unreadable}, "decoding a.yaml: no YAML", "PR201: message of PR201; PR404: Deployment shop/web spec.template.spec.containers[app].resources; PR604: Deployment shop/web spec.template.metadata.annotations[\"a\"]", 0},
	} {
		fresh, known, gone := b.Filter(lint.JoinMesh(c.rs))
		var gotFresh, gotGone []string
		for _, r := range fresh {
			if r.ResourceRef == nil {
				gotFresh = append(gotFresh, r.Message)
				continue
			}
			gotFresh = append(gotFresh, r.Tags[result.TagCode]+" "+r.ResourceRef.String())
		}
		for _, e := range gone {
			gotGone = append(gotGone, e.String())
		}
		if strings.Join(gotFresh, "; ") != c.fresh || strings.Join(gotGone, "; ") != c.gone || known != c.known {
			t.Errorf("%s: new %q, gone %q, %d known", c.name, gotFresh, gotGone, known)
		}
	}
}

// TestFilterOfSomeWorkloads: where a baseline knows one workload by name, only the others are left of a finding about the mesh.
func TestFilterOfSomeWorkloads(t *testing.T) {
	b := New(aboutMesh("web"))
	fresh, known, gone := b.Filter(lint.JoinMesh(aboutMesh("web", "api", "db")))
	if len(fresh) != 1 || len(fresh[0].Places) != 2 || fresh[0].Places[0].ResourceRef.Name != "api" || known != 1 || len(gone) != 0 {
		t.Errorf("%v, %d known, gone %v", fresh, known, gone)
	}
	fresh, _, _ = b.Filter(lint.JoinMesh(aboutMesh("web", "api")))
	if len(fresh) != 1 || fresh[0].ResourceRef == nil || fresh[0].ResourceRef.Name != "api" || len(fresh[0].Places) != 0 {
		t.Errorf("one left: %v", fresh)
	}
}
