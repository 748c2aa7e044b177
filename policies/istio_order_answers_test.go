// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	// orderAnswersFile has the pods that Istio's webhook and another make, one after the other; see testdata/istio-order/README.md.
	orderAnswersFile = "testdata/istio-order/webhooks.json"
	// istioInjector and kubernetesDefaulter are programs made of Istio's and Kubernetes' code; see fn/internal/upstream.
	istioInjector       = "../dist/upstream/injector"
	kubernetesDefaulter = "../dist/upstream/defaulter"
)

// orderAnswers are the pods by the names of the cases.
type orderAnswers struct {
	// Version is Istio's, and Others are those of the other injectors by their policies.
	Version string                    `json:"version"`
	Others  map[string]string         `json:"others"`
	Answers map[string]injectorAnswer `json:"answers"`
}

// TestOrderWithIstioAnswers compares the stored answers with those of the programs, or writes them anew; answers for which there is
// no program stay. Before each webhook, and after the last, the pod gets the API server's defaults.
func TestOrderWithIstioAnswers(t *testing.T) {
	programs := map[string]string{"vault-agent": *vaultInjector, "cloud-sql-operator": *cloudSQLOperator,
		"opentelemetry-sidecar": *openTelemetryOperator, "opentelemetry-instrumentation": *openTelemetryOperator}
	maps.DeleteFunc(programs, func(_, program string) bool { return program == "" })
	if len(programs) == 0 {
		t.Skip("no program of another injector: make istio-order VAULT=…")
	}
	for _, program := range []string{istioInjector, kubernetesDefaulter} {
		if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
			t.Skipf("%s is not built: make istio-order", program)
		}
	}
	stored := readAnswers[orderAnswers](t, orderAnswersFile)
	eachContainer(stored.Answers, expandContainer)
	got := orderAnswers{Version: "1.31.1", Others: maps.Clone(stored.Others), Answers: maps.Clone(stored.Answers)}
	maps.DeleteFunc(got.Answers, func(name string, _ injectorAnswer) bool { _, ok := orderCases[orderCaseOf(name)]; return !ok })
	istioAlone := map[string]map[string]any{plainCase: orderPlain.pod(t)}
	for name, pod := range defaultedPods(t, askIstio(t, defaultedPods(t, istioAlone))) {
		got.Answers[name] = injectorAnswer{Pod: pod}
	}
	for policy, program := range programs {
		first, last := map[string]map[string]any{}, map[string]map[string]any{}
		for name, tc := range orderCases {
			if tc.policy == policy {
				first[orderName(name, false)], last[orderName(name, true)] = tc.pod(t), tc.pod(t)
			}
		}
		ask := func(pods map[string]map[string]any) map[string]map[string]any {
			out, version := askOther(t, program, policy, pods)
			got.Others[policy] = version
			return out
		}
		for name, pod := range defaultedPods(t, askIstio(t, defaultedPods(t, ask(defaultedPods(t, first))))) {
			got.Answers[name] = injectorAnswer{Pod: pod}
		}
		for name, pod := range defaultedPods(t, ask(defaultedPods(t, askIstio(t, defaultedPods(t, last))))) {
			got.Answers[name] = injectorAnswer{Pod: pod}
		}
	}
	text := formatOrderAnswers(t, got)
	if *update {
		if err := os.WriteFile(orderAnswersFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
		stored = readAnswers[orderAnswers](t, orderAnswersFile)
		eachContainer(stored.Answers, expandContainer)
	}
	for _, name := range slices.Sorted(maps.Keys(got.Answers)) {
		want, have := orderedPod(t, stored.Answers[name].Pod), orderedPod(t, got.Answers[name].Pod)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: -stored +webhooks:\n%s", name, diff)
		}
	}
}

