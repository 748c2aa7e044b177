// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	policyapi "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
)

// TestChartInCatalogues checks what Artifact Hub shows of the chart: valid annotations, examples of each definition that Prerig accepts,
// and a README with every value.
func TestChartInCatalogues(t *testing.T) {
	var chart struct {
		Icon, Home  string
		Keywords    []string
		Sources     []string
		Maintainers []struct{ Name, Email string }
		Annotations map[string]string
	}
	if err := yaml.Unmarshal(readFile(t, "chart/Chart.yaml"), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Icon == "" || chart.Home == "" || len(chart.Keywords) == 0 || len(chart.Sources) == 0 || len(chart.Maintainers) == 0 {
		t.Errorf("Chart.yaml lacks something: %+v", chart)
	}
	_, icon, found := strings.Cut(chart.Icon, "/main/")
	if _, err := os.Stat("../" + icon); !found || err != nil {
		t.Errorf("the icon is %s, %v", chart.Icon, err)
	}
	for _, name := range []string{"crds", "crdsExamples", "links"} {
		var entries []map[string]any
		if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/"+name]), &entries); err != nil || len(entries) != 2 {
			t.Errorf("artifacthub.io/%s has %d entries, %v", name, len(entries), err)
		}
	}
	checkExamples(t, chart.Annotations["artifacthub.io/crdsExamples"])

	var values map[string]any
	if err := yaml.Unmarshal(readFile(t, "chart/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	readme := string(readFile(t, "chart/README.md"))
	for name := range values {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not have the value %s", name)
		}
	}
}

func checkExamples(t *testing.T, text string) {
	t.Helper()
	var examples []json.RawMessage
	if err := yaml.Unmarshal([]byte(text), &examples); err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		if strings.Contains(string(example), `"InjectionPolicy"`) {
			if _, err := policyapi.Parse(example); err != nil {
				t.Errorf("the example of a policy: %v", err)
			}
			continue
		}
		for _, entry := range catalog.Parse("example", example) {
			if entry.Err != nil {
				t.Errorf("the example of a pipeline: %v", entry.Err)
			}
		}
	}
}

// TestChartTestsAndNotes renders what Prerig's own renderer leaves out of a release, with Helm: the pod of helm test has the daemon's
// setup and none of the labels by which the Service finds the daemon, and the notes name the release.
func TestChartTestsAndNotes(t *testing.T) {
	for name, values := range valuesOfAll {
		rendered := helmTemplates(t, values)
		pod := into[corev1.Pod](t, parse(t, rendered["prerig/templates/tests/doctor.yaml"]), "Pod/prerig-doctor")
		daemon := into[appsv1.StatefulSet](t, parse(t, rendered["prerig/templates/daemon.yaml"]), "StatefulSet/prerig").Spec.Template
		for key, value := range daemon.Labels {
			if pod.Labels[key] == value {
				t.Errorf("%s: the test's pod has the daemon's label %s=%s", name, key, value)
			}
		}
		container, of := pod.Spec.Containers[0], daemon.Spec.Containers[0]
		if pod.Annotations["helm.sh/hook"] != "test" || container.Args[0] != "doctor" || container.Image != of.Image {
			t.Errorf("%s: the test's pod is %+v", name, pod)
		}
		if diff := cmp.Diff(daemon.Spec.Volumes[0], pod.Spec.Volumes[0]); diff != "" {
			t.Errorf("%s: the test has other files than the daemon (-daemon +test):\n%s", name, diff)
		}
		if diff := cmp.Diff(of.SecurityContext, container.SecurityContext); diff != "" {
			t.Errorf("%s: the test is restricted in another way (-daemon +test):\n%s", name, diff)
		}
		if notes := rendered["prerig/templates/NOTES.txt"]; !strings.Contains(notes, "helm test prerig -n render --logs") {
			t.Errorf("%s: the notes are\n%s", name, notes)
		}
	}
}

// helmTemplates renders the chart as a release named prerig in the namespace render, and returns the text of each template.
func helmTemplates(t *testing.T, text string) map[string]string {
	t.Helper()
	chart, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	values, err := common.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: "prerig", Namespace: "render", Revision: 1, IsInstall: true}
	if values, err = util.ToRenderValues(chart, values, options, common.DefaultCapabilities); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	rendered, err := engine.Engine{}.RenderWithContext(t.Context(), chart, values)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rendered
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
