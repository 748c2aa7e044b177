// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

// collectorObjects are what kubectl prints of a cluster: a sidecar with the operator's defaults and the cluster's additions, one of
// another mode, and an old version.
const collectorObjects = `
apiVersion: v1
kind: List
items:
- apiVersion: opentelemetry.io/v1beta1
  kind: OpenTelemetryCollector
  metadata:
    name: orders
    namespace: shop
    resourceVersion: "1234"
    uid: 0b9d
    managedFields: []
  spec:
    mode: sidecar
    managementState: managed
    upgradeStrategy: automatic
    replicas: 1
    config:
      receivers: {otlp: {protocols: {grpc: {endpoint: "0.0.0.0:4317"}, http: {endpoint: "0.0.0.0:4318"}}}}
      exporters: {debug: {}}
      service:
        telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 0.0.0.0, port: 8888}}}}]}}
        pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
  status: {version: 0.148.0}
- apiVersion: opentelemetry.io/v1beta1
  kind: OpenTelemetryCollector
  metadata: {name: gateway, namespace: shop}
  spec: {mode: deployment, config: {}}
- apiVersion: opentelemetry.io/v1alpha1
  kind: OpenTelemetryCollector
  metadata: {name: old, namespace: shop}
  spec: {mode: sidecar, config: ""}
`

func importCollectors(t *testing.T, text string) *Import {
	t.Helper()
	objects, err := Read("cluster.yaml", []byte(text))
	must(t, err)
	imp, err := Policy(objects, Options{})
	must(t, err)
	return imp
}

// instrumentationObjects are what kubectl prints: an Instrumentation with the defaults of the operator's webhook and the cluster's
// additions, and one of another version.
const instrumentationObjects = `
apiVersion: v1
kind: List
items:
- apiVersion: opentelemetry.io/v1alpha1
  kind: Instrumentation
  metadata:
    name: orders
    namespace: shop
    annotations: {instrumentation.opentelemetry.io/default-auto-instrumentation-java-image: "example.com/java:1"}
    resourceVersion: "1234"
    uid: 0b9d
  spec:
    exporter: {endpoint: "http://collector:4317"}
    propagators: [tracecontext, baggage]
    sampler: {type: parentbased_traceidratio, argument: "0.25"}
    java:
      image: ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:1.33.6
      resources: {limits: {cpu: 500m, memory: 256Mi}, requests: {cpu: 50m, memory: 64Mi}}
    apacheHttpd:
      configPath: /usr/local/apache2/conf
      image: ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-apache-httpd:1.0.4
      resourceRequirements: {limits: {cpu: 500m, memory: 256Mi}, requests: {cpu: 1m, memory: 128Mi}}
      version: "2.4"
- apiVersion: opentelemetry.io/v1alpha2
  kind: Instrumentation
  metadata: {name: newer, namespace: shop}
  spec: {}
`

// TestInstrumentations imports an Instrumentation as the cluster has it, and injects with the policy: the pod is the one that the
// operator made of the same object.
func TestInstrumentations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../policies/testdata/opentelemetry-instrumentation/0.148.0.operator.json")
	must(t, err)
	var data struct {
		Answers map[string]struct {
			Pod corev1.Pod `json:"pod"`
		} `json:"answers"`
	}
	must(t, json.Unmarshal(text, &data))
	imp := importCollectors(t, instrumentationObjects)
	if imp.Policy.Metadata.Name != "opentelemetry-instrumentation" || imp.From != "1 Instrumentation; 0 namespaces" {
		t.Errorf("%s: %s", imp.Policy.Metadata.Name, imp.From)
	}
	policy, err := Marshal(imp.Policy, imp.Comment())
	must(t, err)
	for _, language := range []string{"java", "sdk"} {
		workload := strings.Replace(linkerdWorkload, "linkerd.io/inject: enabled", "instrumentation.opentelemetry.io/inject-"+language+": \"true\"", 1)
		got := injectedPodOf(t, policy, strings.Replace(workload, "Deployment", "StatefulSet", 1)).Spec
		if diff := cmp.Diff(data.Answers[language].Pod.Spec, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -operator +Prerig:\n%s", language, diff)
		}
	}
	if len(imp.Warnings) != 1 || !strings.Contains(imp.Warnings[0], "newer") || !strings.Contains(imp.Warnings[0], "read it as opentelemetry.io/v1alpha1") {
		t.Errorf("warnings: %q", imp.Warnings)
	}
}