// formatOrderAnswers writes one case a line, with containers as differences from those of the pod that has Istio's proxy alone.
func formatOrderAnswers(t *testing.T, answers orderAnswers) []byte {
	t.Helper()
	eachContainer(answers.Answers, shrinkContainer)
	defer eachContainer(answers.Answers, expandContainer)
	return formatAnswers(t, answers.Version, "others", answers.Others, answers.Answers)
}

// defaultedPods returns the pods as the API server has them.
func defaultedPods(t *testing.T, pods map[string]map[string]any) map[string]map[string]any {
	t.Helper()
	var in bytes.Buffer
	names := slices.Sorted(maps.Keys(pods))
	for _, name := range names {
		if err := json.NewEncoder(&in).Encode(pods[name]); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), kubernetesDefaulter)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for _, name := range names {
		var pod map[string]any
		if err := decoder.Decode(&pod); err != nil {
			t.Fatal(err)
		}
		if pod["kind"] == "Status" {
			t.Fatalf("%s: the API server cannot read the pod: %v", name, pod["message"])
		}
		delete(pod, "status")
		out[name] = pod
	}
	return out
}

// askIstio returns what Istio's webhook makes of the pods, with the ConfigMaps of the version's own chart.
func askIstio(t *testing.T, pods map[string]map[string]any) map[string]map[string]any {
	t.Helper()
	theirs, _, _ := current(t)
	var values map[string]any
	if err := yaml.Unmarshal([]byte(theirs.values), &values); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(merge(values, orderImages))
	if err != nil {
		t.Fatal(err)
	}
	installation, err := json.Marshal(map[string]any{"config": theirs.config, "values": string(text), "mesh": theirs.mesh, "revision": "default", "path": "/inject",
		"clusters": []string{"Kubernetes"}, "kubelets": []string{"v1.34.1"}, "namespaces": []any{map[string]any{"metadata": map[string]any{"name": "shop"}}}})
	if err != nil {
		t.Fatal(err)
	}
	file, answers := filepath.Join(t.TempDir(), "installation.json"), filepath.Join(t.TempDir(), "answers")
	if err := os.WriteFile(file, installation, 0o600); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	names := slices.Sorted(maps.Keys(pods))
	for _, name := range names {
		if err := json.NewEncoder(&in).Encode(map[string]any{"namespace": "shop", "pod": pods[name]}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), istioInjector, file, answers)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(answers); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for _, name := range names {
		var answer struct {
			Pod     map[string]any `json:"pod"`
			Refused string         `json:"refused"`
			Unknown []string       `json:"unknown"`
		}
		if err := decoder.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if answer.Pod == nil {
			t.Fatalf("%s: Istio's webhook makes no pod: %s %v", name, answer.Refused, answer.Unknown)
		}
		out[name] = answer.Pod
	}
	return out
}

// askOther returns what the webhook of another injector makes of the pods, and its version.
func askOther(t *testing.T, program, policy string, pods map[string]map[string]any) (map[string]map[string]any, string) {
	t.Helper()
	cases := map[string]any{}
	for name, pod := range pods {
		cases[name] = orderQuestion(t, policy, orderCases[orderCaseOf(name)], pod)
	}
	got := askInjector[struct {
		Version string `json:"version"`
		Answers map[string]struct {
			Pod   map[string]any   `json:"pod"`
			Pods  []map[string]any `json:"pods"`
			Error string           `json:"error"`
		} `json:"answers"`
	}](t, program, cases)
	out := map[string]map[string]any{}
	for name, pod := range pods {
		answer := got.Answers[name]
		if len(answer.Pods) == 1 {
			answer.Pod = answer.Pods[0]
		}
		if answer.Pod == nil {
			t.Fatalf("%s: %s makes no pod, or several: %s", name, policy, answer.Error)
		}
		// The programs may name the pod and its owner in their own way.
		meta, made := maps.Clone(pod["metadata"].(map[string]any)), answer.Pod["metadata"].(map[string]any)
		meta["labels"], meta["annotations"] = made["labels"], made["annotations"]
		out[name] = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": answer.Pod["spec"]}
	}
	return out, got.Version
}
