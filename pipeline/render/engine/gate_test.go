// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

const shopDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.org}
spec:
  group: example.org
  names: {plural: shops, singular: shop, kind: Shop}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}, x-kubernetes-validations: [{rule: self.size > 1, message: too small}]}}
`

// TestSchemaGate holds the result against schemas in the isolated process, with definitions that are in the source beside it.
func TestSchemaGate(t *testing.T) {
	files := map[string]string{
		"app/web.yaml":  strings.Replace(deployment, "spec:\n", "spec:\n  replica: 1\n", 1),
		"app/shop.yaml": "apiVersion: example.org/v1\nkind: Shop\nmetadata: {name: corner}\nspec: {size: 1}\n",
		"crds/a.yaml":   shopDefinition,
	}
	for name, tc := range map[string]struct {
		schemas *v1alpha1.SchemaGate
		want    string
	}{
		"off":         {nil, ""},
		"definitions": {&v1alpha1.SchemaGate{CRDs: []string{"crds"}}, "error schema-custom-rule Shop spec, error schema-unknown-field Deployment spec.replica"},
		"one file":    {&v1alpha1.SchemaGate{CRDs: []string{"crds/a.yaml"}, Rules: map[string]string{"schema-unknown-field": "Off"}}, "error schema-custom-rule Shop spec"},
		"unknown":     {&v1alpha1.SchemaGate{KubernetesVersion: "1.34"}, "warning schema-undescribed-kind Shop kind, error schema-unknown-field Deployment spec.replica"},
	} {
		r := request("app")
		r.Schemas = tc.schemas
		response, record := mustRender(t, files, r)
		var got []string
		for _, f := range response.Results {
			if code := f.Tags[result.TagCode]; strings.HasPrefix(code, "schema-") {
				got = append(got, strings.Join([]string{string(f.Severity), code, f.ResourceRef.Kind, f.Field.Path}, " "))
			}
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: got %s, want %s", name, text, tc.want)
		}
		changed := maps.Clone(files)
		changed["crds/a.yaml"] += "# another\n"
		_, affected := record.Affected(build(t, changed))
		if want := tc.schemas != nil && tc.schemas.CRDs != nil; affected != want {
			t.Errorf("%s: a changed definition has an effect: %v, want %v", name, affected, want)
		}
	}
}

// TestGatePlaces looks at the files and lines of findings: those of the source, as far as somebody knows them.
func TestGatePlaces(t *testing.T) {
	wrong := strings.Replace(deployment, "spec:\n", "spec:\n  replica: 1\n", 1)
	line := 1 + strings.Count(wrong[:strings.Index(wrong, "replica:")], "\n")
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"plain":    {map[string]string{"app/web.yaml": wrong}, fmt.Sprintf("app/web.yaml:%d", line)},
		"second":   {map[string]string{"app/web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n" + wrong}, fmt.Sprintf("app/web.yaml:%d", line+4)},
		"resource": {map[string]string{"app/kustomization.yaml": "namespace: shop\nresources: [../base]\n", "base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": wrong}, fmt.Sprintf("base/web.yaml:%d", line)},
		"renamed":  {map[string]string{"app/kustomization.yaml": "namePrefix: a-\nnameSuffix: -b\nresources: [web.yaml]\n", "app/web.yaml": wrong}, fmt.Sprintf("app/web.yaml:%d", line)},
		"patch": {map[string]string{
			"app/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: patch.yaml}]\n", "app/web.yaml": deployment,
			"app/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  paused: true\n  replica: 1\n",
		}, "app/patch.yaml:6"},
		"inline patch": {map[string]string{
			"app/kustomization.yaml": "resources: [web.yaml]\npatches: [{target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/spec/replica\", \"value\": 1}]'}]\n", "app/web.yaml": deployment,
		}, fmt.Sprintf("app/web.yaml:%d", 1+strings.Count(deployment[:strings.Index(deployment, "\nspec:")+1], "\n"))},
		"several names": {map[string]string{
			"app/kustomization.yaml": "nameSuffix: -web\nresources: [web.yaml, other.yaml]\n", "app/web.yaml": strings.Replace(wrong, "name: web", "name: front-web", 1),
			"app/other.yaml": strings.Replace(deployment, "name: web", "name: front", 1),
		}, ""},
		"chart": {map[string]string{
			"app/kustomization.yaml": entry, "app/charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
			"app/charts/web/templates/d.yaml": strings.Replace(wrong, "name: web", "name: {{ .Release.Name }}", 1),
		}, ""},
	} {
		r := request("app")
		r.Policies = []render.Policy{{Origin: "mesh.yaml", YAML: istio}}
		r.Schemas = &v1alpha1.SchemaGate{}
		response, _ := mustRender(t, tc.files, r)
		found := false
		for _, f := range response.Results {
			if f.Tags[result.TagCode] != "schema-unknown-field" {
				continue
			}
			found = true
			got := ""
			if f.File != nil {
				got = f.File.String()
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", name, got, tc.want)
			}
		}
		if !found {
			t.Errorf("%s: found %v", name, response.Results)
		}
	}
}

// TestSchemaGateRefuses tells what is wrong with the gate itself.
func TestSchemaGateRefuses(t *testing.T) {
	for want, schemas := range map[string]*v1alpha1.SchemaGate{
		"the schemas of 1.29 to":         {KubernetesVersion: "1.20"},
		"there is no such rule":          {Rules: map[string]string{"schema-unknown": "Off"}},
		"reading spec.gates.schemas.crd": {CRDs: []string{"nowhere"}},
	} {
		r := request("app")
		r.Schemas = schemas
		if _, _, err := renderFiles(t, map[string]string{"app/web.yaml": deployment}, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestAdmissionGate evaluates policies and Pod Security in the isolated process, with what the source has of the cluster.
func TestAdmissionGate(t *testing.T) {
	files := map[string]string{
		"app/web.yaml": deployment,
		"cluster/policies.yaml": `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: one}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: object.spec.replicas > 1, message: one is none}, {expression: request.userInfo.username == 'flux'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: one}
