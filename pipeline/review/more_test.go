// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
)

// manifestOf is an object with a spec in flow style.
func manifestOf(apiVersion, kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  namespace: shop\nspec: %s\n", apiVersion, kind, name, spec)
}

// TestReplicas counts requests with as many pods as manifests tell of, and says where they do not.
func TestReplicas(t *testing.T) {
	pod := func(cpu string) string {
		return "{spec: {containers: [{name: app, image: a, resources: {requests: {cpu: " + cpu + "}}}], initContainers: [{name: once, image: b, resources: {requests: {cpu: 9}}}, " +
			"{name: beside, image: c, restartPolicy: Always, resources: {limits: {cpu: " + cpu + "}}}]}}"
	}
	scaler := func(kind, name, more string) string {
		return manifestOf("x/v1", kind, name, "{scaleTargetRef: {kind: Deployment, name: "+name+"}"+more+"}")
	}
	for name, tc := range map[string]struct {
		objects func(cpu string) []string
		want    []string
	}{
		"replicas": {func(cpu string) []string {
			return []string{manifestOf("apps/v1", "Deployment", "web", "{replicas: 5, template: "+pod(cpu)+"}")}
		}, []string{"| applications: CPU requested | 10 vCPU | 20 vCPU | +10 vCPU |", "| applications: CPU limits | 5 vCPU | 10 vCPU | +5 vCPU |", "5 pods before, 5 after.\n"}},
		"none said": {func(cpu string) []string {
			return []string{manifestOf("apps/v1", "StatefulSet", "web", "{template: "+pod(cpu)+"}")}
		}, []string{"| 2 vCPU | 4 vCPU | +2 vCPU |", "1 workload without a number of replicas: counted as one pod"}},
		"an autoscaler": {func(cpu string) []string {
			return []string{manifestOf("apps/v1", "Deployment", "web", "{replicas: 5, template: "+pod(cpu)+"}"), scaler("HorizontalPodAutoscaler", "web", ", minReplicas: 3")}
		}, []string{"| 6 vCPU | 12 vCPU | +6 vCPU |", "1 workload with an autoscaler: counted with its least number of pods"}},
		"an autoscaler that may scale to none": {func(cpu string) []string {
			return []string{manifestOf("apps/v1", "Deployment", "web", "{template: "+pod(cpu)+"}"), scaler("ScaledObject", "web", ", minReplicaCount: 0")}
		}, []string{"| 2 vCPU | 4 vCPU | +2 vCPU |"}},
		"a DaemonSet": {func(cpu string) []string {
			return []string{manifestOf("apps/v1", "DaemonSet", "web", "{template: "+pod(cpu)+"}")}
		}, []string{"| applications, on each node: CPU requested | 2 vCPU | 4 vCPU | +2 vCPU |", "0 pods before, 0 after", "1 DaemonSet not in the sums"}},
		"a CronJob": {func(cpu string) []string {
			return []string{manifestOf("batch/v1", "CronJob", "web", "{jobTemplate: {spec: {parallelism: 4, template: "+pod(cpu)+"}}}")}
		}, []string{"| 8 vCPU | 16 vCPU | +8 vCPU |", "1 workload that runs at times"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Change{Pipelines: []Pipeline{{Name: "p", Before: inject(t, "", tc.objects("1")...), After: inject(t, "", tc.objects("2000m")...)}}}
			got, _ := body(t, c, LimitGitHub)
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("it does not say %q:\n%s", want, got)
				}
			}
		})
	}
}

