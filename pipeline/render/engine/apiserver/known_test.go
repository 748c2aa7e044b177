// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// TestIstiosKindsAreKnown checks Istio's kinds without a definition among the files: mistakes that users make.
func TestIstiosKindsAreKnown(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: a}
spec:
  action: DENNY
  rules: [{too: []}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: b}
spec: {host: [web], http: [{route: [{destination: {host: web}}]}]}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: c}
spec: {selector: {matchLabels: {app: web}}, targetRefs: [{group: "", kind: Service, name: web}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: fine}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
`
	want := []string{
		"error schema-unknown-field AuthorizationPolicy a spec.rules[0].too", "error schema-wrong-value AuthorizationPolicy a spec.action",
		"error schema-unknown-field VirtualService b spec.host", "error schema-custom-rule RequestAuthentication c spec",
	}
	for _, versions := range [][]string{nil, {"1.32.0"}, {"1.27.3"}} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{IstioVersions: versions})
		if err != nil {
			t.Fatal(err)
		}
		got := linesOfFindings(found)
		for _, line := range want {
			if !strings.Contains(got, line) {
				t.Errorf("%v: no finding %q in\n%s", versions, line, got)
			}
		}
		if strings.Contains(got, "fine") || len(found) != len(want) {
			t.Errorf("%v: %d findings\n%s", versions, len(found), got)
		}
	}
}

// TestVersionsThatIstioNeverHad: a cluster has no such kind, and the message names the versions that Istio has.
func TestVersionsThatIstioNeverHad(t *testing.T) {
	t.Parallel()
	got := findingsOf(t, "apiVersion: networking.istio.io/v1\nkind: EnvoyFilter\nmetadata: {name: a}\n---\n"+
		"apiVersion: helm.toolkit.fluxcd.io/v3\nkind: HelmRelease\nmetadata: {name: b}\n", gate.Options{})
	for _, want := range []string{
		"error schema-unserved-kind EnvoyFilter a apiVersion Istio has no EnvoyFilter of networking.istio.io/v1 (istio has v1alpha3)",
		"warning schema-undescribed-kind HelmRelease b kind", "(flux-helm has v2, v2beta1, v2beta2)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no finding %q in\n%s", want, got)
		}
	}
}

// TestIstiosReleaseIsThePolicys: a field that is new in a release is unknown to an older one.
func TestIstiosReleaseIsThePolicys(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: a}
spec: {jwtRules: [{issuer: me, presence: REQUIRED}]}
`
	for version, want := range map[string]int{"1.32": 0, "1.30.8": 1} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{IstioVersions: []string{version}})
		if err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", version, found, err)
		}
	}
}

// TestKnownDefinitionsOfOthersWarn: which release of a product a cluster has is unknown, so only wrong types are errors.
func TestKnownDefinitionsOfOthersWarn(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: a}
spec: {path: ./a, intervall: 1m}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: b}
spec: {secretName: {}, issuerRef: {name: x}}
---
apiVersion: helm.toolkit.fluxcd.io/v1beta9
kind: HelmRelease
metadata: {name: c}
`
	found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := linesOfFindings(found)
	for _, line := range []string{
		"warning schema-unknown-field Kustomization a spec.intervall", "warning schema-required Kustomization a spec.interval",
		"error schema-wrong-type Certificate b spec.secretName", "warning schema-undescribed-kind HelmRelease c kind",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no finding %q in\n%s", line, got)
		}
	}
}

// TestInputReplacesKnownDefinitions: a definition among the files counts, and the built-in one does not.
func TestInputReplacesKnownDefinitions(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualservices.networking.istio.io}
spec:
  group: networking.istio.io
  scope: Namespaced
  names: {kind: VirtualService, plural: virtualservices, singular: virtualservice, listKind: VirtualServiceList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {own: {type: string}}}}}}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec: {own: x}
`
	if found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestEachKnownDefinitionServes: the API server's own code can use each definition that is built in, with its rules.
func TestEachKnownDefinitionServes(t *testing.T) {
	t.Parallel()
	products, err := definitions.Products()
	if err != nil {
		t.Fatal(err)
	}
	for _, product := range products {
		t.Run(product.Name, func(t *testing.T) {
			t.Parallel()
			var b builtIn
			for _, kind := range product.Kinds {
				group, name, _ := strings.Cut(kind, "/")
				k := b.read(product, groupKind{group, name})
				if k == nil {
					t.Errorf("%s is not known", kind)
					continue
				}
				newest := k.at(len(k.all) - 1)
				if newest == nil || len(newest.versions) == 0 {
					t.Errorf("the definition of %s cannot be read", kind)
					continue
				}
				for version, v := range newest.versions {
					if err := v.prepareValidators(); err != nil {
						t.Errorf("%s %s of %s: %v", kind, version, k.release(len(k.all)-1), err)
					}
				}
			}
		})
	}
}

// linesOfFindings has a line for each finding.
func linesOfFindings(found result.Results) string {
	var out strings.Builder
	for _, r := range found {
		out.WriteString(string(r.Severity) + " " + r.Tags[result.TagCode] + " " + r.ResourceRef.Kind + " " + r.ResourceRef.Name + " ")
		if r.Field != nil {
			out.WriteString(r.Field.Path)
		}
		out.WriteString(" " + r.Message + "\n")
	}
	return out.String()
}
