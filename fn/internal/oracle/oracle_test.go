// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

func TestGenerateGivesTheSameForTheSameSeed(t *testing.T) {
	seen := map[string]bool{}
	for n := range 200 {
		a, b := Generate(7, "default", n), Generate(7, "default", n)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("number %d differs from itself:\n%s\n%s", n, toJSON(a), toJSON(b))
		}
		seen[string(toJSON(a))] = true
	}
	if len(seen) < 195 {
		t.Errorf("200 numbers give %d workloads", len(seen))
	}
	if reflect.DeepEqual(Generate(7, "default", 3), Generate(8, "default", 3)) {
		t.Error("two seeds give the same workload")
	}
}

func TestGenerateGivesEveryKind(t *testing.T) {
	count := map[any]int{}
	for n := range 500 {
		count[Generate(1, "default", n)["kind"]]++
	}
	for _, kind := range kinds {
		if count[kind] < 10 {
			t.Errorf("%d of 500 workloads are of the kind %s", count[kind], kind)
		}
	}
}

func TestPodOfHasWhatTheControllerAdds(t *testing.T) {
	for _, c := range []struct{ kind, owner, generate string }{
		{"Deployment", "ReplicaSet/web-6d4cf56db6", "web-6d4cf56db6-"},
		{"StatefulSet", "StatefulSet/web", "web-"},
		{"CronJob", "Job/web-29400123", "web-29400123-"},
		{"ReplicationController", "ReplicationController/web", "web-"},
	} {
		template := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}, "spec": map[string]any{"x": "y"}}
		spec := map[string]any{"template": template}
		if c.kind == "CronJob" {
			spec = map[string]any{"jobTemplate": map[string]any{"spec": spec}}
		}
		pod := podOf(map[string]any{"kind": c.kind, "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": spec})
		meta, _ := pod["metadata"].(map[string]any)
		refs, _ := meta["ownerReferences"].([]any)
		ref, _ := refs[0].(map[string]any)
		if got := ref["kind"].(string) + "/" + ref["name"].(string); got != c.owner {
			t.Errorf("%s: the pod's owner is %s, want %s", c.kind, got, c.owner)
		}
		if meta["generateName"] != c.generate || meta["namespace"] != "shop" {
			t.Errorf("%s: the pod's metadata is %s", c.kind, toJSON(meta))
		}
		if !reflect.DeepEqual(meta["annotations"], map[string]any{"a": "b"}) || !reflect.DeepEqual(pod["spec"], map[string]any{"x": "y"}) {
			t.Errorf("%s: the pod is %s", c.kind, toJSON(pod))
		}
	}
}

func TestCompareKnowsQuantitiesAndNamesPlaces(t *testing.T) {
	pod := func(cpu, image string) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "app", "image": image, "resources": map[string]any{"limits": map[string]any{"cpu": cpu}}}}}}
	}
	same, err := comparePods(pod("1", "a"), pod("1000m", "a"))
	if err != nil || len(same) != 0 {
		t.Errorf("1 and 1000m CPU differ: %v, %v", same, err)
	}
	got, err := comparePods(pod("1", "a"), pod("2", "b"))
	want := []Difference{
		{"spec.containers.[app].image", `"a"`, `"b"`},
		{"spec.containers.[app].resources.limits.cpu", `"1"`, `"2"`},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestCompareSeesTheOrderOfContainers(t *testing.T) {
	pod := func(names ...string) map[string]any {
		var containers []any
		for _, n := range names {
			containers = append(containers, map[string]any{"name": n})
		}
		return map[string]any{"spec": map[string]any{"containers": containers}}
	}
	got, err := comparePods(pod("a", "b"), pod("b", "a"))
	if err != nil || len(got) != 1 || got[0].Place != "spec.containers (order)" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestInstallationsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range Installations() {
		if seen[i.Name] {
			t.Errorf("two installations are called %s", i.Name)
		}
		seen[i.Name] = true
	}
	if len(seen) < 20 {
		t.Errorf("there are %d installations", len(seen))
	}
}

func TestExceptionsAreNarrow(t *testing.T) {
	pod := func(labels map[string]any) map[string]any {
		return map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "web-0", "labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "app"}}}}
	}
	template := pod(map[string]any{"app": "web"})
	template["spec"].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"cpu": "2"}, "requests": map[string]any{"memory": "1Gi"}}
	set := map[string]any{"kind": "StatefulSet", "spec": map[string]any{"template": template}}
	k := &Case{Installation: "helpers", Workload: set, Webhook: pod(map[string]any{"app": "web", "hash": "1"})}
	for _, c := range []struct {
		d    Difference
		want string
	}{
		{Difference{"metadata.annotations.a", `"{\"app\":\"web\",\"hash\":\"1\"}"`, `"{\"app\":\"web\"}"`}, "labels of controllers"},
		{Difference{"metadata.annotations.a", `"{\"app\":\"web\",\"hash\":\"1\"}"`, `"{\"app\":\"other\"}"`}, ""},
		{Difference{"spec.x", `"{\"app\":\"web\",\"hash\":\"1\"}"`, `"{\"app\":\"web\"}"`}, ""},
		{Difference{"metadata.annotations.h", `"web-0"`, `"no-name"`}, "names of a StatefulSet's pods"},
		{Difference{"metadata.annotations.h", `"web-0"`, `"web"`}, ""},
		{Difference{"spec.resources.requests.cpu", `"2"`, `"100m"`}, "requests of the whole pod"},
		{Difference{"spec.resources.requests.memory", `"2"`, `"100m"`}, ""},
	} {
		if got := k.exceptionOf(c.d); got != c.want {
			t.Errorf("%v: the exception is %q, want %q", c.d, got, c.want)
		}
	}
	record := Difference{"metadata.annotations.prerig.dev/original", "", "{}"}
	pods := &Case{Workload: map[string]any{"kind": "Pod"}, Webhook: pod(map[string]any{}), Cluster: pod(map[string]any{})}
	if got := pods.exceptionOf(record); got != "" {
		t.Errorf("a record without a status annotation: the exception is %q", got)
	}
	pods.Cluster["spec"] = map[string]any{"containers": []any{map[string]any{"name": "agent"}}}
	if got := pods.exceptionOf(record); got != "records in bare Pods" {
		t.Errorf("a record in a bare Pod whose container a template deletes: the exception is %q", got)
	}
	pods.Cluster = pod(map[string]any{})
	pods.Webhook["metadata"].(map[string]any)["annotations"] = map[string]any{"sidecar.istio.io/status": "no JSON"}
	if got := pods.exceptionOf(record); got != "records in bare Pods" {
		t.Errorf("a record in a bare Pod: the exception is %q", got)
	}
	pods.Workload = set
	if got := pods.exceptionOf(record); got != "" {
		t.Errorf("a record in the pod of a StatefulSet: the exception is %q", got)
	}
	for status, want := range map[string]bool{`{"containers":["app"]}`: true, `{"containers":["other"]}`: false, "{}": false, "no JSON": false} {
		k.Webhook["metadata"].(map[string]any)["annotations"] = map[string]any{"sidecar.istio.io/status": status}
		if got := injectedBefore(k.Webhook); got != want {
			t.Errorf("status %s: injected before is %t", status, got)
		}
	}
}

