// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// differencesDocs has the tables of what is different from the injectors that policies are compared with.
const differencesDocs = "../docs/injection-policy.md"

// injectorAnswer is the pod that an injector makes, or why it refuses.
type injectorAnswer struct {
	Pod   map[string]any `json:"pod,omitempty"`
	Error string         `json:"error,omitempty"`
}

// readAnswers returns the answers of a file.
func readAnswers[T any](t *testing.T, path string) (answers T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// askInjector returns what a program made of an injector's code answers to cases.
func askInjector[T any](t *testing.T, program string, cases map[string]any) (answers T) {
	t.Helper()
	in, err := json.Marshal(map[string]any{"cases": cases})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

// checkVersion ends the test where a program answers as a version that a policy is not compared with.
func checkVersion(t *testing.T, version string, compared ...string) {
	t.Helper()
	if !slices.Contains(compared, version) {
		t.Fatalf("the program answers as %s, which is not one of %s", version, strings.Join(compared, ", "))
	}
}

// formatAnswers writes answers as their files have them: one case a line, after the version and a field about the installation, if
// there is one.
func formatAnswers[A any](t *testing.T, version, field string, value any, answers map[string]A) []byte {
	t.Helper()
	line := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"version\": %s,\n", line(version))
	if field != "" {
		fmt.Fprintf(&out, "%s: %s,\n", line(field), line(value))
	}
	out.WriteString("\"answers\": {")
	for i, name := range slices.Sorted(maps.Keys(answers)) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s: %s", line(name), line(answers[name]))
	}
	out.WriteString("\n}}\n")
	return out.Bytes()
}

// eachContainer calls a function for each container that the case "plain" has, too, with that one.
func eachContainer(answers map[string]injectorAnswer, change func(c, plain map[string]any)) {
	plain := containersByName(answers[plainCase].Pod)
	for name, answer := range answers {
		for container, c := range containersByName(answer.Pod) {
			if name != plainCase && plain[container] != nil {
				change(c, plain[container])
			}
		}
	}
}

// workloadOf returns a workload orders of a kind in the namespace shop with the pod template; of kind Pod it is the pod itself.
func workloadOf(kind string, labels, template map[string]any) map[string]any {
	meta := map[string]any{"name": "orders", "namespace": "shop"}
	if labels != nil {
		meta["labels"] = labels
	}
	workload := map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": map[string]any{"template": template}}
	switch kind {
	case "Pod":
		own := template["metadata"].(map[string]any)
		own["name"], own["namespace"] = "orders", "shop"
		workload["apiVersion"], workload["metadata"], workload["spec"] = "v1", own, template["spec"]
	case "Job":
		workload["apiVersion"] = "batch/v1"
	case "CronJob":
		workload["apiVersion"] = "batch/v1"
		workload["spec"] = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	}
	return workload
}

// marshalStream returns objects as a YAML stream.
func marshalStream(t *testing.T, objects ...map[string]any) []byte {
	t.Helper()
	var texts [][]byte
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return bytes.Join(texts, []byte("---\n"))
}

// sortVolumes takes out where new volumes and mounts stand among others, which Kubernetes gives no meaning.
func sortVolumes(pod *corev1.Pod) {
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			slices.SortFunc(list[i].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
		}
	}
}

// dropToken takes out the service account's token, which the API server mounts into new containers, too, when the pod is made.
func dropToken(pod *corev1.Pod) {
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == tokenVolume })
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == tokenVolume })
		}
	}
}

// TestStoredAnswers: the files of answers are as they are written, so that writing them anew shows what an injector has changed. Of
// Linkerd's values only those are written that the policy reads, which TestLinkerdAnswers looks at.
func TestStoredAnswers(t *testing.T) {
	check := func(path string, got []byte) {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is written otherwise", path)
		}
	}
	for _, version := range vaultVersions {
		check(vaultDataFile(version), formatVaultAnswers(t, readVaultAnswers(t, version)))
	}
	for policy := range openTelemetryPolicies {
		for _, version := range openTelemetryVersions {
			check(openTelemetryDataFile(policy, version), formatOpenTelemetryAnswers(t, readOpenTelemetryAnswers(t, policy, version)))
		}
	}
	order := readAnswers[orderAnswers](t, orderAnswersFile)
	eachContainer(order.Answers, expandContainer)
	check(orderAnswersFile, formatOrderAnswers(t, order))
	for _, version := range cloudSQLVersions {
		check(cloudSQLDataFile(version), formatCloudSQLAnswers(t, readAnswers[cloudSQLAnswers](t, cloudSQLDataFile(version))))
	}
}
