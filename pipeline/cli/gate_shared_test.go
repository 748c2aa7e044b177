// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestUndescribedKindIsOneFinding: a kind without a definition is reported once with its objects, in all formats.
func TestUndescribedKindIsOneFinding(t *testing.T) {
	t.Chdir(t.TempDir())
	text := ""
	for i := range 7 {
		text += fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w%d}\n", i)
	}
	put(t, text+"---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n", "k8s/a.yaml")
	code, stdout, stderr := command(t, "", "gate", "--as-is", "k8s")
	if code != 0 || strings.Count(stdout, "schema-undescribed-kind") != 2 || !strings.Contains(stdout, "warning: 7 objects: only the metadata was checked") ||
		!strings.Contains(stdout, "Widget w0") || !strings.Contains(stdout, "8 objects checked: 0 errors, 2 warnings") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	_, stdout, _ = command(t, "", "gate", "--as-is", "-o", "json", "k8s")
	if got := strings.Count(stdout, "schema-undescribed-kind"); got != 2 || strings.Count(stdout, `"name": "w`) != 7 && strings.Count(stdout, `"name":"w`) != 7 {
		t.Errorf("JSON has %d findings\n%s", got, stdout)
	}
	_, stdout, _ = command(t, "", "gate", "--as-is", "-o", "sarif", "k8s")
	var sarif struct {
		Runs []struct {
			Results []struct {
				Message          struct{ Text string }
				RelatedLocations []any
			}
		}
	}
	must(t, json.Unmarshal([]byte(stdout), &sarif))
	results := sarif.Runs[0].Results
	if len(results) != 2 || !strings.HasPrefix(results[0].Message.Text, "7 objects: ") || len(results[0].RelatedLocations) != 6 {
		t.Errorf("SARIF has %+v", results)
	}
}

// TestValuesOfALaterBuildAreNoErrorsOfTheGate: sources are checked before kustomize and Flux have filled them in.
func TestValuesOfALaterBuildAreNoErrorsOfTheGate(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"k8s/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n",
		"k8s/service.yaml":   "apiVersion: v1\nkind: Service\nmetadata: {name: \"${ APP }-a\", labels: {app: \"${APP}\"}}\nspec: {ports: [{port: \"${PORT}\"}]}\n",
		"k8s/crd.yaml":       "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com, annotations: {cert-manager.io/inject-ca-from: a/b}}\n",
		"k8s/scale.yaml":     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: <N>, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}\n",
	})
	code, stdout, stderr := command(t, "", "gate", "--as-is", "k8s")
	if code != 0 || !strings.Contains(stdout, ": 0 errors, 0 warnings") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{"values were not checked, because a later build fills them in, such as "} {
		if strings.Count(stderr, want) != 1 {
			t.Errorf("%q is missing in\n%s", want, stderr)
		}
	}
	put(t, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: web}]}\n", "k8s/wrong.yaml")
	if code, stdout, _ := command(t, "", "gate", "--as-is", "k8s"); code != ExitFindings || !strings.Contains(stdout, "1 error") {
		t.Errorf("a mistake: exit %d\n%s", code, stdout)
	}
}

// TestGenerateNameIsNamed: an object without a name is named by its generateName.
func TestGenerateNameIsNamed(t *testing.T) {
	arrange(t)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: migrate-, namespace: shop}\nspec: {containers: [{name: a, image: b}]}\n"
	if _, _, stderr := command(t, pod, "inject", "-p", "tiny.yaml"); !strings.Contains(stderr, "Pod shop/migrate-") {
		t.Errorf("inject does not name it:\n%s", stderr)
	}
	if _, stdout, _ := command(t, strings.Replace(pod, "image: b", "image: 1", 1), "gate", "--as-is"); !strings.Contains(stdout, "Pod shop/migrate-") {
		t.Errorf("gate does not name it:\n%s", stdout)
	}
}

// TestRenderFindsPipelinesByTheirNames: the namespace can be left out where only one pipeline has the name; and objects that
// the API server names are in the order of what their names begin with.
func TestRenderFindsPipelinesByTheirNames(t *testing.T) {
	t.Chdir(t.TempDir())
	pipeline := func(namespace, name, build string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec:\n" +
			"  source: {git: {url: https://example.com/r, ref: {branch: main}}}\n  build: " + build + "\n  publish: [{git: {branch: " + namespace + "}}]\n"
	}
	job := func(name string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: " + name + "}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: " + name + "x, image: a}]}}}\n"
	}
	writeFiles(t, map[string]string{
		"pipelines/a.yaml": pipeline("team", "jobs", "{path: jobs}"), "pipelines/b.yaml": pipeline("team", "both", "{path: jobs}"),
		"pipelines/c.yaml": pipeline("other", "both", "{path: jobs}"), "pipelines/d.yaml": pipeline("team", "package", "{path: package}"),
		"src/jobs/a.yaml":     job("smoke-") + job("migrate-") + strings.Replace(job("smoke-"), "image: a", "image: b", 1),
		"src/package/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n", "src/package/a.yaml": job("smoke-"),
	})
	code, stdout, stderr := command(t, "", "render", "--source", "src", "jobs")
	var order []string
	for line := range strings.Lines(stdout) {
		if _, name, ok := strings.Cut(line, "generateName: "); ok {
			order = append(order, strings.Trim(name, " ,}\n"))
		}
	}
	if got := strings.Join(order, " "); code != 0 || got != "migrate- smoke- smoke-" {
		t.Errorf("exit %d, order %q\n%s", code, got, stderr)
	}
	if code, _, stderr := command(t, "", "render", "--source", "src", "both"); code != ExitError || !strings.Contains(stderr, "no pipeline both") {
		t.Errorf("two of a name: exit %d\n%s", code, stderr)
	}
	if code, stdout, stderr := command(t, "", "render", "--source", "src", "package"); code != 0 || !strings.Contains(stdout, "smoke-") {
		t.Errorf("a kpt package: exit %d\n%s", code, stderr)
	}
}

// TestRenderTimeout: the time limit is that of the flag, and a pipeline may set a shorter one.
func TestRenderTimeout(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"pipelines/a.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: a}\nspec:\n" +
			"  source: {git: {url: https://example.com/r, ref: {branch: main}}}\n  build: {path: .}\n  publish: [{git: {branch: b}}]\n",
		"src/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	})
	if code, _, stderr := command(t, "", "render", "--source", "src", "--timeout", "1ns"); code != ExitError || !strings.Contains(stderr, "1ns") {
		t.Errorf("no time: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := command(t, "", "render", "--source", "src", "--timeout", "10m"); code != 0 {
		t.Errorf("more time: exit %d\n%s", code, stderr)
	}
}