func TestInjectedBeforeExcusesNothingButTheRemoval(t *testing.T) {
	different := []Difference{{Place: "spec.containers.[app].image", Cluster: `"a"`, Prerig: `"b"`}}
	for _, c := range []struct {
		without Case
		want    Result
		names   []string
	}{
		{Case{Result: EqualInjected}, Excepted, []string{"injected before"}},
		{Case{Result: RefusedByBoth}, Excepted, []string{"injected before"}},
		{Case{Result: Excepted, Exceptions: []string{"requests of the whole pod"}}, Excepted, []string{"requests of the whole pod", "injected before"}},
		{Case{Result: Different, Differences: different}, Different, nil},
		{Case{Result: Unreadable}, Different, nil},
	} {
		k := Case{Result: Different}
		k.adoptFreshResult(&c.without)
		if k.Result != c.want || !slices.Equal(k.Exceptions, c.names) {
			t.Errorf("without the injection it is %q: got %q with %v, want %q with %v", c.without.Result, k.Result, k.Exceptions, c.want, c.names)
		}
	}
}

// TestValidationAsksWithAServiceAccount checks that pods are validated as they are after the admission of service accounts.
func TestValidationAsksWithAServiceAccount(t *testing.T) {
	pod := map[string]any{"spec": map[string]any{"containers": []any{}}}
	spec, _ := withServiceAccount(pod)["spec"].(map[string]any)
	if spec["serviceAccountName"] != "default" {
		t.Errorf("the pod is asked about with %v", spec)
	}
	if before, _ := pod["spec"].(map[string]any); before["serviceAccountName"] != nil {
		t.Error("the pod of the case is changed")
	}
	own := map[string]any{"spec": map[string]any{"serviceAccountName": "web"}}
	if spec, _ := withServiceAccount(own)["spec"].(map[string]any); spec["serviceAccountName"] != "web" {
		t.Errorf("an account of the pod's own becomes %v", spec)
	}
}

// TestBuiltInPolicyInjectsWhatIsWrittenByHand checks that the policy which comes with Prerig takes the installations' values.
func TestBuiltInPolicyInjectsWhatIsWrittenByHand(t *testing.T) {
	for _, i := range append(Written(), Installations()...) {
		if i.BeyondBuiltIn() {
			continue
		}
		c := &cluster{Installation: i, values: `{"global":{"hub":"docker.io/istio","tag":"1.31.1"}}`, mesh: "{}", builtIn: true}
		workloads := []map[string]any{{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "shop"},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "x"}}}}}
		answers, err := c.applyPrerigMode(t.Context(), v1alpha1.ModeInject, workloads)
		if i.Name == "hub-with-slash" { // no image has such a name, so that a policy that asks for it is an error
			if err == nil || !strings.Contains(err.Error(), "without a slash at the end") {
				t.Errorf("%s: got %v", i.Name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", i.Name, err)
			continue
		}
		if answers[0].refused != "" {
			t.Errorf("%s: %s", i.Name, answers[0].refused)
		}
	}
}

// TestNullsOfOverridesAreComparedByValue: the order of the keys of an annotation's JSON means nothing, and a null quantity is 0.
func TestNullsOfOverridesAreComparedByValue(t *testing.T) {
	annotation := func(text string) string { return string(toJSON(text)) }
	prerig := annotation(`{"containers":[{"name":"a","resources":{"claims":[{"name":"gpu"}],"limits":{"cpu":null}},"image":null}]}`)
	for cluster, want := range map[string]bool{
		`{"containers":[{"name":"a","resources":{"limits":{"cpu":"0"},"claims":[{"name":"gpu"}]}}]}`: true,
		`{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"},"claims":[{"name":"gpu"}]}}]}`: false,
		`{"containers":[{"name":"a","resources":{"claims":[{"name":"gpu"}]}}]}`:                      false,
		`{"containers":[{"name":"a","resources":{"limits":{"cpu":"0"}}}]}`:                           false,
	} {
		if got := canonicalOverrides(annotation(cluster)) == withoutNulls(prerig); got != want {
			t.Errorf("%s: equal is %t", cluster, got)
		}
	}
}
