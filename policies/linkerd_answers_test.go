// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// linkerdInjector is a program made of Linkerd's code that answers as its injector does; see testdata/linkerd/README.md.
var linkerdInjector = flag.String("linkerd-injector", "", "program that answers as Linkerd's injector, to compare the stored answers with")

// linkerdAnswers are what one version of Linkerd's injector says.
type linkerdAnswers struct {
	Version string `json:"version"`
	// Values are those of linkerd-config of an installation without settings, as the injector reads them.
	Values map[string]any `json:"values"`
	// Answers are what it makes of the cases, by their names.
	Answers map[string]injectorAnswer `json:"answers"`
}

// linkerdDataFile returns the file with the answers of a version.
func linkerdDataFile(version string) string {
	return filepath.Join("testdata", "linkerd", version+".injector.json")
}

func readLinkerdAnswers(t *testing.T, version string) linkerdAnswers {
	t.Helper()
	out := readAnswers[linkerdAnswers](t, linkerdDataFile(version))
	eachContainer(out.Answers, expandContainer)
	return out
}

// plainCase is the case from which the others are written as differences, container by container.
const plainCase = "plain"

// containersByName returns the containers of a pod, to be changed in place.
func containersByName(pod map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, e := range list {
			c := e.(map[string]any)
			out[c["name"].(string)] = c
		}
	}
	return out
}

// variablesByName returns the environment variables of a container.
func variablesByName(container map[string]any) map[string]any {
	out := map[string]any{}
	env, _ := container["env"].([]any)
	for _, v := range env {
		if v, ok := v.(map[string]any); ok {
			out[v["name"].(string)] = v
		}
	}
	return out
}

// shrinkContainer leaves what is not as in the plain container: fields that it has not are null, and a variable that is equal is
// only its name.
func shrinkContainer(c, plain map[string]any) {
	variables := variablesByName(plain)
	for key, value := range plain {
		if have, ok := c[key]; !ok {
			c[key] = nil
		} else if key != "name" && reflect.DeepEqual(have, value) {
			delete(c, key)
		}
	}
	env, _ := c["env"].([]any)
	for i, v := range env {
		if name := v.(map[string]any)["name"].(string); reflect.DeepEqual(v, variables[name]) {
			env[i] = name
		}
	}
}

// expandContainer takes back what shrinkContainer did.
func expandContainer(c, plain map[string]any) {
	variables := variablesByName(plain)
	env, _ := c["env"].([]any)
	for i, v := range env {
		if name, isName := v.(string); isName {
			env[i] = variables[name]
		}
	}
	for key, value := range plain {
		if have, ok := c[key]; !ok {
			c[key] = value
		} else if have == nil {
			delete(c, key)
		}
	}
}

// TestLinkerdAnswers compares the stored answers with those of the program, or writes them anew.
func TestLinkerdAnswers(t *testing.T) {
	if *linkerdInjector == "" {
		t.Skip("no program: make linkerd INJECTOR=…")
	}
	cases := map[string]any{}
	for name, tc := range linkerdCases {
		pod := admittedPod(tc.template(t))
		pod["apiVersion"], pod["kind"] = "v1", "Pod"
		meta := pod["metadata"].(map[string]any)
		meta["name"], meta["namespace"] = "orders-0", "shop"
		cases[name] = map[string]any{"pod": pod, "namespace": fullAnnotations(tc.namespace), "values": tc.values, "trustAnchors": linkerdTrustAnchors,
			"owner": map[string]any{"kind": tc.workloadKind(), "name": "orders"}}
	}
	got := askInjector[linkerdAnswers](t, *linkerdInjector, cases)
	checkVersion(t, got.Version, linkerdVersions...)
	text := formatLinkerdAnswers(t, got)
	if *update {
		if err := os.WriteFile(linkerdDataFile(got.Version), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(linkerdDataFile(got.Version))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")); diff != "" {
		t.Errorf("-stored +Linkerd:\n%s", diff)
	}
}

// formatLinkerdAnswers writes one case a line, with containers as differences from those of the plain case.
func formatLinkerdAnswers(t *testing.T, answers linkerdAnswers) []byte {
	t.Helper()
	eachContainer(answers.Answers, shrinkContainer)
	defer eachContainer(answers.Answers, expandContainer)
	return formatAnswers(t, answers.Version, "values", knownValues(builtInValues(t, "linkerd"), answers.Values), answers.Answers)
}

const (
	tokenVolume = "kube-api-access-x7k2p"
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// admittedPod returns the pod as the API server hands it to webhooks: it has added the service account's token to each
// container before, as its admission plugin ServiceAccount does unless automountServiceAccountToken is false.
func admittedPod(pod map[string]any) map[string]any {
	spec := pod["spec"].(map[string]any)
	if spec["automountServiceAccountToken"] == false {
		return pod
	}
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, e := range list {
			c := e.(map[string]any)
			mounts, _ := c["volumeMounts"].([]any)
			c["volumeMounts"] = append(mounts, map[string]any{"name": tokenVolume, "mountPath": tokenPath, "readOnly": true})
		}
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": tokenVolume, "projected": map[string]any{"sources": []any{}}})
	return pod
}
