// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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

	"github.com/prerig/prerig/pipeline/cli/importer"
)

// vaultInjector is a program made of vault-k8s' code that answers as its injector does; see testdata/vault-agent/README.md.
var vaultInjector = flag.String("vault-injector", "", "program that answers as Vault's injector, to compare the stored answers with")

// vaultVersions are those of vault-k8s that the policy is compared with, the newest first.
var vaultVersions = []string{"1.7.6", "1.4.2"}

// vaultAnswers are what one version of the injector says.
type vaultAnswers struct {
	Version string                    `json:"version"`
	Answers map[string]injectorAnswer `json:"answers"`
}

// vaultDataFile returns the file with the answers of a version.
func vaultDataFile(version string) string {
	return filepath.Join("testdata", "vault-agent", version+".injector.json")
}

// TestVaultInjector compares the policy, with the settings that are imported from the injector's Deployment, with what Vault's own
// injectors make of the same pods. A case that differs says by which difference of the table in the docs.
func TestVaultInjector(t *testing.T) {
	docs, err := os.ReadFile(differencesDocs)
	if err != nil {
		t.Fatal(err)
	}
	for i, version := range vaultVersions {
		answers := readVaultAnswers(t, version)
		if len(answers.Answers) != len(vaultCases) {
			t.Errorf("%s: there are %d answers for %d cases", version, len(answers.Answers), len(vaultCases))
		}
		equal := 0
		for _, name := range slices.Sorted(maps.Keys(vaultCases)) {
			tc := vaultCases[name]
			t.Run(version+"/"+name, func(t *testing.T) {
				want, ok := answers.Answers[name]
				if !ok {
					t.Fatal("the injector's answer is missing")
				}
				diff := vaultDiff(t, tc, want)
				differs := tc.difference != "" && (!tc.older || i > 0)
				switch {
				case diff == "" && differs:
					t.Errorf("there is no difference any more: %s", tc.difference)
				case diff != "" && !differs:
					t.Errorf("-Vault +Prerig:\n%s", diff)
				case diff == "":
					equal++
				case !bytes.Contains(docs, []byte("| "+tc.difference+" |")):
					t.Errorf("%s has no row for %q", differencesDocs, tc.difference)
				}
			})
		}
		t.Logf("%s: %d of %d equal", version, equal, len(vaultCases))
		if !bytes.Contains(docs, fmt.Appendf(nil, "| %s | %d of %d |", version, equal, len(vaultCases))) {
			t.Errorf("%s does not say that %d of %d are equal to those of %s", differencesDocs, equal, len(vaultCases), version)
		}
	}
}

// vaultPolicy returns the policy that is imported from the Deployment of an injector with the variables.
func vaultPolicy(t *testing.T, environment map[string]string) []byte {
	t.Helper()
	env := []any{}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		env = append(env, map[string]any{"name": name, "value": environment[name]})
	}
	imp, err := importer.Policy([]importer.Object{{Path: "cluster.yaml", Line: 1, Value: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "vault-agent-injector", "namespace": "vault"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "sidecar-injector", "env": env}}}}},
	}}}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(imp.Warnings) > 0 {
		t.Errorf("warnings of the import: %q", imp.Warnings)
	}
	policy, err := importer.Marshal(imp.Policy, imp.Comment())
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// vaultDiff says how the policy's pod differs from the injector's; it is empty where it does not. It also checks that injecting
// twice is injecting once, and that removing gives the input.
func vaultDiff(t *testing.T, tc vaultCase, want injectorAnswer) string {
	t.Helper()
	input, err := yaml.Marshal(tc.object(t))
	if err != nil {
		t.Fatal(err)
	}
	out, difference := injectAndBack(t, vaultPolicy(t, tc.environment()), input, "Vault", want.Error)
	if out == nil {
		return difference
	}
	var ours, theirs corev1.Pod
	if err := yaml.Unmarshal(out, &ours); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Pod, &theirs); err != nil {
		t.Fatal(err)
	}
	delete(ours.Annotations, "sidecar.prerig.dev/vault-agent")
	normalizeVaultPod(t, &ours)
	normalizeVaultPod(t, &theirs)
	return cmp.Diff(theirs, ours, cmpopts.EquateEmpty())
}

