// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// TestLintOfACompletedPolicyReadsNoOtherNamespaces: a policy that was completed from a cluster lists the namespaces of others, too.
func TestLintOfACompletedPolicyReadsNoOtherNamespaces(t *testing.T) {
	list := `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh, annotations: {%s}}
  spec:
    lint: {}
    istio: {injector: {builtIn: istio}}
    namespaces:
    - {name: shop, labels: {istio-injection: enabled, istio.io/rev: a}}
    - {name: vault, labels: {istio-injection: enabled, istio.io/rev: b}}
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}}}
`
	for annotation, others := range map[string]bool{"": true, v1alpha1.CompletedAnnotation + ": Cluster": false} {
		var out, stderr bytes.Buffer
		err := fn.Execute(t.Context(), strings.NewReader(fmt.Sprintf(list, annotation)), &out, &stderr)
		if err != nil && !errors.Is(err, fn.ErrResults) {
			t.Fatal(err)
		}
		_, results, _ := strings.Cut(out.String(), "\nresults:")
		if !strings.Contains(results, "name: shop") || strings.Contains(results, "name: vault") != others {
			t.Errorf("with the annotations {%s} the results are:\n%s\n%s", annotation, results, stderr.String())
		}
	}
}
