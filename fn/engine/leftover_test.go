// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// shared is a policy with a sidecar that has a volume in common with the app's containers, while the pod's label asks for it.
const shared = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: test}
spec:
  sidecars:
  - name: log
    select: {rules: [{labels: {matchLabels: {log: "on"}}, action: Inject}]}
    parameters: [{name: containers, annotation: log/containers, type: list}]
    template: |
      spec:
        containers: [{name: log, image: "log:1", volumeMounts: [{name: logs, mountPath: /logs}]}]
        volumes: [{name: logs, emptyDir: {}}]
    containers:
    - namesFrom: containers
      template: |
        env: [{name: LOGS, value: /logs}]
        volumeMounts: [{name: logs, mountPath: /logs}]
`

const loggedApp = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      labels:
        log: "on"
    spec:
      containers:
      - name: web
        image: web:1
        volumeMounts:
        - name: data
          mountPath: /data
      - name: cache
        image: cache:1
      volumes:
      - name: data
        emptyDir: {}
`

// worker is a copy of the injected container web.
const worker = `      - name: worker
        image: worker:1
        env:
        - name: LOGS
          value: /logs
        volumeMounts:
        - name: logs
          mountPath: /logs
        - name: data
          mountPath: /data
`

// TestMountsGoWithTheirVolume: of a container that was renamed or copied since, removal takes the mount of what is gone, and names the rest.
func TestMountsGoWithTheirVolume(t *testing.T) {
	injected, _ := try(t, shared, v1alpha1.ModeInject, loggedApp)
	const env = "        env:\n        - name: LOGS\n          value: /logs\n"
	for name, tc := range map[string]struct {
		edit, want func(string) string
		warnings   []string
	}{
		"not edited": {edit: func(s string) string { return s }, want: func(s string) string { return s }},
		"renamed": {
			edit: func(s string) string {
				return strings.Replace(s, "name: web\n        image", "name: front\n        image", 1)
			},
			want: func(s string) string {
				const rest = "        image: web:1\n        volumeMounts:\n        - name: data\n          mountPath: /data\n"
				return strings.Replace(s, "name: web\n"+rest, "name: front\n"+rest+env, 1)
			},
			warnings: []string{"spec.template.spec.containers[front].volumeMounts[/logs]: taking an earlier injection out: this was taken out, because the volume logs went with its sidecar",
				"spec.template.spec.containers[front].env[LOGS]: taking an earlier injection out: the sidecar log had set this in the container web"},
		},
		"copied": {
			edit: func(s string) string {
				return strings.Replace(s, "      - name: log\n", worker+"      - name: log\n", 1)
			},
			want: func(s string) string {
				copied := strings.Replace(worker, "        - name: logs\n          mountPath: /logs\n", "", 1)
				return strings.Replace(s, "      volumes:\n", copied+"      volumes:\n", 1)
			},
			warnings: []string{"containers[worker].volumeMounts[/logs]: "},
		},
		"deleted": {
			edit: func(s string) string { return without(s, "      - name: cache\n", "      - name: log\n") },
			want: func(s string) string { return without(s, "      - name: cache\n", "      volumes:\n") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			edited := tc.edit(injected)
			out, r := try(t, shared, v1alpha1.ModeRemove, edited)
			if want := tc.want(loggedApp); out != want {
				t.Errorf("removal gives\n%s\nwant\n%s", out, want)
			}
			got := warningsOf(r)
			if strings.Count(got, "earlier injection") != len(tc.warnings) {
				t.Errorf("%d warnings, want %d: %s", strings.Count(got, "earlier injection"), len(tc.warnings), got)
			}
			for _, want := range tc.warnings {
				if !strings.Contains(got, want) {
					t.Errorf("no %q: %s", want, got)
				}
			}
			again, _ := try(t, shared, v1alpha1.ModeInject, edited)
			if out, _ := try(t, shared, v1alpha1.ModeRemove, again); strings.Contains(out, "name: logs") {
				t.Errorf("injected again and removed, a mount of the volume stays:\n%s", out)
			}
		})
	}
}

// without returns a text without what is between two others, and the first of them.
func without(text, from, to string) string {
	before, rest, _ := strings.Cut(text, from)
	_, after, _ := strings.Cut(rest, to)
	return before + to + after
}

