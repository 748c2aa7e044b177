// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOwnMount: a mount of the app's own is not given another volume, in whichever way a sidecar changes the container.
func TestOwnMount(t *testing.T) {
	const pod = `{metadata: {}, spec: {containers: [{name: other, image: i}, {name: web, image: i, volumeMounts: [{name: data, mountPath: /data}, {name: logs, mountPath: /var/log/app, subPath: x}]}]}}`
	const refused = "spec.containers[1].volumeMounts[1]: the container web already mounts the volume logs at /var/log/app, where the sidecar gate mounts shared; choose another path for one of them"
	for name, tc := range map[string]struct{ mounts, err, want string }{
		"another volume":  {mounts: "[{name: shared, mountPath: /var/log/app}]", err: refused},
		"a slash more":    {mounts: "[{name: shared, mountPath: /var/log/app/}]", err: refused},
		"the same volume": {mounts: "[{name: logs, mountPath: /var/log/app, readOnly: true}]", want: "[{name: data, mountPath: /data}, {name: logs, mountPath: /var/log/app, subPath: x, readOnly: true}]"},
		"below":           {mounts: "[{name: shared, mountPath: /var/log/app/x}]", want: "[{name: shared, mountPath: /var/log/app/x}, {name: data, mountPath: /data}, {name: logs, mountPath: /var/log/app, subPath: x}]"},
		"deleted first": {mounts: "[{mountPath: /var/log/app, $patch: delete}, {name: shared, mountPath: /var/log/app}]",
			want: "[{name: shared, mountPath: /var/log/app}, {name: data, mountPath: /data}]"},
		"all replaced": {mounts: "[{$patch: replace}, {name: shared, mountPath: /var/log/app}]", want: "[{name: shared, mountPath: /var/log/app}]"},
	} {
		for way, text := range map[string]string{
			"container": `{name: gate, containers: [{names: [web], template: "volumeMounts: ` + tc.mounts + `"}], order: {position: First}, template: "spec: {containers: [{name: added, image: i}]}"}`,
			"template":  `{name: gate, order: {position: First}, template: "spec: {containers: [{name: added, image: i}, {name: web, volumeMounts: ` + tc.mounts + `}]}"}`,
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				got, err := compiled(t, text).Inject(request(t, pod))
				if tc.err != "" {
					wantError(t, err, tc.err)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				list := listOf(got.Pod, "containers")
				want := object(t, "{mounts: "+tc.want+"}")["mounts"]
				if diff := cmp.Diff(want, list[indexOf(list, "web")]["volumeMounts"]); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestValueFrom: a variable has a value or a source, never both, and removal gives back what it had.
func TestValueFrom(t *testing.T) {
	for name, tc := range map[string]struct{ was, patch, want string }{
		"value over source":       {"{name: A, valueFrom: {configMapKeyRef: {name: db, key: host}}}", "{name: A, value: x}", "{name: A, value: x}"},
		"source over value":       {"{name: A, value: x}", "{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}", "{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}"},
		"value over value":        {"{name: A, value: x}", "{name: A, value: z}", "{name: A, value: z}"},
		"empty value":             {"{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}", "{name: A, value: ''}", "{name: A, value: '', valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}"},
		"source over empty value": {"{name: A, value: ''}", "{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}", "{name: A, value: '', valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}"},
		"source taken away":       {"{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}", "{name: A, value: x, valueFrom: null}", "{name: A, value: x}"},
		"deleted first":           {"{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}", "{name: A, $patch: delete}, {name: A, value: x}", "{name: A, value: x}"},
	} {
		for way, text := range map[string]string{
			"container": `{name: gate, containers: [{template: "env: [` + tc.patch + `]"}]}`,
			"template":  `{name: gate, template: "spec: {containers: [{name: web, env: [` + tc.patch + `]}]}"}`,
		} {
			t.Run(name+" by "+way, func(t *testing.T) {
				s := compiled(t, text)
				pod := object(t, "{metadata: {}, spec: {containers: [{name: web, image: i, env: ["+tc.was+", {name: B, value: b}]}]}}")
				got, err := s.Inject(Request{Pod: pod, Original: pod})
				if err != nil {
					t.Fatal(err)
				}
				want := object(t, "{env: ["+tc.want+", {name: B, value: b}]}")["env"]
				if diff := cmp.Diff(want, listOf(got.Pod, "containers")[0]["env"]); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(pod, through(t, s, pod, nil)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
