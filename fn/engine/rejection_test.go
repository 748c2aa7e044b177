// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/policies"
)

// rejectedApp is a Deployment with places for annotations and fields of its pod.
const rejectedApp = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {ANNOTATIONS}
    spec:
      SPEC
      containers:
      - {name: c, image: "registry.example.com/web:1", resources: {requests: {cpu: 80m, memory: 100Mi}}}
`

// withTemplate is the built-in policy with a custom template, which pods ask for.
func withTemplate(template string) string {
	text, _ := policies.Get("istio")
	const at = "        templates:\n"
	return strings.Replace(string(text), at, at+"          custom: |\n            "+strings.ReplaceAll(template, "\n", "\n            ")+"\n", 1)
}

// TestRejectedPod injects what the API server is certain to refuse, with policies that do not lint: each is an error that names the field and
// the rule, and the workload stays as it was. What the workload has by itself is none.
func TestRejectedPod(t *testing.T) {
	builtIn, _ := policies.Get("istio")
	istio := string(builtIn)
	const custom = `inject.istio.io/templates: "sidecar,custom"`
	for _, test := range []struct{ name, policy, annotations, spec, field, code, want string }{
		{"resources of the pod", istio, "", "resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 200m, memory: 256Mi}}",
			"spec.template.spec.resources.requests[cpu]", "PR410", "the containers request 180m of cpu together, and the pod as a whole requests 100m"},
		{"limit above the pod's", istio, `sidecar.istio.io/nativeSidecar: "false"`, "resources: {limits: {cpu: 200m, memory: 8Gi}}",
			"spec.template.spec.containers", "PR410", "the limit of container istio-proxy is 2"},
		{"mount without a volume", istio, `sidecar.istio.io/userVolumeMount: '{"filters": {"mountPath": "/etc/filters"}}'`, "",
			"spec.template.spec.initContainers[1].volumeMounts[9].name", "PR622", "the mount at /etc/filters is of the volume filters, and the pod has no such volume"},
		{"two sources", istio, `sidecar.istio.io/userVolume: '{"filters": {"emptyDir": {}, "configMap": {"name": "filters"}}}'`, "",
			"spec.template.spec.volumes", "PR622", "the volume filters has 2 sources (configMap and emptyDir)"},
		{"absolute path in a volume", istio,
			`sidecar.istio.io/userVolume: '{"filters": {"configMap": {"name": "filters", "items": [{"key": "a", "path": "/a"}]}}}'`, "",
			"spec.template.spec.volumes", "PR622", "the path /a of a file of the volume filters is not relative"},
		{"volume twice", istio, `sidecar.istio.io/userVolume: '{"istio-envoy": {"emptyDir": {}}}'`, "",
			"spec.template.spec.volumes", "PR622", "the volume istio-envoy is there twice"},
		{"mount path twice", istio, `sidecar.istio.io/userVolumeMount: '{"istio-data": {"mountPath": "/etc/istio/proxy"}}'`, "",
			"spec.template.spec.initContainers[1].volumeMounts", "PR622", "two volumes are mounted at /etc/istio/proxy"},
		{"template for an ordinary proxy", withTemplate("spec:\n  containers:\n  - name: istio-proxy\n    env: [{name: GREETING, value: hello}]"), custom, "",
			"spec.template.spec.containers[1]", "PR611", "container istio-proxy has no image"},
		{"name of a port", withTemplate("spec:\n  containers:\n  - {name: x, image: \"x:1\", ports: [{containerPort: 1, name: Metrics}]}"), custom, "",
			"spec.template.spec.containers[0].ports[0].name", "PR622", "the port name Metrics is invalid"},
		{"variable", withTemplate("spec:\n  containers:\n  - {name: x, image: \"x:1\", env: [{name: A=B}]}"), custom, "",
			"spec.template.spec.containers[0].env[0].name", "PR622", `the variable name "A=B" is invalid`},
		{"request above the limit", istio, `sidecar.istio.io/proxyCPU: "3", sidecar.istio.io/proxyCPULimit: "2"`, "",
			"spec.template.spec.initContainers[1].resources", "PR403", "container istio-proxy requests 3 of cpu, above its limit of 2"},
		{"quantity", withTemplate("spec:\n  containers:\n  - {name: x, image: \"x:1\", resources: {requests: {cpu: 1core}}}"), custom, "",
			"spec.template.spec.containers[0].resources.requests", "PR405", "requests of cpu is 1core, which is not a quantity"},
		{"probe", withTemplate("spec:\n  initContainers:\n  - {name: x, image: \"x:1\", readinessProbe: {exec: {command: [\"true\"]}}}"), custom, "",
			"spec.template.spec.initContainers[2].readinessProbe", "PR622", "readinessProbe may not be set for an init container without restartPolicy: Always"},
		{"selected label", withTemplate("metadata: {labels: {app: other}}"), custom, "",
			"spec.template.metadata.labels", "PR622", "a label that the workload's selector app=web selects"},
		{"AppArmor profile of no container", withTemplate("metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/gone: runtime/default}}"),
			custom, "", "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/gone]", "PR622",
			"the annotation sets the AppArmor profile of container gone, which the pod does not have"},
		{"no AppArmor profile", withTemplate("metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/istio-proxy: strict}}"),
			custom, "", "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/istio-proxy]", "PR622",
			"the AppArmor profile is strict, and neither runtime/default, unconfined nor localhost/NAME"},
		{"the workload's own AppArmor profile", istio, "container.apparmor.security.beta.kubernetes.io/gone: strict", "", "", "", ""},
		{"the workload's own problem", istio, "", "volumes: [{name: v}, {name: v}]", "", "", ""},
		{"the workload's own sum", istio, "", "resources: {requests: {cpu: 10m, memory: 1Gi}}", "", "", ""},
		{"nothing", istio, "", "resources: {requests: {cpu: 180m, memory: 228Mi}}", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			input := strings.NewReplacer("ANNOTATIONS", test.annotations, "SPEC", test.spec).Replace(rejectedApp)
			out, r := try(t, test.policy, v1alpha1.ModeInject, input)
			if test.want == "" {
				if r.Failed() {
					t.Errorf("got %v", r.Results)
				}
				return
			}
			for _, one := range r.Results {
				if one.Severity == result.Error && strings.Contains(one.Message, test.want) && (one.Field == nil && test.field == "" || one.Field != nil && strings.HasPrefix(one.Field.Path, test.field)) &&
					one.Tags[result.TagCode] == test.code {
					if out != input {
						t.Errorf("it is injected:\n%s", out)
					}
					return
				}
			}
			t.Errorf("no error says %q of %s: %v", test.want, test.field, r.Results)
		})
	}
}

const rollout = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example.com/web:1"}]
`

