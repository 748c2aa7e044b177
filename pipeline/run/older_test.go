// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/queue"
)

// olderObjects are policies as a process knows them.
type olderObjects struct{ generation int64 }

func (o *olderObjects) Policy(string, string) ([]byte, error) {
	return nil, errors.New("it was read")
}

func (o *olderObjects) Generation(string, string) int64 { return o.generation }

// TestAWorkerWaitsForTheNewestPolicy has a job come again where this process knows an older policy than the one that it was planned with.
func TestAWorkerWaitsForTheNewestPolicy(t *testing.T) {
	w := newWorks(t)
	objects := &olderObjects{generation: 1}
	w.run(map[string]string{"shop": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop, namespace: team}\nspec:\n  source: {git: {url: " + w.repository.URL +
		", ref: {branch: main}}}\n  policies: [{name: mesh}]\n  publish: [{git: {branch: rendered}}]\n"})
	w.runner.Builder.Objects = objects
	job := queue.Job{Pipeline: "team/shop", Cause: "1", Policies: map[string]int64{"team/mesh": 2}}
	var again *queue.RetryError
	if err := w.runner.Do(t.Context(), job); !errors.As(err, &again) || !strings.Contains(err.Error(), "newest InjectionPolicy team/mesh") {
		t.Fatalf("the job ended with %v", err)
	}
	objects.generation = 2
	if err := w.runner.Do(t.Context(), job); errors.As(err, &again) && strings.Contains(err.Error(), "newest") {
		t.Errorf("it waits still: %v", err)
	}
}
