// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// removals is how many pods lose a cause at most.
const removals = 200

// exactPercent is how many of them lose at least exactly the fields whose reasons name the cause.
const exactPercent = 95

// TestAdmitNamesTheCauses takes pods of which prerig admit names the causes of each differing field, and removes the named
// objects from the cluster, one after the other in each namespace: exactly the fields change that name the object.
func TestAdmitNamesTheCauses(t *testing.T) {
	if os.Getenv("PRERIG_ADMIT") == "" {
		t.Skip("PRERIG_ADMIT is not set; make e2e-admit runs this")
	}
	n := setting(t, "PRERIG_ADMIT_N", 300)
	b := newAdmitBench(t, leastSets)
	b.installIstio(t)
	pods := b.draw(n)
	before := b.compared(t, pods)
	checked, exact := 0, 0
	for round := 0; checked < removals && round < 40; round++ {
		chosen := b.chooseCauses(before, pods, round)
		if len(chosen) == 0 {
			break
		}
		var undo []func()
		var of []int
		var causes []string // of each pod
		for _, object := range slices.Sorted(maps.Keys(chosen)) {
			undo = append(undo, b.removeCause(t, object))
			of = append(of, chosen[object]...)
			causes = append(causes, slices.Repeat([]string{object}, len(chosen[object]))...)
		}
		b.awaitMutation(t, fmt.Sprintf("removed-%d", round))
		var again []*unstructured.Unstructured
		for _, i := range of {
			again = append(again, pods[i])
		}
		after := b.compared(t, again)
		for j, i := range of {
			if after[j] == nil {
				continue
			}
			checked++
			if wrong := checkRemoval(causes[j], before[i], after[j]); len(wrong) > 0 {
				t.Logf("without %s, %s: %v", causes[j], pods[i].GetName(), wrong)
				continue
			}
			exact++
		}
		for _, u := range undo {
			u()
		}
		b.awaitMutation(t, fmt.Sprintf("restored-%d", round))
	}
	t.Logf("seed %d: of %d pods that lost a cause, %d lost exactly its fields", b.seed, checked, exact)
	if checked < min(removals, n/10) || exact < checked*exactPercent/100 {
		t.Errorf("%d of %d removals are exact", exact, checked)
	}
}

// compared returns the answers for pods that the server stores as predicted, and nil for the others.
func (b *admitBench) compared(t *testing.T, pods []*unstructured.Unstructured) []*admitted {
	t.Helper()
	got := b.admit(t, b.capture(t), pods)
	out := make([]*admitted, len(pods))
	b.each(t, len(pods), func(i int) {
		if compareAdmitted(t, b.client, pods[i], got[i]) == outcomeEqual {
			out[i] = &got[i]
		}
	})
	return out
}

// chooseCauses returns one object for each namespace that is the cause of fields, with up to three of its pods. Further
// rounds choose others.
func (b *admitBench) chooseCauses(before []*admitted, pods []*unstructured.Unstructured, round int) map[string][]int {
	byNamespace := map[string]map[string][]int{}
	for i, a := range before {
		if a == nil {
			continue
		}
		seen := map[string]bool{}
		for _, r := range a.Reasons {
			if isRemovable(r.Object) && !seen[r.Object] {
				seen[r.Object] = true
				ns := pods[i].GetNamespace()
				if byNamespace[ns] == nil {
					byNamespace[ns] = map[string][]int{}
				}
				byNamespace[ns][r.Object] = append(byNamespace[ns][r.Object], i)
			}
		}
	}
	out := map[string][]int{}
	for _, objects := range byNamespace {
		names := slices.Sorted(maps.Keys(objects))
		if round < len(names) {
			list := objects[names[round]]
			out[names[round]] = list[:min(3, len(list))]
		}
	}
	return out
}

// isRemovable reports whether an object is of one namespace, and can go without a pod being rejected for it.
func isRemovable(object string) bool {
	kind, _, _ := strings.Cut(object, " ")
	return slices.Contains([]string{"LimitRange", "MutatingAdmissionPolicy", "ServiceAccount", "Namespace"}, kind)
}

// removeCause removes an object, or what it sets on pods, and returns what restores it.
func (b *admitBench) removeCause(t *testing.T, cause string) func() {
	t.Helper()
	kind, name, _ := strings.Cut(cause, " ")
	namespace := ""
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	apiVersion := "v1"
	if kind == "MutatingAdmissionPolicy" {
		apiVersion = b.maker.mutatingAPI()
	}
	of := newUnstructuredObject(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}})
	of.SetNamespace(namespace)
	resource, err := b.resourceInterfaceFor(of)
	if err != nil {
		t.Fatal(err)
	}
	old, err := resource.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := map[string]string{
		"ServiceAccount": `{"imagePullSecrets":null,"automountServiceAccountToken":false}`,
		"Namespace":      `{"metadata":{"annotations":{"scheduler.alpha.kubernetes.io/node-selector":null}}}`,
	}[kind]
	if patch == "" {
		err = resource.Delete(t.Context(), name, metav1.DeleteOptions{})
	} else {
		_, err = resource.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		ctx := context.WithoutCancel(t.Context())
		old.SetResourceVersion("")
		old.SetUID("")
		if patch == "" {
			_, err = resource.Create(ctx, old, metav1.CreateOptions{})
		} else {
			_, err = resource.Update(ctx, old, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkRemoval compares the pods before and after the removal of an object, and returns in what they differ otherwise than the
// reasons before it have promised. Both pods are the API server's: compared has made sure.
func checkRemoval(object string, before, after *admitted) (wrong []string) {
	promised := map[string]bool{}
	for _, list := range [][]reason{before.Reasons, before.Prevented} {
		for _, r := range list {
			if r.isBecauseOf(object) {
				promised[r.Field] = true
			}
		}
	}
	changed := differingFields(before.Reasons, after.Reasons)
	for field := range changed {
		if !promised[field] {
			wrong = append(wrong, field+" changes")
		}
	}
	for field := range promised {
		if !changed[field] {
			wrong = append(wrong, field+" stays")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// differingFields returns the fields in which two states of a pod differ, by how each differs from the file.
func differingFields(before, after []reason) map[string]bool {
	was, now := valuesOf(before), valuesOf(after)
	out := map[string]bool{}
	for _, state := range []struct{ of, other map[string]any }{{was, now}, {now, was}} {
		for field, value := range state.of {
			if other, ok := state.other[field]; (!ok || !reflect.DeepEqual(value, other)) && !isFilled(field, value, state.other) {
				out[field] = true
			}
		}
	}
	return out
}

func valuesOf(reasons []reason) map[string]any {
	out := map[string]any{}
	for _, r := range reasons {
		out[r.Field] = r.After
	}
	return out
}

// isFilled reports whether a value is a map without fields that has fields in the other state: these are the difference.
func isFilled(field string, value any, other map[string]any) bool {
	if m, ok := value.(map[string]any); !ok || len(m) > 0 {
		return false
	}
	for further := range other {
		if strings.HasPrefix(further, field+".") {
			return true
		}
	}
	return false
}
