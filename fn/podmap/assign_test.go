// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn/manifest"
)

// assignCases are pods of which each has something that JSON reads in a way of its own. assigned says that JSON is not needed.
var assignCases = []struct {
	name, pod string
	assigned  bool
}{
	{"plain", `{metadata: {name: a, labels: {app: a}}, spec: {containers: [{name: a, image: b, args: [c], env: [{name: d, value: e}]}]}}`, true},
	{"probe", `{spec: {containers: [{name: a, livenessProbe: {httpGet: {port: http, path: /}, periodSeconds: 3}, startupProbe: {grpc: {port: 1, service: ""}}}]}}`, true},
	{"port as number", `{spec: {containers: [{name: a, readinessProbe: {tcpSocket: {port: 8080}}}]}}`, true},
	{"quantities", `{spec: {containers: [{name: a, resources: {limits: {cpu: 1.5, memory: 1Gi}, requests: {cpu: 100m}}}]}}`, true},
	{"wrong quantity", `{spec: {containers: [{name: a, resources: {limits: {cpu: lots}}}]}}`, false},
	{"time", `{metadata: {creationTimestamp: "2020-01-02T03:04:05Z"}}`, true},
	{"null time", `{metadata: {creationTimestamp: null}, spec: null}`, true},
	{"nulls", `{metadata: {labels: {a: null}, annotations: null}, spec: {containers: [null, {name: null, env: null}], securityContext: null}}`, true},
	{"empty", `{metadata: {labels: {}}, spec: {containers: [], nodeSelector: {}, securityContext: {}}}`, true},
	{"pointers", `{spec: {hostUsers: false, runtimeClassName: "", terminationGracePeriodSeconds: 0}}`, true},
	{"sources of volumes", `{spec: {volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, projected: {sources: [{secret: {name: c}}], defaultMode: 420}}]}}`, true},
	{"affinity", `{spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a}}]}}}}`, true},
	{"unknown fields", `{metadata: {foo: 1}, spec: {bar: [1], containers: [{name: a, baz: {}}]}}`, true},
	{"other case", `{spec: {Containers: [{name: a}]}}`, true},
	{"number for text", `{spec: {containers: [{name: 1}]}}`, false},
	{"text for number", `{spec: {priority: "1"}}`, false},
	{"too big", `{spec: {priority: 3000000000}}`, false},
	{"not whole", `{spec: {priority: 1.5}}`, false},
	{"whole with exponent", `{spec: {priority: 1e2}}`, true},
	{"text for map", `{spec: {containers: [a]}}`, false},
	{"map for list", `{spec: {containers: {}}}`, false},
	{"list for map", `{metadata: {labels: []}}`, false},
	{"text for bool", `{spec: {hostNetwork: "true"}}`, false},
	{"managed fields", `{metadata: {managedFields: [{manager: a, fieldsV1: {"f:b": {}}}]}}`, true},
}

func TestAssign(t *testing.T) {
	for _, c := range assignCases {
		t.Run(c.name, func(t *testing.T) {
			v, err := manifest.Decode([]byte(c.pod))
			if err != nil {
				t.Fatal(err)
			}
			obj, _ := v.(map[string]any)
			if got := assignedAsJSON(t, obj); got != c.assigned {
				t.Errorf("assign reported %t, want %t", got, c.assigned)
			}
		})
	}
}

// JSON replaces bytes that are no UTF-8, which a program that hands over a pod may have in it.
func TestAssignNotUTF8(t *testing.T) {
	for name, labels := range map[string]map[string]any{"value": {"a": "\xff"}, "key": {"\xff": "a"}} {
		t.Run(name, func(t *testing.T) {
			if assignedAsJSON(t, map[string]any{"metadata": map[string]any{"labels": labels}}) {
				t.Error("assign took what JSON changes")
			}
		})
	}
}

// assignedAsJSON compares decodeInto with JSON alone, and reports whether JSON was not needed.
func assignedAsJSON(t *testing.T, obj map[string]any) bool {
	t.Helper()
	var want, got corev1.Pod
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(text, &want)
	gotErr := decodeInto(obj, &got)
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		t.Errorf("the error is %v, want %v", gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-JSON +assigned):\n%s", diff)
	}
	return PodSchema().assignDecodedValue(obj, reflect.ValueOf(&corev1.Pod{}).Elem())
}

// FuzzAssign compares with JSON on whatever is a map.
func FuzzAssign(f *testing.F) {
	for _, c := range assignCases {
		f.Add(c.pod)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := manifest.Decode([]byte(text))
		if obj, ok := v.(map[string]any); ok && err == nil {
			assignedAsJSON(t, obj)
		}
	})
}
