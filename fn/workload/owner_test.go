// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

func TestOwner(t *testing.T) {
	refs := func(ref string) string { return "generateName: web-, ownerReferences: [" + ref + "]" }
	for name, tc := range map[string]struct {
		src  string
		want Owner
	}{
		"pod":                    {"{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {}}", Owner{"v1", "Pod", "web", "shop"}},
		"pod, name generated":    {"{apiVersion: v1, kind: Pod, metadata: {generateName: web-}, spec: {}}", Owner{"v1", "Pod", "", ""}},
		"pod, named, with owner": {"{apiVersion: v1, kind: Pod, metadata: {name: web, ownerReferences: [{apiVersion: foo/v1, kind: Bar, name: bar, controller: true}]}, spec: {}}", Owner{"v1", "Pod", "web", ""}},
		"pod of a custom controller": {"{apiVersion: v1, kind: Pod, metadata: {name: web-x, " + refs("{apiVersion: foo/v1, kind: Bar, name: bar, controller: true}") + "}, spec: {}}",
			Owner{"foo/v1", "Bar", "bar", ""}},
		"pod whose owner does not control it": {"{apiVersion: v1, kind: Pod, metadata: {name: web-x, " + refs("{apiVersion: foo/v1, kind: Bar, name: bar}") + "}, spec: {}}",
			Owner{"v1", "Pod", "web-x", ""}},
		"pod of a deployment": {"{apiVersion: v1, kind: Pod, metadata: {labels: {pod-template-hash: abc}, " + refs("{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true}") + "}, spec: {}}",
			Owner{"apps/v1", "Deployment", "web", ""}},
		"pod of a rollout": {"{apiVersion: v1, kind: Pod, metadata: {labels: {rollouts-pod-template-hash: abc}, " + refs("{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true}") + "}, spec: {}}",
			Owner{"v1alpha1", "Rollout", "web", ""}},
		"pod of a cron job": {"{apiVersion: v1, kind: Pod, metadata: {" + refs("{apiVersion: batch/v1, kind: Job, name: hello-1599753180, controller: true}") + "}, spec: {}}",
			Owner{"batch/v1", "CronJob", "hello", ""}},
		"pod of a deployment config": {"{apiVersion: v1, kind: Pod, metadata: {labels: {deploymentconfig: web}, " + refs("{apiVersion: v1, kind: ReplicationController, name: web-1, controller: true}") + "}, spec: {}}",
			Owner{"v1", "DeploymentConfig", "web", ""}},
		"job that looks like a cron job's": {"{apiVersion: batch/v1, kind: Job, metadata: {name: backup-12345678}, spec: {template: {spec: {}}}}", Owner{"batch/v1", "CronJob", "backup", ""}},
		"job with a short number":          {"{apiVersion: batch/v1, kind: Job, metadata: {name: backup-1234567}, spec: {template: {spec: {}}}}", Owner{"batch/v1", "Job", "backup-1234567", ""}},
		"replica set of a deployment":      {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc}, spec: {template: {metadata: {labels: {pod-template-hash: abc}}, spec: {}}}}", Owner{"apps/v1", "Deployment", "web", ""}},
		"generated name":                   {"{apiVersion: batch/v1, kind: Job, metadata: {generateName: migrate-}, spec: {template: {spec: {}}}}", Owner{"batch/v1", "Job", "migrate", ""}},
		"no name":                          {"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}", Owner{"apps/v1", "Deployment", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := registry(t).Templates(object(t, tc.src))
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, %v", got, err)
			}
			if got[0].Owner != tc.want {
				t.Errorf("got %+v, want %+v", got[0].Owner, tc.want)
			}
			if generated := strings.Contains(name, "generated name"); got[0].NameGenerated != generated {
				t.Errorf("NameGenerated is %v", got[0].NameGenerated)
			}
		})
	}
}

// TestOwnerForJobs: which Jobs count as a CronJob's hangs on the release (GetDeployMetaFromPod in pkg/kube/util.go at the tags).
func TestOwnerForJobs(t *testing.T) {
	for _, tc := range []struct{ release, name, kind, owner string }{
		{"1.31.0", "backup-12345678", "CronJob", "backup"}, {"1.31.0", "backup-1234567", "Job", "backup-1234567"},
		{"1.13.0", "backup-123456789", "CronJob", "backup"}, {"1.12.0", "backup-123456789", "Job", "backup-123456789"},
		{"1.12.1", "backup-123456789", "CronJob", "backup"}, {"1.11.4", "backup-12345678", "Job", "backup-12345678"},
		{"1.11.5", "backup-12345678", "CronJob", "backup"}, {"1.10.5", "backup-12345678", "Job", "backup-12345678"},
		{"1.10.5", "backup-1234567890", "CronJob", "backup"}, {"1.8.0", "backup-1234567890", "CronJob", "backup"},
		{"1.7.1", "backup-1234567890", "Job", "backup-1234567890"}, {"1.6.10", "backup-1234567890", "CronJob", "backup"},
	} {
		for _, src := range []string{
			"{apiVersion: batch/v1, kind: Job, metadata: {name: " + tc.name + "}, spec: {template: {spec: {}}}}",
			"{apiVersion: v1, kind: Pod, metadata: {generateName: x-, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: " + tc.name + ", controller: true}]}, spec: {}}",
		} {
			got, err := registry(t).Templates(object(t, src))
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, %v", got, err)
			}
			of := release.Between(tc.release, tc.release)[0].From
			if o := got[0].OwnerFor(of); o.Kind != tc.kind || o.Name != tc.owner {
				t.Errorf("%s, %s: got %+v, want the %s %s", tc.release, src, o, tc.kind, tc.owner)
			}
		}
	}
}

func TestOwnerFor(t *testing.T) {
	cron := Template{Owner: Owner{APIVersion: "batch/v1", Kind: "CronJob", Name: "hello"}}
	for minor, want := range map[int]string{8: "batch/v1beta1", 21: "batch/v1beta1", 22: "batch/v1", 31: "batch/v1"} {
		if got := cron.OwnerFor(release.Newest(minor)).APIVersion; got != want {
			t.Errorf("1.%d: got %s, want %s", minor, got, want)
		}
	}
	deployment := Template{Owner: Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	if got := deployment.OwnerFor(release.Newest(8)); got != deployment.Owner {
		t.Errorf("a Deployment changed: %+v", got)
	}
}
