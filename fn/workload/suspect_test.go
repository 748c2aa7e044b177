// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/workload"
)

// TestSuspicious checks which objects of unknown kinds are taken for workloads, and that those which only talk about pods
// are not.
func TestSuspicious(t *testing.T) {
	const pod = "spec: {containers: [{name: a, image: i}]}"
	tests := map[string]struct{ object, field, path string }{
		"a custom resource":      {"{apiVersion: example.com/v1, kind: Fleet, spec: {template: {metadata: {}, " + pod + "}}}", "spec.template", "spec.template"},
		"podTemplate":            {"{apiVersion: example.com/v1, kind: Fleet, spec: {podTemplate: {" + pod + "}}}", "spec.podTemplate", "spec.podTemplate"},
		"in a map of replicas":   {"{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {Worker: {template: {" + pod + "}}}}}", "spec.tfReplicaSpecs.Worker.template", "spec.tfReplicaSpecs.Worker.template"},
		"in a list":              {"{apiVersion: ray.io/v1, kind: RayCluster, spec: {workerGroupSpecs: [{groupName: a}, {template: {" + pod + "}}]}}", "spec.workerGroupSpecs[1].template", "spec.workerGroupSpecs[].template"},
		"a template in one":      {"{apiVersion: agones.dev/v1, kind: Fleet, spec: {template: {spec: {template: {" + pod + "}}}}}", "spec.template.spec.template", "spec.template.spec.template"},
		"Knative":                {"{apiVersion: serving.knative.dev/v1, kind: Service, spec: {template: {" + pod + "}}}", "spec.template", ""},
		"a workflow":             {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: a, dag: {}}, {name: b, container: {image: i}}]}}", "spec.templates[1]", ""},
		"a workflow on a clock":  {"{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {workflowSpec: {templates: [{script: {image: i}}]}}}", "spec.workflowSpec.templates[0]", ""},
		"a workflow of steps":    {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: a, dag: {}}]}}", "", ""},
		"a ConfigMap":            {"{apiVersion: v1, kind: ConfigMap, data: {template: '{" + pod + "}'}}", "", ""},
		"a definition":           {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {template: {" + pod + "}}}", "", ""},
		"Istio's own":            {"{apiVersion: install.istio.io/v1alpha1, kind: IstioOperator, spec: {template: {" + pod + "}}}", "", ""},
		"a rule":                 {"{apiVersion: kyverno.io/v1, kind: ClusterPolicy, spec: {rules: [{validate: {pattern: {spec: {template: {" + pod + "}}}}}]}}", "", ""},
		"a set of applications":  {"{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, spec: {template: {spec: {source: {repoURL: x}}}}}", "", ""},
		"containers elsewhere":   {"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {containers: [{name: a, image: i}]}}", "", ""},
		"without images":         {"{apiVersion: example.com/v1, kind: Box, spec: {template: {spec: {containers: [{name: a}]}}}}", "", ""},
		"names of containers":    {"{apiVersion: example.com/v1, kind: Box, spec: {template: {spec: {containers: [a, b]}}}}", "", ""},
		"not for a cluster":      {"{apiVersion: example.com/v1, kind: Fleet, metadata: {annotations: {config.kubernetes.io/local-config: 'true'}}, spec: {template: {" + pod + "}}}", "", ""},
		"what is in the status":  {"{apiVersion: example.com/v1, kind: Fleet, status: {template: {" + pod + "}}}", "", ""},
		"too deep to be meant":   {"{apiVersion: example.com/v1, kind: Fleet, " + strings.Repeat("a: {", 20) + "template: {" + pod + "}" + strings.Repeat("}", 20) + "}", "", ""},
		"a key that no path has": {"{apiVersion: example.com/v1, kind: Fleet, spec: {'a.b': {template: {" + pod + "}}}}", `spec["a.b"].template`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(test.object), &obj); err != nil {
				t.Fatal(err)
			}
			got := workload.Suspicious(obj)
			if got == nil {
				got = &workload.Suspect{}
			}
			if got.Field != test.field || got.Path != test.path || test.field != "" && !strings.Contains(got.Reason, test.field) {
				t.Errorf("have %+v, want the field %q and the path %q", got, test.field, test.path)
			}
			for _, hint := range workload.Hints {
				if got.Field != "" && !strings.Contains(test.object, hint) {
					t.Errorf("the hint %q is not in the object", hint)
				}
			}
		})
	}
}
