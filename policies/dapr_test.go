// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/policies"
)

const (
	// daprVersion is the version that the policy is written for.
	daprVersion = "1.18.3"
	// daprAnswers are what Dapr's injector makes of the cases, by their names.
	daprAnswers = "testdata/dapr/injector.json"
	// daprPatcher is the program made of Dapr's code; see fn/internal/upstream/dapr.
	daprPatcher = "../dist/upstream/dapr-patcher"
)

// daprAnswer is an answer of the program: a pod, or why it is refused.
type daprAnswer struct {
	Pod   json.RawMessage `json:"pod,omitempty"`
	Error string          `json:"error,omitempty"`
}

// TestDaprInjector compares the policy with what Dapr's own injector makes of the same pods. A case that differs says by
// which difference of the table in the docs.
func TestDaprInjector(t *testing.T) {
	text, err := os.ReadFile(daprAnswers)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]daprAnswer{}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(differencesDocs)
	if err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(daprCases) {
		t.Errorf("there are %d answers for %d cases", len(answers), len(daprCases))
	}
	for name, tc := range daprCases {
		t.Run(name, func(t *testing.T) {
			want, ok := answers[name]
			if !ok {
				t.Fatal("Dapr's answer is missing: make dapr UPDATE=-update")
			}
			diff := daprDiff(t, tc, want)
			switch {
			case tc.difference == "" && diff != "":
				t.Errorf("-Dapr +Prerig:\n%s", diff)
			case tc.difference != "" && diff == "":
				t.Errorf("there is no difference any more: %s", tc.difference)
			case tc.difference != "" && !bytes.Contains(docs, []byte("| "+tc.difference+" |")):
				t.Errorf("%s has no row for %q", differencesDocs, tc.difference)
			}
		})
	}
}

// TestDaprAnswers compares the stored answers with those of the program that is made of Dapr's code, or writes them anew.
func TestDaprAnswers(t *testing.T) {
	if _, err := os.Stat(daprPatcher); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not built: make dapr", daprPatcher)
	}
	version, err := exec.CommandContext(t.Context(), daprPatcher, "-version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(version)); got != "v"+daprVersion {
		t.Fatalf("the program is made of Dapr %s, and the policy is written for %s", got, daprVersion)
	}
	names := daprCaseNames()
	var in bytes.Buffer
	for _, name := range names {
		tc := daprCases[name]
		request, err := json.Marshal(map[string]any{"settings": daprSettings(tc.allValues(t)), "pod": tc.object(t)})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(request)
	}
	run := exec.CommandContext(t.Context(), daprPatcher)
	run.Stdin, run.Stderr = &in, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]daprAnswer{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for _, name := range names {
		var a daprAnswer
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		got[name] = a
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(daprAnswers, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(daprAnswers)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")); diff != "" {
		t.Errorf("-stored +Dapr:\n%s", diff)
	}
}

// TestDaprVersion: image, docs, module and answers are of one version.
func TestDaprVersion(t *testing.T) {
	policy, _ := policies.Get("dapr")
	if image := builtInValues(t, "dapr")["image"]; image != "docker.io/daprio/daprd:"+daprVersion {
		t.Errorf("the image is %v", image)
	}
	if !bytes.Contains(policy, []byte("It is written for Dapr "+daprVersion+":")) {
		t.Error("the policy does not name the version")
	}
	for _, file := range []string{differencesDocs, filepath.Join("..", "fn", "internal", "upstream", "dapr", "go.mod")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(daprVersion)) {
			t.Errorf("%s does not name %s", file, daprVersion)
		}
	}
}

// builtInValues returns the values of a policy that comes with Prerig.
func builtInValues(t *testing.T, name string) map[string]any {
	t.Helper()
	text, _ := policies.Get(name)
	p, err := v1alpha1.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p.Spec.Sidecars[0].Values
}

// daprCaseNames returns the names of the cases in order.
func daprCaseNames() []string {
	names := make([]string, 0, len(daprCases))
	for name := range daprCases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// daprDiff says how the policy's pod differs from Dapr's; it is empty where it does not. It also checks that injecting twice
// is injecting once, and that removing gives the input.
func daprDiff(t *testing.T, tc daprCase, want daprAnswer) string {
	t.Helper()
	policy, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "dapr"},
		"spec": map[string]any{"sidecars": []any{map[string]any{"builtIn": "dapr", "values": tc.allValues(t)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	input, err := yaml.Marshal(tc.object(t))
	if err != nil {
		t.Fatal(err)
	}
	out, difference := injectAndBack(t, policy, input, "Dapr", want.Error)
	if out == nil {
		return difference
	}
	var ours, theirs corev1.Pod
	if err := errors.Join(yaml.Unmarshal(out, &ours), json.Unmarshal(want.Pod, &theirs)); err != nil {
		t.Fatal(err)
	}
	delete(ours.Annotations, "sidecar.prerig.dev/dapr")
	normalizeDaprPod(&ours)
	normalizeDaprPod(&theirs)
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// normalizeDaprPod takes out what is meant to be different in every pod: where new volumes, mounts and variables stand
// among others, which Kubernetes gives no meaning as long as no variable is made of another, and that the namespace is a
// reference to the pod's, as the files may get theirs later.
func normalizeDaprPod(pod *corev1.Pod) {
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			slices.SortFunc(list[i].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
			slices.SortFunc(list[i].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
			for j, e := range list[i].Env {
				if e.Name == "NAMESPACE" && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace" {
					list[i].Env[j] = corev1.EnvVar{Name: e.Name, Value: pod.Namespace}
				}
			}
		}
	}
}

// daprSettings are the injector's settings that mean the same as the policy's values.
func daprSettings(values map[string]any) map[string]any {
	out := map[string]any{
		"actors":    values["placementAddress"] != "none",
		"scheduler": values["schedulerAddress"] != "none",
	}
	for setting, value := range map[string]string{
		"image": "image", "imagePullPolicy": "imagePullPolicy", "namespace": "namespace", "clusterDomain": "clusterDomain",
		"trustDomain": "trustDomain", "trustAnchors": "trustAnchors", "mtls": "mtls", "runAsNonRoot": "runAsNonRoot",
		"readOnlyRootFilesystem": "readOnlyRootFilesystem", "dropAllCapabilities": "dropAllCapabilities",
		"downwardAPIs": "enableK8sDownwardAPIs", "nativeSidecar": "native", "ignoreEntrypointTolerations": "ignoreEntrypointTolerations",
		"runAsUser": "runAsUser", "runAsGroup": "runAsGroup",
	} {
		if v := values[value]; v != "" {
			out[setting] = v
		}
	}
	return out
}
