// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// cloudSQLOperator is a program made of the operator's code that answers as its webhook does; see
// testdata/cloud-sql-operator/README.md.
var cloudSQLOperator = flag.String("cloud-sql-operator", "", "program that answers as the Cloud SQL Auth Proxy Operator, to compare the stored answers with")

// cloudSQLVersions are those of the operator that the policy is compared with, the newest first.
var cloudSQLVersions = []string{"1.8.1", "1.6.0"}

// cloudSQLDataFile returns the file with the answers of a version.
func cloudSQLDataFile(version string) string {
	return filepath.Join("testdata", "cloud-sql-operator", version+".operator.json")
}

// cloudSQLAnswers are what the operator says.
type cloudSQLAnswers struct {
	Version string                    `json:"version"`
	Answers map[string]cloudSQLAnswer `json:"answers"`
}

// cloudSQLAnswer is the pod, all that the operator makes of the case in different runs, or why it is refused.
type cloudSQLAnswer struct {
	Pods  []map[string]any `json:"pods,omitempty"`
	Error string           `json:"error,omitempty"`
}

// TestCloudSQLOperator compares the policy with what the operators make of the same pods.
func TestCloudSQLOperator(t *testing.T) {
	docs, err := os.ReadFile(differencesDocs)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range cloudSQLVersions {
		answers := readAnswers[cloudSQLAnswers](t, cloudSQLDataFile(version))
		if len(answers.Answers) != len(cloudSQLCases) {
			t.Errorf("%s: there are %d answers for %d cases", version, len(answers.Answers), len(cloudSQLCases))
		}
		equal := 0
		for _, name := range slices.Sorted(maps.Keys(cloudSQLCases)) {
			t.Run(version+"/"+name, func(t *testing.T) {
				want, ok := answers.Answers[name]
				if !ok {
					t.Fatal("the operator's answer is missing")
				}
				if checkCloudSQLCase(t, version, cloudSQLCases[name], want, docs) {
					equal++
				}
			})
		}
		t.Logf("%s: %d of %d equal", version, equal, len(cloudSQLCases))
		if !bytes.Contains(docs, fmt.Appendf(nil, "| %s | %d of %d |", version, equal, len(cloudSQLCases))) {
			t.Errorf("%s does not say that %d of %d are equal to those of %s", differencesDocs, equal, len(cloudSQLCases), version)
		}
	}
}

// checkCloudSQLCase reports whether the pod of a case is the operator's only one.
func checkCloudSQLCase(t *testing.T, version string, tc cloudSQLCase, want cloudSQLAnswer, docs []byte) bool {
	t.Helper()
	diff := cloudSQLDiff(t, version, tc, want)
	row := tc.difference
	if row == "" && version != cloudSQLVersions[0] {
		row = tc.older
	}
	switch {
	case diff != "" && (row == "" || tc.difference != ""):
		t.Errorf("-operator +Prerig:\n%s", diff)
	case row == "" && len(want.Pods) > 1:
		t.Errorf("the operator makes %d different pods", len(want.Pods))
	case row != "" && diff == "" && len(want.Pods) < 2:
		t.Errorf("there is no difference any more: %s", row)
	case row != "" && !bytes.Contains(docs, []byte("| "+row+" |")):
		t.Errorf("%s has no row for %q", differencesDocs, row)
	}
	return row == "" && diff == ""
}

// cloudSQLDiff says how the policy's pod differs from each that the operator makes; it is empty where it is one of them. It also
// checks that injecting twice is injecting once, and that removing gives the input.
func cloudSQLDiff(t *testing.T, version string, tc cloudSQLCase, want cloudSQLAnswer) string {
	t.Helper()
	objects := tc.objects(t)
	if objects == nil {
		objects = []any{}
	}
	values := map[string]any{"workloads": objects, "native": !tc.containers}
	if version != cloudSQLVersions[0] {
		values["preStopHost"] = "localhost"
	}
	policy, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "sql"},
		"spec": map[string]any{"sidecars": []any{map[string]any{"builtIn": "cloud-sql-operator", "values": values}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	input, err := yaml.Marshal(cloudSQLWorkload(t, tc))
	if err != nil {
		t.Fatal(err)
	}
	out, difference := injectAndBack(t, policy, input, "operator", want.Error)
	if out == nil {
		return difference
	}
	ours := podOf(t, out, tc.workloadKind())
	delete(ours.Annotations, "sidecar.prerig.dev/cloud-sql-operator")
	normalizeCloudSQLPod(&ours)
	for _, pod := range want.Pods {
		var theirs corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &theirs); err != nil {
			t.Fatal(err)
		}
		normalizeCloudSQLPod(&theirs)
		diff := cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
		if diff == "" {
			return ""
		}
		difference += diff
	}
	return difference
}

// cloudSQLWorkload is the case's workload.
func cloudSQLWorkload(t *testing.T, tc cloudSQLCase) map[string]any {
	t.Helper()
	return workloadOf(tc.workloadKind(), map[string]any{"tier": "back"}, tc.template(t))
}

// normalizeCloudSQLPod takes out the pod's own name, and where new volumes, mounts and variables stand among others.
func normalizeCloudSQLPod(pod *corev1.Pod) {
	pod.Name, pod.Namespace, pod.OwnerReferences = "", "", nil
	pod.APIVersion, pod.Kind = "", ""
	sortVolumes(pod)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			slices.SortFunc(list[i].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		}
	}
}

// TestCloudSQLAnswers compares the stored answers with those of the program, or writes them anew.
func TestCloudSQLAnswers(t *testing.T) {
	if *cloudSQLOperator == "" {
		t.Skip("no program: make cloud-sql INJECTOR=…")
	}
	values := builtInValues(t, "cloud-sql-operator")
	cases := map[string]any{}
	for name, tc := range cloudSQLCases {
		cases[name] = map[string]any{"workload": cloudSQLWorkload(t, tc), "template": tc.template(t), "proxies": tc.objects(t),
			"sidecar": !tc.containers, "image": values["image"], "userAgent": values["userAgent"]}
	}
	got := askInjector[cloudSQLAnswers](t, *cloudSQLOperator, cases)
	checkVersion(t, got.Version, cloudSQLVersions...)
	if *update {
		if err := os.WriteFile(cloudSQLDataFile(got.Version), formatCloudSQLAnswers(t, got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := readAnswers[cloudSQLAnswers](t, cloudSQLDataFile(got.Version))
	for _, answers := range []cloudSQLAnswers{want, got} {
		for _, answer := range answers.Answers {
			slices.SortFunc(answer.Pods, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-stored +operator:\n%s", diff)
	}
}

// formatCloudSQLAnswers writes one case a line.
func formatCloudSQLAnswers(t *testing.T, answers cloudSQLAnswers) []byte {
	t.Helper()
	return formatAnswers(t, answers.Version, "", nil, answers.Answers)
}
