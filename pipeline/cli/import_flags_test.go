// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// TestImportTakesTheVersionOfKubernetes for manifests as for charts, in the place of what nodes say.
func TestImportTakesTheVersionOfKubernetes(t *testing.T) {
	cluster, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	emptyProject(t, "")
	writeChart(t)
	writeFile(t, "operator.yaml", "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: istio}\nspec: {profile: default}\n")
	for _, from := range []string{cluster, "istiod", "operator.yaml"} {
		out, said := runCode(t, 0, "import", from, "--kubernetes-version", "1.32")
		if p, err := v1alpha1.Parse([]byte(out)); err != nil || p.Spec.Istio.KubernetesVersion != "1.32" {
			t.Errorf("%s: %v\n%s", from, err, out)
		}
		if strings.Contains(said, "the input has no Node") {
			t.Errorf("%s: %s", from, said)
		}
		_, said = runCode(t, 2, "import", from, "--kubernetes-version", "nope")
		wants(t, said, `error: --kubernetes-version is "nope"; it must be a version of Kubernetes, such as 1.34`+"\n")
	}
}

// TestImportRefusesFlagsThatSayNothing: without a chart there is nothing to render, and without Istio no kubelet that the policy asks about.
func TestImportRefusesFlagsThatSayNothing(t *testing.T) {
	linkerd, err := filepath.Abs(filepath.Join("importer", "testdata", "cases", "linkerd", "input.yaml"))
	must(t, err)
	emptyProject(t, "")
	_, said := runCode(t, 2, "import", "--context", "nowhere", "--values", "values.yaml")
	wants(t, said, "--values requires a chart")
	_, said = runCode(t, 2, "import", linkerd, "--kubernetes-version", "1.34")
	wants(t, said, "--kubernetes-version applies to Istio and charts")
}

// TestInitNeedsNoVersionOfKubernetes where what is injected is not Istio: it says so, and goes on.
func TestInitNeedsNoVersionOfKubernetes(t *testing.T) {
	linkerd, err := filepath.Abs(filepath.Join("importer", "testdata", "cases", "linkerd", "input.yaml"))
	must(t, err)
	emptyProject(t, "")
	const note = "info: --kubernetes-version applies to Istio and charts, and is not in this policy\n"
	out, said := runCode(t, 0, "init", "--from", linkerd)
	if strings.Contains(out+said, note) {
		t.Errorf("it was not given: %s", out+said)
	}
	want := readFile(t, "prerig.yaml")
	out, said = runCode(t, 0, "init", "--force", "--from", linkerd, "--kubernetes-version", "1.30")
	wants(t, out+said, note)
	if got := readFile(t, "prerig.yaml"); got != want {
		t.Errorf("the policy is another one:\n%s", got)
	}
}