// normalizeVaultPod takes out what is meant to be different in every pod: where new volumes and mounts stand among others, which
// Kubernetes gives no meaning; the token that the API server mounts into the agent, too, when the pod is made; and what is in
// another order each time that Vault's injector is asked, as it takes it from a map: templates, volumes for secrets
// with paths of their own, and the variables of AWS.
func normalizeVaultPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	dropToken(pod)
	names := map[string]string{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			for j := range c.VolumeMounts {
				if m := &c.VolumeMounts[j]; strings.HasPrefix(m.Name, "vault-secrets-custom-") {
					names[m.Name] = "vault-secrets-custom at " + m.MountPath
					m.Name = names[m.Name]
				}
			}
			if strings.HasPrefix(c.Name, "vault-agent") {
				slices.SortStableFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
				for j := range c.Env {
					if c.Env[j].Name == "VAULT_CONFIG" {
						c.Env[j].Value = sortedVaultConfig(t, c.Env[j].Value)
					}
				}
			}
		}
	}
	for i, v := range pod.Spec.Volumes {
		if name := names[v.Name]; name != "" {
			pod.Spec.Volumes[i].Name = name
		}
	}
	sortVolumes(pod)
}

// sortedVaultConfig returns the agent's configuration as it is written, with its templates sorted where there are several.
func sortedVaultConfig(t *testing.T, encoded string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Templates []json.RawMessage `json:"template"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Templates) < 2 {
		return string(text)
	}
	before := bytes.Join(rawBytes(config.Templates), []byte(","))
	slices.SortFunc(config.Templates, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	sorted := bytes.Replace(text, before, bytes.Join(rawBytes(config.Templates), []byte(",")), 1)
	return string(sorted)
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

// TestVaultAnswers compares the stored answers with those of the program, or writes them anew.
func TestVaultAnswers(t *testing.T) {
	if *vaultInjector == "" {
		t.Skip("no program: make vault INJECTOR=…")
	}
	cases := map[string]any{}
	for name, tc := range vaultCases {
		pod := admittedPod(tc.object(t))
		meta := pod["metadata"].(map[string]any)
		cases[name] = map[string]any{"pod": pod, "namespace": meta["namespace"], "env": tc.environment()}
	}
	got := askInjector[vaultAnswers](t, *vaultInjector, cases)
	checkVersion(t, got.Version, vaultVersions...)
	if *update {
		if err := os.WriteFile(vaultDataFile(got.Version), formatVaultAnswers(t, got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := readVaultAnswers(t, got.Version)
	for name := range vaultCases {
		if diff := cmp.Diff(orderedVaultAnswer(t, want.Answers[name]), orderedVaultAnswer(t, got.Answers[name])); diff != "" {
			t.Errorf("%s: -stored +Vault:\n%s", name, diff)
		}
	}
}

// orderedVaultAnswer is the answer without what is in another order each time.
func orderedVaultAnswer(t *testing.T, answer injectorAnswer) any {
	t.Helper()
	if answer.Pod == nil {
		return answer.Error
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Pod, &pod); err != nil {
		t.Fatal(err)
	}
	normalizeVaultPod(t, &pod)
	return pod
}

// readVaultAnswers returns the stored answers of a version.
func readVaultAnswers(t *testing.T, version string) vaultAnswers {
	t.Helper()
	out := readAnswers[vaultAnswers](t, vaultDataFile(version))
	eachContainer(out.Answers, expandContainer)
	return out
}

// formatVaultAnswers writes one case a line, with containers as differences from those of the plain case.
func formatVaultAnswers(t *testing.T, answers vaultAnswers) []byte {
	t.Helper()
	eachContainer(answers.Answers, shrinkContainer)
	defer eachContainer(answers.Answers, expandContainer)
	return formatAnswers(t, answers.Version, "", nil, answers.Answers)
}