// TestFindingsOfBeforeThatAreNotKnown: what lint finds of the files before is not new, nor is what is about objects that stay.
func TestFindingsOfBeforeThatAreNotKnown(t *testing.T) {
	texts := func(image string) []string {
		return []string{deployment("shop", "web", image, 2), deployment("shop", "cart", "1", 2)}
	}
	policy := strings.Replace(mesh("1.29.0", ""), "istio: {", "istio: {nativeSidecars: Disabled, ", 1)
	before, after := inject(t, policy, texts("1")...), inject(t, policy, texts("2")...)
	r, err := readReviewChange(t.Context(), Change{Pipelines: []Pipeline{{Name: "p", Before: before, After: after}}})
	if err != nil {
		t.Fatal(err)
	}
	found := r.lintBefore(&Pipeline{Before: after})
	if len(found) == 0 {
		t.Fatal("lint finds nothing at all")
	}
	about := func(name, code string) result.Result {
		return result.Result{Severity: result.Warning, Message: code + " of " + name, Tags: map[string]string{result.TagCode: code},
			ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}}
	}
	found = append(found, about("web", "schema-wrong-type"), about("cart", "schema-wrong-value"))
	for i, line := range []int{7, 9} { // the same about several fields is said with the first place
		one := about("web", "schema-wrong-type")
		one.File, one.Field = &result.File{Path: "shop/deployment-web.yaml", Line: line}, &result.Field{Path: fmt.Sprint("spec.", i)}
		found = append(found, one)
	}
	found = slices.DeleteFunc(found, func(r result.Result) bool { return r.Message == "schema-wrong-type of web" && r.File == nil })
	c := Change{Pipelines: []Pipeline{{Name: "p", Before: before, After: after, Findings: Findings{After: found}}}}
	got, _ := body(t, c, LimitGitHub)
	_, section, _ := strings.Cut(got, "#### New findings\n")
	section, _, _ = strings.Cut(section, "\n\n")
	if want := "- **warning** `schema-wrong-type of web` (`schema-wrong-type`): `Deployment shop/web (shop/deployment-web.yaml:7)`"; section != want {
		t.Errorf("found:\n%s", section)
	}
}

func TestEncryptedObjectsAreNotCompared(t *testing.T) {
	sops := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: ENC[" + value + "]\nsops:\n  mac: ENC[" + value + "]\n"
	}
	sealed := func(value string) string {
		return manifestOf("bitnami.com/v1alpha1", "SealedSecret", "b", "{encryptedData: {key: "+value+"}}")
	}
	c := Change{Pipelines: []Pipeline{{Name: "p", Before: inject(t, "", sops("one"), sealed("one")), After: inject(t, "", sops("two"), sealed("two"))}}}
	got, _ := body(t, c, LimitGitHub)
	if strings.Contains(got, "one") || strings.Contains(got, "two") || !strings.Contains(got, "- 2 objects added or changed: `ConfigMap a`, `SealedSecret shop/b`.") {
		t.Error(got)
	}
}

// TestObjectsThatMove to another file, or to another version of their API, are neither deleted nor added.
func TestObjectsThatMove(t *testing.T) {
	object := func(version string) []byte {
		return []byte(manifestOf("policy/"+version, "PodDisruptionBudget", "web", "{minAvailable: 1}"))
	}
	c := Change{Pipelines: []Pipeline{{Name: "p", Before: map[string][]byte{"a.yaml": object("v1beta1")}, After: map[string][]byte{"b/c.yaml": object("v1")}}}}
	got, _ := body(t, c, LimitGitHub)
	if !strings.Contains(got, "0 objects added, 1 changed, 0 deleted") || !strings.Contains(got, "-apiVersion: policy/v1beta1\n+apiVersion: policy/v1\n") {
		t.Error(got)
	}
}

// TestTheSameTwice gives the same text for the same values.
func TestTheSameTwice(t *testing.T) {
	for _, c := range []Change{upgrade(t, 3), hostileChange("x")} {
		first, _ := body(t, c, LimitAzureDevOps)
		for range 2 {
			if again, _ := body(t, c, LimitAzureDevOps); again != first {
				t.Fatalf("%s\n\nand\n\n%s", first, again)
			}
		}
	}
}

// TestLimits: whatever the limit, the body is no longer, and says so where something is missing.
func TestLimits(t *testing.T) {
	c := upgrade(t, 3)
	c.Whole = "https://prerig.example.com/reviews/1"
	all, whole := body(t, c, Unlimited)
	if !whole || strings.Contains(all, "Not all is here") || !strings.Contains(all, "app-002") {
		t.Error("the whole is not all")
	}
	for limit := 1; limit < 6000; limit += 397 {
		got, whole := body(t, c, limit)
		if !whole && limit > 300 && !strings.Contains(got, "Not all is here") {
			t.Errorf("with %d characters it does not say that something is missing:\n%s", limit, got)
		}
		if strings.Count(got, "```")%2 != 0 {
			t.Errorf("with %d characters a block is not closed", limit)
		}
	}
}
