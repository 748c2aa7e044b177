// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDifferences names the fields as people would.
func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		want, found string
		fields      []string
	}{
		"equal":                {`spec: {containers: [{name: a, image: b}]}`, `spec: {containers: [{name: a, image: b}]}`, nil},
		"an image":             {`spec: {containers: [{name: a, image: b}]}`, `spec: {containers: [{name: a, image: c}]}`, []string{"spec.containers[a].image"}},
		"a container":          {`spec: {containers: [{name: a}]}`, `spec: {containers: [{name: a}, {name: b}]}`, []string{"spec.containers[b]"}},
		"no container":         {`spec: {containers: [{name: a}, {name: b}]}`, `spec: {containers: [{name: a}]}`, []string{"spec.containers[b]"}},
		"the order":            {`spec: {initContainers: [{name: a}, {name: b}]}`, `spec: {initContainers: [{name: b}, {name: a}]}`, []string{"spec.initContainers"}},
		"no order":             {`spec: {volumes: [{name: a}, {name: b}]}`, `spec: {volumes: [{name: b}, {name: a}]}`, nil},
		"two of one name":      {`spec: {volumes: []}`, `spec: {volumes: [{name: a}, {name: a}]}`, []string{"spec.volumes[a]", "spec.volumes[a#2]"}},
		"an empty list":        {`spec: {tolerations: []}`, `spec: {}`, nil},
		"labels":               {`metadata: {}`, `metadata: {labels: {a: b, "x.io/y": z}}`, []string{"metadata.labels.a", `metadata.labels["x.io/y"]`}},
		"a finalizer":          {`metadata: {}`, `metadata: {finalizers: [x]}`, []string{"metadata.finalizers[x]"}},
		"an empty map":         {`spec: {volumes: [{name: a}]}`, `spec: {volumes: [{name: a, emptyDir: {}}]}`, []string{"spec.volumes[a].emptyDir"}},
		"arguments as a whole": {`spec: {containers: [{name: a, args: [x, y]}]}`, `spec: {containers: [{name: a, args: [x]}]}`, []string{"spec.containers[a].args"}},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, d := range differencesBetweenPods(parse(t, c.want), parse(t, c.found)) {
				fields = append(fields, d.fieldPathWithIdentities())
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestManagersOwn reads managedFields as the API server writes them.
func TestManagersOwn(t *testing.T) {
	m := manager{fields: parse(t, `
"f:metadata": {"f:labels": {".": {}, "f:app": {}}}
"f:spec":
  "f:containers":
    'k:{"name":"a"}': {".": {}, "f:image": {}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}}
  "f:tolerations": {}
`)}
	pod := parse(t, `
metadata: {labels: {app: x, tier: y}}
spec:
  containers: [{name: a, image: b, command: [c], ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP}]}]
  tolerations: [{key: a}]
`)
	owned := map[string]bool{}
	for _, c := range differencesBetweenPods(parse(t, `{metadata: {labels: {}}, spec: {containers: [{name: a, ports: []}]}}`), pod) {
		owned[c.fieldPathWithIdentities()] = m.ownsFieldAt(c.path)
	}
	want := map[string]bool{
		"metadata.labels.app": true, "metadata.labels.tier": false, "spec.containers[a].image": true, "spec.containers[a].command": false,
		"spec.containers[a].ports[80/TCP]": true, "spec.containers[a].ports[81/TCP]": false, `spec.tolerations[{"key":"a"}]`: true,
	}
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Error(diff)
	}
}
