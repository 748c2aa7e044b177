// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestPrompt has workloads that would make no pod for a long time, or ever.
func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct{ workload, want string }{
		"no replicas": {
			workload: `{kind: Deployment, spec: {replicas: 0, template: {}}}`,
			want:     `{kind: Deployment, spec: {replicas: 1, template: {}}}`,
		},
		"a suspended Job": {
			workload: `{kind: Job, spec: {suspend: true, template: {}}}`,
			want:     `{kind: Job, spec: {suspend: false, template: {}}}`,
		},
		"a CronJob of suspended Jobs": {
			workload: `{kind: CronJob, spec: {schedule: 0 3 * * *, suspend: true, jobTemplate: {spec: {suspend: true, template: {}}}}}`,
			want:     `{kind: CronJob, spec: {schedule: '* * * * *', suspend: false, jobTemplate: {spec: {suspend: false, template: {}}}}}`,
		},
		"one that makes its pods at once": {
			workload: `{kind: DaemonSet, spec: {template: {}}}`,
			want:     `{kind: DaemonSet, spec: {template: {}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := newUnstructuredObject(nil), newUnstructuredObject(nil)
			if err := yaml.Unmarshal([]byte(c.workload), &got.Object); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(c.want), &want.Object); err != nil {
				t.Fatal(err)
			}
			if err := Prompt(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(copyOf(want), copyOf(got)); diff != "" {
				t.Errorf("the workload (-want +got):\n%s", diff)
			}
		})
	}
}