// TestCollectors imports a collector as the cluster has it, and injects with the policy: the pod is the one that the operator
// made of the same collector.
func TestCollectors(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../policies/testdata/opentelemetry-sidecar/*.operator.json")
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("no answers are there")
	}
	text, err := os.ReadFile(slices.Max(paths))
	must(t, err)
	var data struct {
		Answers map[string]struct {
			Pod corev1.Pod `json:"pod"`
		} `json:"answers"`
	}
	must(t, json.Unmarshal(text, &data))
	want := data.Answers["plain"].Pod.Spec
	if len(want.InitContainers) != 1 {
		t.Fatalf("the answer has no collector: %+v", want)
	}
	imp := importCollectors(t, collectorObjects)
	if imp.Policy.Metadata.Name != "opentelemetry-sidecar" || !strings.HasPrefix(imp.From, "1 OpenTelemetryCollector;") {
		t.Errorf("%s: %s", imp.Policy.Metadata.Name, imp.From)
	}
	policy, err := Marshal(imp.Policy, imp.Comment())
	must(t, err)
	got := injectedPodOf(t, policy, strings.Replace(linkerdWorkload, "linkerd.io/inject: enabled", "sidecar.opentelemetry.io/inject: \"true\"", 1)).Spec
	// The case is one of a StatefulSet.
	attributes := func(list []corev1.EnvVar) {
		list[len(list)-1].Value = strings.TrimPrefix(list[len(list)-1].Value, "k8s.deployment.name=orders,")
	}
	attributes(got.InitContainers[0].Env)
	if diff := cmp.Diff(want.InitContainers, got.InitContainers, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-operator +Prerig:\n%s", diff)
	}
	if len(imp.Warnings) != 1 || !strings.Contains(imp.Warnings[0], "old") || !strings.Contains(imp.Warnings[0], "read it as opentelemetry.io/v1beta1") {
		t.Errorf("warnings: %q", imp.Warnings)
	}
}

// TestNoCollectorSidecar: collectors of other modes make no policy.
func TestNoCollectorSidecar(t *testing.T) {
	t.Parallel()
	objects, err := Read("cluster.yaml", []byte(strings.ReplaceAll(collectorObjects, "mode: sidecar", "mode: daemonset")))
	must(t, err)
	if _, err := Policy(objects, Options{}); err == nil || !strings.Contains(err.Error(), "no OpenTelemetryCollector with mode sidecar, no Instrumentation, and ") {
		t.Errorf("%v", err)
	}
}

// TestCollectorsBesideLinkerd: the policy has both sidecars, and says so.
func TestCollectorsBesideLinkerd(t *testing.T) {
	t.Parallel()
	objects, err := Read("cluster.yaml", []byte(collectorObjects))
	must(t, err)
	objects = append(objects, linkerdMap("linkerd-config", "values", "linkerdVersion: edge-26.8.3\n"))
	imp, err := Policy(objects, Options{})
	must(t, err)
	var names []string
	for _, s := range imp.Policy.Spec.Sidecars {
		names = append(names, s.BuiltIn)
	}
	if diff := cmp.Diff([]string{"linkerd", "opentelemetry-sidecar"}, names); diff != "" {
		t.Error(diff)
	}
	if want := "Linkerd edge-26.8.3 in namespace linkerd; 1 OpenTelemetryCollector; 0 namespaces"; imp.From != want {
		t.Errorf("%q", imp.From)
	}
}
