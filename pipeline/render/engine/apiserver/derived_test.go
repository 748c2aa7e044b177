// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// findingsOf returns the findings of a text, one on each line.
func findingsOf(t *testing.T, text string, o gate.Options) string {
	t.Helper()
	found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), o)
	if err != nil {
		t.Fatal(err)
	}
	return linesOfFindings(found)
}

// TestConstraintsAreDescribedByTheirTemplate: Gatekeeper makes the definition of a constraint from its ConstraintTemplate.
func TestConstraintsAreDescribedByTheirTemplate(t *testing.T) {
	t.Parallel()
	got := findingsOf(t, `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8srequiredlabels}
spec:
  crd:
    spec:
      names: {kind: K8sRequiredLabels}
      validation:
        openAPIV3Schema: {type: object, properties: {labels: {type: array, items: {type: string}}}}
  targets: [{target: admission.k8s.gatekeeper.sh, rego: "package a"}]
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
metadata: {name: fine}
spec: {enforcementAction: warn, match: {kinds: [{apiGroups: [""], kinds: [Namespace]}]}, parameters: {labels: [owner]}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sRequiredLabels
metadata: {name: wrong}
spec: {parameters: {labels: owner, label: [a]}}
`, gate.Options{})
	for _, want := range []string{"error schema-wrong-type K8sRequiredLabels wrong spec.parameters.labels", "error schema-unknown-field K8sRequiredLabels wrong spec.parameters.label "} {
		if !strings.Contains(got, want) {
			t.Errorf("no finding %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "fine") || strings.Contains(got, gate.CodeUndescribedKind) {
		t.Error(got)
	}
}

// TestCompositesAreDescribedByTheirDefinition: Crossplane makes two kinds from a CompositeResourceDefinition, with fields of its own.
func TestCompositesAreDescribedByTheirDefinition(t *testing.T) {
	t.Parallel()
	const of = `
metadata: {name: xbuckets.example.org}
spec:
  group: example.org
  names: {kind: XBucket, plural: xbuckets}
  claimNames: {kind: Bucket, plural: buckets}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [region], properties: {region: {type: string}}}}}
---
`
	for version, composite := range map[string]string{"v1": "Bucket", "v2": "XBucket"} {
		got := findingsOf(t, "apiVersion: apiextensions.crossplane.io/"+version+"\nkind: CompositeResourceDefinition"+of+`apiVersion: example.org/v1
kind: `+composite+`
metadata: {name: fine, namespace: a}
spec: {region: eu, compositionSelector: {matchLabels: {a: b}}, writeConnectionSecretToRef: {name: s}}
---
apiVersion: example.org/v1
kind: `+composite+`
metadata: {name: wrong, namespace: a}
spec: {size: 1}
`, gate.Options{})
		for _, want := range []string{"error schema-required " + composite + " wrong spec.region", "error schema-unknown-field " + composite + " wrong spec.size"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no finding %q in\n%s", version, want, got)
			}
		}
		if strings.Contains(got, "fine") || strings.Contains(got, gate.CodeUndescribedKind) {
			t.Error(version, got)
		}
	}
}

// TestTheCatalogueDescribesWhatNoProductHas: kinds and versions of the catalogue, of which the release is unknown, so that all
// findings are warnings, and the scope, so that an object may have a namespace.
func TestTheCatalogueDescribesWhatNoProductHas(t *testing.T) {
	t.Parallel()
	got := findingsOf(t, `apiVersion: elbv2.k8s.aws/v1beta1
kind: TargetGroupBinding
metadata: {name: wrong, namespace: a}
spec: {targetGroupARN: [], servicRef: {}, serviceRef: {name: web, port: http}}
---
apiVersion: elbv2.k8s.aws/v1beta1
kind: TargetGroupBinding
metadata: {name: fine}
spec: {targetGroupARN: arn, serviceRef: {name: web, port: 80}}
---
apiVersion: source.toolkit.fluxcd.io/v1beta2
kind: HelmRepository
metadata: {name: older}
spec: {url: https://example.org, interval: 1h}
---
apiVersion: elbv2.k8s.aws/v1beta1
kind: targetgroupbinding
metadata: {name: spelled}
`, gate.Options{})
	for _, want := range []string{
		"warning schema-wrong-type TargetGroupBinding wrong spec.targetGroupARN", "warning schema-unknown-field TargetGroupBinding wrong spec.servicRef",
		"(by the definition of crds-catalog ", "warning schema-undescribed-kind targetgroupbinding spelled kind",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no finding %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"fine", "older", "error"} {
		if strings.Contains(got, not) {
			t.Errorf("%q in\n%s", not, got)
		}
	}
}

// TestFilesOfIstioctl: an IstioOperator is a file for istioctl, unless a cluster gets it.
func TestFilesOfIstioctl(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: a}\nspec: {profile: ambient}\n"
	if got := findingsOf(t, text, gate.Options{}); got != "" {
		t.Error(got)
	}
	if got := findingsOf(t, text, gate.Options{Published: true}); !strings.Contains(got, gate.CodeUndescribedKind) {
		t.Error(got)
	}
}
