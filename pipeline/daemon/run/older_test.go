// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// olderObjects are policies as a process knows them.
type olderObjects struct{ version queue.ObjectVersion }

func (o *olderObjects) Policy(string, string) ([]byte, error) {
	return nil, errors.New("it was read")
}

func (o *olderObjects) PolicyVersion(string, string) queue.ObjectVersion { return o.version }

// TestAWorkerWaitsForTheNewestPolicy has a job come again where this process knows an older policy than the one that it was planned with,
// for a time. One that was made anew meanwhile is not older, whatever its generation.
func TestAWorkerWaitsForTheNewestPolicy(t *testing.T) {
	w := newWorks(t)
	objects := &olderObjects{}
	w.run(map[string]string{"shop": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop, namespace: team}\nspec:\n  source: {git: {url: " + w.repository.URL +
		", ref: {branch: main}}}\n  policies: [{name: mesh}]\n  publish: [{git: {branch: rendered}}]\n"})
	w.runner.Builder.Objects = objects
	for name, tc := range map[string]struct {
		known queue.ObjectVersion
		job   string
		age   time.Duration
		waits bool
	}{
		"an older one":               {known: queue.ObjectVersion{UID: "a", Generation: 4}, job: `{"policyVersions":{"team/mesh":{"uid":"a","generation":5}}}`, waits: true},
		"the same":                   {known: queue.ObjectVersion{UID: "a", Generation: 5}, job: `{"policyVersions":{"team/mesh":{"uid":"a","generation":5}}}`},
		"none":                       {job: `{"policyVersions":{"team/mesh":{"uid":"a","generation":5}}}`},
		"one that was made anew":     {known: queue.ObjectVersion{UID: "b", Generation: 1}, job: `{"policyVersions":{"team/mesh":{"uid":"a","generation":5}}}`},
		"an older one for long":      {known: queue.ObjectVersion{UID: "a", Generation: 4}, job: `{"policyVersions":{"team/mesh":{"uid":"a","generation":5}}}`, age: unknownFor},
		"a job of an earlier Prerig": {known: queue.ObjectVersion{UID: "a", Generation: 4}, job: `{"policies":{"team/mesh":5}}`},
	} {
		var job queue.Job
		if err := json.Unmarshal([]byte(tc.job), &job); err != nil {
			t.Fatal(err)
		}
		objects.version = tc.known
		job.Pipeline, job.Cause, job.Since = "team/shop", name, time.Now().Add(-tc.age)
		err := w.runner.Do(t.Context(), job)
		var again *queue.RetryError
		if waits := errors.As(err, &again) && strings.Contains(err.Error(), "newest InjectionPolicy team/mesh"); waits != tc.waits {
			t.Errorf("%s: the job ended with %v", name, err)
		}
	}
}

// TestAReplicaThatIsCutOffRendersWithNoOlderPolicy has a pipeline that has run with a newer policy than a replica knows.
func TestAReplicaThatIsCutOffRendersWithNoOlderPolicy(t *testing.T) {
	now := webOf("1", 1, "old")
	_, b := newReplicas(newWorks(t), &now)
	entry, _ := b.runner.Catalog.Get("shop/web")
	entry.Pipeline.Spec.Policies = []v1alpha1.PolicyRef{{Name: "mesh"}}
	b.runner.Builder.Objects = &olderObjects{queue.ObjectVersion{UID: "a", Generation: 4}}
	state, revision, err := b.runner.Store.Load(t.Context(), "shop/web")
	if err != nil {
		t.Fatal(err)
	}
	state.Seen.Policies = map[string]queue.ObjectVersion{"shop/mesh": {UID: "a", Generation: 5}}
	if _, err := b.runner.Store.Save(t.Context(), "shop/web", state, revision); err != nil {
		t.Fatal(err)
	}
	if b.look(); !b.try() {
		t.Error("it renders with an older policy")
	}
	b.objects.cut = false
	b.look()
	job := queue.Job{Pipeline: "shop/web", Cause: "old", Since: time.Now().Add(-time.Hour), Force: true}
	if err := b.runner.Do(t.Context(), job); err != nil && strings.Contains(err.Error(), "newest") {
		t.Errorf("it waits although the API server has nothing newer: %v", err)
	}
}