// rolloutDefinition is a CustomResourceDefinition whose init containers have the fields FIELDS.
const rolloutDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.argoproj.io}
spec:
  group: argoproj.io
  names: {kind: Rollout, plural: rollouts}
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              template:
                type: object
                properties:
                  spec:
                    type: object
                    properties:
                      initContainers: {type: array, items: {type: object, properties: {FIELDS}}}
---
`

const rolloutsController = `apiVersion: apps/v1
kind: Deployment
metadata: {name: argo-rollouts, namespace: argo-rollouts}
spec:
  template:
    metadata: {annotations: {sidecar.istio.io/inject: "false"}}
    spec: {containers: [{name: argo-rollouts, image: "quay.io/argoproj/argo-rollouts:VERSION"}]}
---
`

const fluxKustomization = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec: {path: ./, postBuild: {substitute: {region: east}}}
---
`

const vaultApp = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: web, vault.hashicorp.com/service: "https://vault.example.com:8200",
        vault.hashicorp.com/agent-inject-secret-db: secret/db}
    spec:
      containers: [{name: web, image: "registry.example.com/web:1"}]
`

// TestCertainFindingsWithoutLint injects with policies that ask for no findings: what the files prove is reported, what depends on something
// unknown is not.
func TestCertainFindingsWithoutLint(t *testing.T) {
	for _, test := range []struct {
		name, policy, input, code string
		severity                  result.Severity
	}{
		{"definition without the field", "istio", strings.Replace(rolloutDefinition, "FIELDS", "name: {type: string}", 1) + rollout, "PR210", result.Error},
		{"definition with the field", "istio", strings.Replace(rolloutDefinition, "FIELDS", "restartPolicy: {type: string}", 1) + rollout, "PR210", ""},
		{"old controller", "istio", strings.Replace(rolloutsController, "VERSION", "v1.6.6", 1) + rollout, "PR210", result.Error},
		{"new controller", "istio", strings.Replace(rolloutsController, "VERSION", "v1.8.0", 1) + rollout, "PR210", ""},
		{"nothing known", "istio", rollout, "PR210", ""},
		{"substituted text", "vault-agent", fluxKustomization + vaultApp, "PR620", result.Warning},
		{"text that nothing substitutes", "vault-agent", vaultApp, "PR620", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy, _ := policies.Get(test.policy)
			_, r := try(t, string(policy), v1alpha1.ModeInject, test.input)
			var got []result.Severity
			for _, one := range r.Results {
				if one.Tags[result.TagCode] == test.code {
					got = append(got, one.Severity)
				}
			}
			if test.severity == "" && len(got) > 0 || test.severity != "" && (len(got) != 1 || got[0] != test.severity) {
				t.Errorf("%s: got %v, want %q: %v", test.code, got, test.severity, r.Results)
			}
		})
	}
}

// TestRejectedByOtherObjects injects into a namespace with a LimitRange, a ResourceQuota or a Pod Security level that refuses the pods, with a
// policy that does not lint.
func TestRejectedByOtherObjects(t *testing.T) {
	builtIn, _ := policies.Get("istio")
	app := strings.NewReplacer("ANNOTATIONS", "", "SPEC", "").Replace(rejectedApp)
	for code, object := range map[string]string{
		"PR407": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: NAMESPACE}\nspec: {limits: [{type: Container, max: {cpu: \"1\"}}]}\n",
		"PR504": "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE, labels: {pod-security.kubernetes.io/enforce: baseline}}\n",
		"PR408": "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: all, namespace: NAMESPACE}\nspec: {hard: {limits.cpu: \"9\"}}\n",
	} {
		annotations := ""
		if code == "PR408" {
			annotations = `sidecar.istio.io/proxyCPU: 100m`
		}
		app := strings.Replace(app, "annotations: {}", "annotations: {"+annotations+"}", 1)
		for _, namespace := range []string{"shop", "other"} {
			_, r := try(t, string(builtIn), v1alpha1.ModeInject, strings.Replace(object, "NAMESPACE", namespace, 1)+"---\n"+app)
			found := false
			for _, one := range r.Results {
				found = found || one.Severity == result.Error && one.Tags[result.TagCode] == code
			}
			if found != (namespace == "shop") {
				t.Errorf("%s in the namespace %s: %v", code, namespace, r.Results)
			}
		}
	}
}