// TestMountsOfAVolumeThatStays: what somebody mounts of a sidecar's volume stays as long as the volume does.
func TestMountsOfAVolumeThatStays(t *testing.T) {
	app := strings.Replace(loggedApp, "      labels:", "      annotations:\n        log/containers: web\n      labels:", 1)
	injected, _ := try(t, shared, v1alpha1.ModeInject, app)
	edited := strings.Replace(injected, "      - name: cache\n        image: cache:1\n", "      - name: cache\n        image: cache:1\n        volumeMounts:\n        - name: logs\n          mountPath: /from\n", 1)
	again, r := try(t, shared, v1alpha1.ModeInject, edited)
	if again != edited || warningsOf(r) != "" {
		t.Errorf("injected again:\n%s\n%s", again, warningsOf(r))
	}
	off := strings.Replace(edited, `log: "on"`, `log: "off"`, 1)
	out, r := try(t, shared, v1alpha1.ModeInject, off)
	if want := strings.Replace(app, `log: "on"`, `log: "off"`, 1); out != want || !strings.Contains(warningsOf(r), "containers[cache].volumeMounts[/from]") {
		t.Errorf("without the sidecar:\n%s\n%s", out, warningsOf(r))
	}
}

// TestMountsOfAClaim: a StatefulSet's claim of the name of a sidecar's volume keeps its mounts.
func TestMountsOfAClaim(t *testing.T) {
	app := strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "spec:\n  template:", "spec:\n  volumeClaimTemplates:\n  - metadata:\n      name: logs\n  template:",
		"name: data\n          mountPath: /data", "name: logs\n          mountPath: /logs").Replace(loggedApp)
	injected, _ := try(t, shared, v1alpha1.ModeInject, app)
	if out, r := try(t, shared, v1alpha1.ModeRemove, injected); out != app || warningsOf(r) != "" {
		t.Errorf("removal gives\n%s\n%s", out, warningsOf(r))
	}
}

// onOthers is a policy with a sidecar and another one that sets a variable and a limit in the first one's container.
const onOthers = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: test}
spec:
  sidecars:
  - name: agent
    select: {default: Inject}
    template: "spec: {containers: [{name: agent, image: 'agent:1', resources: {requests: {cpu: 10m}}}]}"
  - name: settings
    select: {default: Inject}
    template: "spec: {containers: [{name: agent, env: [{name: TZ, value: UTC}], resources: {limits: {memory: 64Mi}}}]}"
`

// TestNoLeftoversOfOthers: a container of another sidecar that a sidecar changed is there, though it goes with its own.
func TestNoLeftoversOfOthers(t *testing.T) {
	const app = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        image: web:1
        env:
        - name: TZ
          value: Europe/Berlin
        resources:
          limits:
            memory: 1Gi
`
	injected, _ := try(t, onOthers, v1alpha1.ModeInject, app)
	if again, r := try(t, onOthers, v1alpha1.ModeInject, injected); again != injected || warningsOf(r) != "" {
		t.Errorf("injected again:\n%s\n%s", again, warningsOf(r))
	}
	if out, r := try(t, onOthers, v1alpha1.ModeRemove, injected); out != app || warningsOf(r) != "" {
		t.Errorf("removal gives\n%s\n%s", out, warningsOf(r))
	}
}

// TestLeftoversByValue: what the record has of a field is its value before the sidecar, so that a container with it was not changed.
func TestLeftoversByValue(t *testing.T) {
	const settings = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: test}
spec:
  sidecars:
  - name: settings
    select: {default: Inject}
    template: "spec: {containers: [{name: web, env: [{name: TZ, value: UTC}], resources: {limits: {memory: 64Mi}}}]}"
`
	const fields = "        env:\n        - name: TZ\n          value: Europe/Berlin\n        resources:\n          limits:\n            memory: 1Gi\n"
	const app = "apiVersion: v1\nkind: ReplicationController\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        image: web:1\n" + fields
	injected, _ := try(t, settings, v1alpha1.ModeInject, app+"      - name: worker\n        image: worker:1\n"+fields)
	renamed := strings.Replace(injected, "- name: web\n", "- name: front\n", 1)
	_, r := try(t, settings, v1alpha1.ModeRemove, renamed)
	got := warningsOf(r)
	for _, want := range []string{"containers[front].env[TZ]: ", "containers[front].resources: "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q: %s", want, got)
		}
	}
	if strings.Contains(got, "containers[worker]") {
		t.Errorf("what the sidecar never changed is named: %s", got)
	}
}
