// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// TestOwnersMadeAnew compares a pod that is being deleted though its owner is another one by now. A pod that stays and names
// another uid than its owner's is not from Git.
func TestOwnersMadeAnew(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop, uid: new}, spec: {template: {metadata: {labels: {app: db}}, spec: {containers: [{name: a, image: "a:1"}]}}}}`
	w, err := NewWorkload(registry, parse(t, set), "", "f")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		uid, deleted, image string
		state               State
	}{
		"its own":                       {"new", "", "a:1", Current},
		"another uid":                   {"old", "", "a:1", Foreign},
		"being deleted":                 {"old", "2026-01-01T00:00:00Z", "a:1", Current},
		"being deleted, of other image": {"old", "2026-01-01T00:00:00Z", "b:1", Changed},
	} {
		s := &Snapshot{}
		s.Add(parse(t, set))
		pod := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: db-0, namespace: shop, labels: {app: db}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true, uid: `+c.uid+`}]},
spec: {hostname: db-0, containers: [{name: a, image: "`+c.image+`"}]}}`)
		if c.deleted != "" {
			podmap.MapAt(pod, "metadata")["deletionTimestamp"] = c.deleted
		}
		s.Add(pod)
		r, err := Verify(t.Context(), s, commits{{w.Ref: w}}, Options{Registry: registry})
		if err != nil || len(r.Pods) != 1 || r.Pods[0].State != c.state {
			t.Errorf("%s: %+v, %v", name, r.Pods, err)
		}
	}
}
