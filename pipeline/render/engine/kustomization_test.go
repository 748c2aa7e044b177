// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {example.com/version: "1.10"}
    spec:
      serviceAccountName: web
      containers:
      - name: app
        image: registry.example.com/web:1
        args: ["--flag=yes", "on", "0123"]
        envFrom:
        - configMapRef: {name: settings}
        ports: [{containerPort: 8080}]
      volumes:
      - name: settings
        configMap: {name: settings, defaultMode: 0644}
`

const others = `apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec: {containers: [{name: app, image: registry.example.com/bare:1}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tool, annotations: {config.kubernetes.io/local-config: "true"}}
data: {x: "y"}
`

// istio is a policy with Istio's own sidecar, extra one with a plain sidecar.
const istio = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
  annotations:
    config.kubernetes.io/function: |
      exec: {path: prerig-fn}
spec:
  istio: {injector: {builtIn: istio}}
`

const extra = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: extra
  annotations:
    config.kubernetes.io/function: |
      exec: {path: prerig-fn}
spec:
  istio:
    version: "1.27"
    injector:
      values: '{"global": {}}'
      config: |
        policy: enabled
        defaultTemplates: [sidecar]
        templates:
          sidecar: |
            metadata:
              annotations:
                example.com/injected: "true"
            spec:
              containers:
              - name: logger
                image: registry.example.com/logger:1
                env:
                - {name: NAME, value: "on"}
                - {name: WORKLOAD, value: "{{ .DeploymentMeta.Name }}"}
                - {name: ACCOUNT, value: "{{ .Spec.ServiceAccountName }}"}
                volumeMounts:
                - {name: logger-config, mountPath: /etc/logger}
              volumes:
              - name: logger-config
                configMap: {name: settings}
`

const settings = "configMapGenerator:\n- name: settings\n  literals: [a=b]\n"

// parity are sources with transformers in all places where kustomize allows them.
var parity = map[string]map[string]string{
	"file": {
		"app/kustomization.yaml": "resources: [web.yaml, others.yaml]\ntransformers: [mesh.yaml]\n" + settings, "app/mesh.yaml": istio,
	},
	"file below": {
		"app/kustomization.yaml": "resources: [web.yaml]\ntransformers:\n- policies/mesh.yaml\n" + settings, "app/policies/mesh.yaml": istio,
	},
	"in place": {
		"app/kustomization.yaml": "resources: [web.yaml, others.yaml]\n" + settings + "transformers:\n- |-\n" + indent(extra),
	},
	"directory with a patch on the policy": {
		"app/kustomization.yaml":    "resources: [web.yaml]\ntransformers: [../policy]\n" + settings,
		"policy/kustomization.yaml": "resources: [mesh.yaml]\npatches:\n- patch: |-\n    apiVersion: prerig.dev/v1alpha1\n    kind: InjectionPolicy\n    metadata: {name: extra}\n    spec: {defaultNamespace: patched}\n",
		"policy/mesh.yaml":          extra,
	},
	"several in one file and one list": {
		"app/kustomization.yaml": "resources: [web.yaml]\ntransformers: [both.yaml, prefix.yaml]\n" + settings,
		"app/both.yaml":          istio + "---\n" + extra,
		"app/prefix.yaml":        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: late-\nfieldSpecs: [{path: metadata/name}]\n",
	},
	"between builtin transformers": {
		"app/kustomization.yaml": "namePrefix: early-\nresources: [web.yaml]\ntransformers: [prefix.yaml, mesh.yaml, image.yaml]\n" + settings,
		"app/mesh.yaml":          extra,
		"app/prefix.yaml":        "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: a}\nannotations: {before: \"yes\"}\nfieldSpecs: [{path: metadata/annotations, create: true}]\n",
		"app/image.yaml":         "apiVersion: builtin\nkind: ImageTagTransformer\nmetadata: {name: i}\nimageTag: {name: registry.example.com/logger, newTag: \"2\"}\n",
	},
	"base, patched and renamed by two overlays": {
		"base/kustomization.yaml": "resources: [web.yaml, others.yaml]\ntransformers: [mesh.yaml]\n" + settings, "base/mesh.yaml": extra,
		"mid/kustomization.yaml": "resources: [../base]\nnamePrefix: mid-\nnamespace: shop\nconfigMapGenerator:\n- {name: settings, behavior: merge, literals: [c=d]}\n" +
			"images:\n- {name: registry.example.com/logger, newTag: \"7\"}\n",
		"app/kustomization.yaml": "resources: [../mid]\nnameSuffix: -prod\nlabels:\n- pairs: {env: prod}\n  includeTemplates: true\npatches:\n- target: {kind: Deployment}\n  patch: |-\n" +
			"    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web}\n    spec: {template: {spec: {containers: [{name: logger, resources: {limits: {memory: 64Mi}}}]}}}\n",
	},
	"base and overlay with different policies": {
		"base/kustomization.yaml": "resources: [web.yaml]\ntransformers: [extra.yaml]\n" + settings, "base/extra.yaml": extra,
		"app/kustomization.yaml": "resources: [../base]\nnamePrefix: x-\ntransformers: [mesh.yaml]\n", "app/mesh.yaml": istio,
	},
	"component": {
		"base/kustomization.yaml": "resources: [web.yaml]\n" + settings,
		"mesh/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ntransformers: [mesh.yaml]\n", "mesh/mesh.yaml": istio,
		"app/kustomization.yaml": "resources: [../base]\ncomponents: [../mesh]\nnamePrefix: c-\nreplicas:\n- {name: web, count: 3}\n",
	},
	"two variants of one base": {
		"base/kustomization.yaml": "resources: [web.yaml]\ntransformers: [extra.yaml]\n" + settings, "base/extra.yaml": extra,
		"a/kustomization.yaml":   "resources: [../base]\nnamePrefix: a-\n",
		"b/kustomization.yaml":   "resources: [../base]\nnamePrefix: b-\n",
		"app/kustomization.yaml": "resources: [../a, ../b]\ntransformers: [mesh.yaml]\n", "app/mesh.yaml": istio,
	},
	"replacements and variables": {
		"app/kustomization.yaml": "resources: [web.yaml, others.yaml]\ntransformers: [mesh.yaml]\nnamePrefix: v-\n" + settings +
			"replacements:\n- source: {kind: Service, fieldPath: metadata.name}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths: [\"spec.template.metadata.annotations.[example.com/version]\"]\n" +
			"vars:\n- {name: SVC, objref: {apiVersion: v1, kind: Service, name: web}}\n",
		"app/mesh.yaml": strings.Replace(extra, `value: "on"`, `value: "$(SVC)"`, 1),
	},
	"build metadata": {
		"app/kustomization.yaml": "resources: [web.yaml]\nbuildMetadata: [originAnnotations, transformerAnnotations]\ntransformers: [mesh.yaml]\n" + settings, "app/mesh.yaml": extra,
	},
	"sort order": {
		"app/kustomization.yaml": "resources: [web.yaml, others.yaml]\ntransformers: [mesh.yaml]\nsortOptions: {order: fifo}\n" + settings, "app/mesh.yaml": extra,
	},
	"own openapi": {
		"app/kustomization.yaml": "resources: [web.yaml]\ntransformers: [mesh.yaml]\nopenapi: {path: schema.json}\n" + settings, "app/mesh.yaml": extra,
		"app/schema.json": `{"definitions":{"example.Crd":{"properties":{"spec":{"type":"object"}},"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Crd","version":"v1"}]}}}`,
	},
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func TestParityWithKustomize(t *testing.T) {
	for name, files := range parity {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(files)
			for _, dir := range []string{"base", "app"} {
				if strings.Contains(files[dir+"/kustomization.yaml"], "web.yaml") {
					files[dir+"/web.yaml"], files[dir+"/others.yaml"] = deployment, others
				}
			}
			want, err := realKustomize(t, files, "app")
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := renderFiles(t, files, request("app"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, text(got)); diff != "" {
				t.Error(diff)
			}
			if got.Type != v1alpha1.BuildKustomize || len(got.Decisions) == 0 {
				t.Errorf("type %s, decisions %v", got.Type, got.Decisions)
			}
			if !strings.Contains(want, "istio-proxy") && !strings.Contains(want, "name: logger") {
				t.Error("the case injects nothing")
			}
		})
	}
}
