// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/workload"
)

// TestResizedPodOfAnOlderCommit finds the commit that a resized pod is of: the resize neither hides that it is an older one, nor that the
// workload was removed.
func TestResizedPodOfAnOlderCommit(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	state := func(id, image, cpu string) map[Ref]*Workload {
		w, err := NewWorkload(registry, parse(t, fmt.Sprintf(
			`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: a, image: %q, resources: {requests: {cpu: %s}}}]}}`, image, cpu)), "", "f")
		if err != nil {
			t.Fatal(err)
		}
		w.Commit = Commit{ID: id}
		return map[Ref]*Workload{w.Ref: w}
	}
	for name, c := range map[string]struct {
		history     commits
		image, want string
	}{
		"of the newest":       {commits{state("c0", "a:2", "100m"), state("c1", "a:1", "100m")}, "a:2", "Resized c0"},
		"of an older one":     {commits{state("c0", "a:2", "100m"), state("c1", "a:1", "100m")}, "a:1", "Older c1"},
		"of a removed one":    {commits{{}, state("c1", "a:1", "100m")}, "a:1", "Removed c1"},
		"of none":             {commits{state("c0", "a:2", "100m"), state("c1", "a:1", "100m")}, "a:3", "Changed c0"},
		"to an older value":   {commits{state("c0", "a:1", "100m"), state("c1", "a:1", "300m")}, "a:1", "Resized c0"},
		"to the newest value": {commits{state("c0", "a:1", "300m"), state("c1", "a:1", "100m")}, "a:1", "Current c0"},
	} {
		s := &Snapshot{}
		s.Add(parse(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, creationTimestamp: %s, managedFields: [
			{manager: updater, subresource: resize, time: %s, fieldsV1: {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}}}}]},
			spec: {containers: [{name: a, image: %q, resources: {requests: {cpu: 300m}}}]}}`, before, after, c.image)))
		r, err := Verify(t.Context(), s, c.history, Options{Registry: registry, AllNamespaces: true})
		if err != nil {
			t.Fatal(err)
		}
		pod := r.Pods[0]
		if got := fmt.Sprintf("%s %s", pod.State, pod.Commit.ID); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		resize := "spec.containers[a].resources.requests.cpu"
		if named := strings.Contains(fieldsOf(pod), resize); named != (pod.State != Current) {
			t.Errorf("%s: differs in %s", name, fieldsOf(pod))
		}
	}
}
