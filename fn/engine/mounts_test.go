// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
)

// TestMountOfAMissingVolume: what the API server refuses for a sidecar's mount is an error, and a warning where the volume may still come.
func TestMountOfAMissingVolume(t *testing.T) {
	const text = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: test}
spec:
  workloads: [{apiVersion: example.com/v1, kind: Worker, podTemplate: spec.template}]
  sidecars:
  - name: log
    select: {default: Inject}
    template: "spec: {initContainers: [{name: log, image: 'log:1', volumeMounts: [{name: logs, mountPath: /logs}]}]}"
`
	const template = "apiVersion: %s\nkind: %s\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        image: web:1\n"
	const mount = "        volumeMounts:\n        - name: logs\n          mountPath: /var/log\n"
	const want = "spec.volumes: the container log of the sidecar log mounts the volume logs at /logs, and the pod has no such volume; add it to the pod's volumes"
	for name, tc := range map[string]struct {
		input    string
		severity result.Severity
	}{
		"Deployment":            {fmt.Sprintf(template, "apps/v1", "Deployment"), result.Error},
		"Job":                   {fmt.Sprintf(template, "batch/v1", "Job"), result.Error},
		"ReplicationController": {fmt.Sprintf(template, "v1", "ReplicationController"), result.Error},
		"StatefulSet":           {fmt.Sprintf(template, "apps/v1", "StatefulSet"), result.Warning},
		"another kind":          {fmt.Sprintf(template, "example.com/v1", "Worker"), result.Warning},
		"Pod":                   {"apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: web:1\n", result.Warning},
		"the app mounts it":     {fmt.Sprintf(template, "apps/v1", "StatefulSet") + mount, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, r := try(t, text, v1alpha1.ModeInject, tc.input)
			var found []result.Severity
			for _, one := range r.Results {
				if strings.Contains(one.String(), want) {
					found = append(found, one.Severity)
				}
			}
			if tc.severity == "" && len(found) > 0 || tc.severity != "" && (len(found) != 1 || found[0] != tc.severity) {
				t.Errorf("got %v, want %q: %v", found, tc.severity, r.Results)
			}
			if kept := out == tc.input; kept != (tc.severity == result.Error) {
				t.Errorf("unchanged: %t\n%s", kept, out)
			}
		})
	}
}
