// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

const publishedJob = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: "registry.example.com/migrate:1"}]
`

// jobStages takes a Job through the stages, with spec.jobs.
func jobStages(t *testing.T, jobs v1alpha1.Jobs) *subject {
	t.Helper()
	items, err := itemsOf("job.yaml", []byte(publishedJob))
	if err != nil {
		t.Fatal(err)
	}
	b := builtInBatch("job.yaml", []string{"istio"}, items)
	policies := b.policies
	b.policies = func(next bool) ([]*v1alpha1.InjectionPolicy, error) {
		made, err := policies(next)
		for _, p := range made {
			p.Spec.Jobs = jobs
		}
		return made, err
	}
	subjects, err := runInjectionStages(context.Background(), b)
	if err != nil || len(subjects) != 1 {
		t.Fatalf("%d subjects: %v", len(subjects), err)
	}
	return subjects[0]
}

// The oracle knows of a rejected update only if the user changed the Job or took the injection out: a kept Job that a new version of the
// sidecars changes is a failure.
func TestOnlyTheUsersChangeOfAJobMayBeRejected(t *testing.T) {
	immutable := problem{Field: "spec.template", Type: "FieldValueImmutable"}
	kept := jobStages(t, v1alpha1.JobsKeepPublished)
	for stage, want := range map[stage]bool{upgraded: false, rebuilt: false, removed: true, changed: true} {
		got := expectedRejectionReason(question{kept, "update", stage}, immutable) != ""
		if got != want {
			t.Errorf("%s: a rejected update is expected: %t, want %t", stageNames[stage], got, want)
		}
	}
	for _, stage := range []stage{upgraded, rebuilt} {
		if diff := cmp.Diff(kept.stages[injected]["spec"], kept.stages[stage]["spec"]); diff != "" {
			t.Errorf("%s: the kept Job has changed:\n%s", stageNames[stage], diff)
		}
	}
	if cmp.Equal(kept.stages[injected]["spec"], kept.stages[changed]["spec"]) {
		t.Error("the stage changed does not change the Job")
	}

	followed := jobStages(t, v1alpha1.JobsFollow)
	for _, stage := range []stage{upgraded, rebuilt} {
		if cmp.Equal(followed.stages[injected]["spec"], followed.stages[stage]["spec"]) {
			t.Errorf("%s: the Job does not change with spec.jobs: Follow", stageNames[stage])
		}
		if reason := expectedRejectionReason(question{followed, "update", stage}, immutable); reason != "" {
			t.Errorf("%s: the oracle expects the rejection of a Job that only the sidecars change: %s", stageNames[stage], reason)
		}
	}
}
