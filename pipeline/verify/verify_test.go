// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// commits are a History whose newest commit comes first.
type commits []map[Ref]*Workload

func (c commits) Head() Commit                 { return Commit{ID: "c0", Subject: "newest"} }
func (c commits) Workloads() map[Ref]*Workload { return c[0] }
func (c commits) Versions(ref Ref) iter.Seq2[*Workload, error] {
	return func(yield func(*Workload, error) bool) {
		for _, state := range c[1:] {
			if w := state[ref]; w != nil && !yield(w, nil) {
				return
			}
		}
	}
}

func template(proxy string) string {
	return fmt.Sprintf(`{metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "a:1", env: [{name: DB_PASSWORD, value: x}]}, {name: istio-proxy, image: "proxy:%s"}]}}`, proxy)
}

// deployments are committed Deployments of the namespace shop, by the versions of their proxies.
func deployments(t *testing.T, registry *workload.Registry, behind int, versions map[string]string) map[Ref]*Workload {
	t.Helper()
	out := map[Ref]*Workload{}
	for name, version := range versions {
		w, err := NewWorkload(registry, parse(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop}, spec: {template: %s}}", name, template(version))), "", "f")
		if err != nil {
			t.Fatal(err)
		}
		w.Commit = Commit{ID: fmt.Sprintf("c%d", behind), Behind: behind}
		out[w.Ref] = w
	}
	return out
}

// TestVerify has a pod of each state, and counts how far the proxies have come.
func TestVerify(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	history := commits{
		deployments(t, registry, 0, map[string]string{"new": "1.30.3", "old": "1.30.3", "odd": "1.30.3", "idle": "1.30.3"}),
		deployments(t, registry, 1, map[string]string{"old": "1.29.2", "gone": "1.29.2"}),
	}
	s := &Snapshot{KubernetesVersion: "v1.36.3"}
	pod := func(of, pod string) {
		obj := parse(t, pod)
		meta := podmap.MapAt(obj, "metadata")
		meta["name"], meta["namespace"], meta["generateName"] = of+"-7d4b9c6d5f-x2x7k", "shop", of+"-7d4b9c6d5f-"
		podmap.MapAt(meta, "labels")["pod-template-hash"] = "7d4b9c6d5f"
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of + "-7d4b9c6d5f", "controller": true, "uid": "u"}}
		obj["apiVersion"], obj["kind"] = "v1", "Pod"
		s.Add(obj)
	}
	pod("new", template("1.30.3"))
	pod("old", template("1.29.2"))
	pod("gone", template("1.29.2"))
	pod("odd", strings.Replace(template("1.30.3"), "value: x", "value: hunter2", 1))
	pod("strange", template("1.30.3"))
	finished := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: f, namespace: shop}, spec: {}, status: {phase: Succeeded}}`)
	s.Add(finished)
	s.Add(parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: other}, spec: {containers: [{name: a}]}}`))
	r, err := Verify(t.Context(), s, history, Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	want := map[State]int{Current: 1, Older: 1, Removed: 1, Changed: 1, Foreign: 1}
	if diff := cmp.Diff(want, r.Counts); diff != "" || r.Finished != 1 {
		t.Errorf("finished: %d; %s", r.Finished, diff)
	}
	var text strings.Builder
	if err := r.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"shop/old-7d4b9c6d5f-x2x7k: of an older commit (Deployment shop/old in f), commit c1, 1 commit behind",
		"shop/gone-7d4b9c6d5f-x2x7k: of a workload that was removed (Deployment shop/gone in f), commit c1, 1 commit behind",
		"  spec.containers[app].env[DB_PASSWORD].value: ***, committed *** (changed at admission or later)",
		"shop/strange-7d4b9c6d5f-x2x7k: not from Git: no commit has Deployment shop/strange",
		"istio-proxy: 2 of 3 pods run 1.30.3, 1 run 1.29.2",
		"1 committed workload without a pod: Deployment shop/idle",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("the text lacks %q", line)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
	r, err = Verify(t.Context(), s, history, Options{Registry: registry, Ignore: []string{"spec.containers*"}, AllNamespaces: true})
	if err != nil || r.Counts[Changed] != 0 || r.Counts[Foreign] != 2 {
		t.Errorf("with a pattern, in all namespaces: %v, %v", r.Counts, err)
	}
}

// TestMatches takes every character but * for itself.
func TestMatches(t *testing.T) {
	const field = `metadata.annotations["example.com/x"]`
	for pattern, want := range map[string]bool{
		field: true, `metadata.annotations["example.com/*"]`: true, "*": true, "metadata.*x*": true, `metadata.*"]`: true,
		"metadata": false, "": false, `metadata.labels*`: false, `*y"]`: false, `metadata.annotations["example.com/x"]*x`: false,
	} {
		if got := matchesFieldPattern(pattern, field); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

// TestLastEntryOfAKey verifies a pod in which the webhook has set a variable twice, of which Prerig commits the last.
func TestLastEntryOfAKey(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	const object = `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: app, image: "a:1", env: [%s]}]}}`
	const last = `{name: B, value: x}, {name: A, value: "2"}`
	w, err := NewWorkload(registry, parse(t, fmt.Sprintf(object, last)), "", "f")
	if err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]State{
		`{name: A, value: "1"}, ` + last: Current,
		last + `, {name: A, value: "1"}`: Changed,
	} {
		snapshot := &Snapshot{KubernetesVersion: "v1.36.3"}
		snapshot.Add(parse(t, fmt.Sprintf(object, env)))
		report, err := Verify(t.Context(), snapshot, commits{{w.Ref: w}}, Options{Registry: registry})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Pods) != 1 || report.Pods[0].State != want {
			t.Errorf("%s: got %+v, want %s", env, report.Pods, want)
		}
	}
}
