// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		webhook, prerig string
		paths           []string // of the differences
		rules           int      // how many were needed
	}{
		"the same": {
			webhook: `{metadata: {name: a}, spec: {containers: [{name: app}]}}`,
			prerig:  `{metadata: {name: a}, spec: {containers: [{name: app}]}}`,
		},
		"generated names and digests": {
			webhook: `{metadata: {name: web-6d4cf56db6-x, uid: u, labels: {app: web, pod-template-hash: 6d4cf56db6},
			  ownerReferences: [{kind: ReplicaSet, name: web-6d4cf56db6, uid: u, controller: true}]}}`,
			prerig: `{metadata: {name: web-59c6df4d86-y, uid: v, labels: {app: web, pod-template-hash: 59c6df4d86},
			  ownerReferences: [{kind: ReplicaSet, name: web-59c6df4d86, uid: v, controller: true}]}}`,
			rules: 3,
		},
		"an owner of another kind": {
			webhook: `{metadata: {ownerReferences: [{kind: ReplicaSet, name: web}]}}`,
			prerig:  `{metadata: {ownerReferences: [{kind: Job, name: web}]}}`,
			paths:   []string{"metadata.ownerReferences.[0].kind"},
		},
		"the volume of the account": {
			webhook: `{spec: {volumes: [{name: kube-api-access-abcde}], containers: [{name: app, volumeMounts: [{name: kube-api-access-abcde, mountPath: /a}]}]}}`,
			prerig:  `{spec: {volumes: [{name: kube-api-access-z2345}], containers: [{name: app, volumeMounts: [{name: kube-api-access-z2345, mountPath: /a}]}]}}`,
			rules:   1,
		},
		"its mount in what is recorded": {
			webhook: `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy","tty":true,"volumeMounts":[{"name":"kube-api-access-abcde","mountPath":"/a"}]}]}'}}}`,
			prerig:  `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy","tty":true}]}'}}}`,
			rules:   1,
		},
		"a stop signal in what is recorded": {
			webhook: `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy"}]}'}}}`,
			prerig:  `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy","lifecycle":{"stopSignal":"SIGUSR1"}}]}'}}}`,
			rules:   1,
		},
		"another mount in what is recorded": {
			webhook: `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy","volumeMounts":[{"name":"data","mountPath":"/a"}]}]}'}}}`,
			prerig:  `{metadata: {annotations: {proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy"}]}'}}}`,
			paths:   []string{"metadata.annotations.proxy.istio.io/overrides"},
		},
		"the index of a Job in the proxy": {
			webhook: `{spec: {initContainers: [{name: istio-init}], containers: [{name: istio-proxy, env: [{name: A}]}]}}`,
			prerig:  `{spec: {initContainers: [{name: istio-init, env: [{name: JOB_COMPLETION_INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]}], containers: [{name: istio-proxy, env: [{name: A}, {name: JOB_COMPLETION_INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]}]}}`,
			rules:   1,
		},
		"the index of a Job in the application": {
			webhook: `{spec: {containers: [{name: app, env: [{name: A}]}]}}`,
			prerig:  `{spec: {containers: [{name: app, env: [{name: A}, {name: JOB_COMPLETION_INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}]}]}}`,
			paths:   []string{"spec.containers.[app].env.[JOB_COMPLETION_INDEX]"},
		},
		"a value of its own in the proxy": {
			webhook: `{spec: {containers: [{name: istio-proxy, env: [{name: A}]}]}}`,
			prerig:  `{spec: {containers: [{name: istio-proxy, env: [{name: A}, {name: JOB_COMPLETION_INDEX, value: "1"}]}]}}`,
			paths:   []string{"spec.containers.[istio-proxy].env.[JOB_COMPLETION_INDEX]"},
		},
		"the claims of a StatefulSet": {
			webhook: `{metadata: {labels: {statefulset.kubernetes.io/pod-name: db-0}}, spec: {volumes: [{name: istio-envoy}, {name: disk, persistentVolumeClaim: {claimName: disk-db-0}}, {name: a}]}}`,
			prerig:  `{metadata: {labels: {statefulset.kubernetes.io/pod-name: db-0}}, spec: {volumes: [{name: disk, persistentVolumeClaim: {claimName: disk-db-0}}, {name: istio-envoy}, {name: a}]}}`,
			rules:   1,
		},
		"a claim of its own": {
			webhook: `{spec: {volumes: [{name: istio-envoy}, {name: disk, persistentVolumeClaim: {claimName: disk-db-0}}]}}`,
			prerig:  `{spec: {volumes: [{name: disk, persistentVolumeClaim: {claimName: disk-db-0}}, {name: istio-envoy}]}}`,
			paths:   []string{"spec.volumes (order)"},
		},
		"a variable and its place": {
			webhook: `{spec: {containers: [{name: app, env: [{name: A, value: x}, {name: B}]}]}}`,
			prerig:  `{spec: {containers: [{name: app, env: [{name: B}, {name: A, value: "y"}]}]}}`,
			paths:   []string{"spec.containers.[app].env.[A].value"},
		},
		"only the order": {
			webhook: `{spec: {volumes: [{name: a}, {name: b}]}}`,
			prerig:  `{spec: {volumes: [{name: b}, {name: a}]}}`,
			paths:   []string{"spec.volumes (order)"},
		},
		"empty and missing": {
			webhook: `{spec: {containers: [{name: app, resources: {}}]}}`,
			prerig:  `{spec: {containers: [{name: app}]}}`,
			paths:   []string{"spec.containers.[app].resources"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			webhook, prerig := newUnstructuredObject(nil), newUnstructuredObject(nil)
			if err := yaml.Unmarshal([]byte(c.webhook), &webhook.Object); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(c.prerig), &prerig.Object); err != nil {
				t.Fatal(err)
			}
			used := map[string]int{}
			var paths []string
			for _, d := range Compare(webhook, prerig, used) {
				paths = append(paths, d.Place)
			}
			if d := cmp.Diff(c.paths, paths); d != "" {
				t.Errorf("the differences (-want +got):\n%s", d)
			}
			if len(used) != c.rules {
				t.Errorf("%d rules were needed, want %d: %v", len(used), c.rules, slices.Collect(maps.Keys(used)))
			}
		})
	}
}
