// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

func TestWebhookFromObject(t *testing.T) {
	read := func(src string) map[string]any {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(src), &obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	got, err := v1alpha1.WebhookFromObject(read(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-prod, labels: {istio.io/rev: 1-31, istio.io/tag: prod}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  namespaceSelector: {matchExpressions: [{key: istio.io/rev, operator: In, values: [prod]}]}
- name: services
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]
- name: deletions
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]
- name: everything
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.Webhook{Name: "istio-revision-tag-prod", Revision: "1-31", Webhooks: []v1alpha1.WebhookRule{
		{Name: "rev.namespace.sidecar-injector.istio.io", NamespaceSelector: &v1alpha1.LabelSelector{
			MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "istio.io/rev", Operator: "In", Values: []string{"prod"}}}}},
		{Name: "everything"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for src, want := range map[string]string{
		"{metadata: {name: w}, webhooks: {}}": "MutatingWebhookConfiguration w: webhooks: is not a list",
		"{metadata: {name: w}, webhooks: [{name: e, objectSelector: {matchExpressions: [{key: a, operator: Is}]}}]}": `webhooks[0].objectSelector.matchExpressions[0].operator: "Is" is not one of`,
	} {
		if _, err := v1alpha1.WebhookFromObject(read(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
}

// TestMarshalText keeps a text byte by byte, whatever its lines look like.
func TestMarshalText(t *testing.T) {
	for _, text := range []string{
		"a: b\nc: d\n", "no newline\nat the end", "two at the end\n\n", "trailing space \nb\n", "tab\there\n\tb\n", "\n\nleading lines\nb\n",
		"  indented first line\nb\n", "carriage return\r\nb\r\n", "---\nb\n", "# comment\nb\n", "unicode ü 日本 🚀\nb\n", "separator \u2028 in it\nb\n",
		"on", "1.30", "null", "0x1f", "1e3", "12:30", "- a", "{{ .Values.x }}", "", " ", "\n", "x\n", "\t", "a\n \n  b \n", " \n \nb", "\n\n\n", "a\n   ", "\n  a\n b", "prerig.dev/text-0", "x - prerig.dev/text-0", "prerig.dev/text-0\x00", "a\x00\nb", "\ufeffa\nb\n",
	} {
		p := &v1alpha1.InjectionPolicy{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "a"}}
		p.Spec.Istio = &v1alpha1.Istio{MeshConfig: text}
		data, err := v1alpha1.Marshal(p)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := v1alpha1.Parse(data)
		if err != nil {
			t.Errorf("%q: %v\n%s", text, err, data)
			continue
		}
		if got.Spec.Istio.MeshConfig != text {
			t.Errorf("%q came back as %q\n%s", text, got.Spec.Istio.MeshConfig, data)
		}
		if text == "" {
			continue
		}
		p.Spec.Istio = &v1alpha1.Istio{RevisionTags: []string{"a"}, Injector: v1alpha1.Injector{Overrides: map[string]any{"l": []any{text, []any{text}, map[string]any{"k": text}}}}}
		if data, err = v1alpha1.Marshal(p); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err = v1alpha1.Parse(data); err != nil {
			t.Errorf("%q in a list: %v\n%s", text, err, data)
		} else if diff := cmp.Diff(p.Spec.Istio.Injector, got.Spec.Istio.Injector); diff != "" {
			t.Errorf("%q in a list (-want +got)\n%s\n%s", text, diff, data)
		}
	}
	p := &v1alpha1.InjectionPolicy{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "a"}}
	p.Spec.Istio = &v1alpha1.Istio{Injector: v1alpha1.Injector{Config: "templates:\n  sidecar: |\n    a: \"b\" \n\n    c: {{ d }}\n"}}
	data, err := v1alpha1.Marshal(p)
	if err != nil || !strings.Contains(string(data), "      config: |\n        templates:\n") {
		t.Errorf("not a literal block: %v\n%s", err, data)
	}
}