spec: {policyName: one, validationActions: [Deny]}
`,
	}
	for name, tc := range map[string]struct {
		admission *v1alpha1.AdmissionGate
		want      string
	}{
		"off":      {nil, ""},
		"nothing":  {&v1alpha1.AdmissionGate{}, ""},
		"policies": {&v1alpha1.AdmissionGate{Policies: []string{"cluster"}}, "error policy-denied, warning policy-not-evaluated"},
		"user": {&v1alpha1.AdmissionGate{
			Policies: []string{"cluster"}, User: &v1alpha1.AdmissionUser{Name: "flux"}, Rules: map[string]string{"policy-denied": "Warning"},
		}, "warning policy-denied"},
		"level": {&v1alpha1.AdmissionGate{PodSecurity: "restricted"}, "error pod-security-enforce"},
	} {
		r := request("app")
		r.Admission = tc.admission
		response, record := mustRender(t, files, r)
		var got []string
		for _, f := range response.Results {
			if code := f.Tags[result.TagCode]; strings.HasPrefix(code, "policy-") || strings.HasPrefix(code, "pod-security-") {
				got = append(got, string(f.Severity)+" "+code)
			}
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: got %s, want %s", name, text, tc.want)
		}
		changed := maps.Clone(files)
		changed["cluster/policies.yaml"] += "# another\n"
		_, affected := record.Affected(build(t, changed))
		if want := tc.admission != nil && tc.admission.Policies != nil; affected != want {
			t.Errorf("%s: a changed policy has an effect: %v, want %v", name, affected, want)
		}
	}
	r := request("app")
	r.Admission = &v1alpha1.AdmissionGate{PodSecurity: "strict"}
	if _, _, err := renderFiles(t, files, r); err == nil || !strings.Contains(err.Error(), "strict") {
		t.Errorf("got %v, want that the level does not exist", err)
	}
}
