// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/moduleroot"
	"github.com/prerig/prerig/policies"
)

const initWeb = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// emptyProject changes into a new directory with one workload, which is a repository with a remote where one is given.
func emptyProject(t *testing.T, remote string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "no-kubeconfig"))
	writeFile(t, "k8s/web.yaml", initWeb)
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", remote}} {
		if remote == "" && args[0] == "remote" {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatal("git:", err, string(out))
		}
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// runCode runs a command line that must end with a code.
func runCode(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := command(t, "", args...)
	if code != want {
		t.Fatalf("prerig %s: %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout, stderr
}

// TestInitInjectsAtOnce follows the steps that init prints.
func TestInitInjectsAtOnce(t *testing.T) {
	emptyProject(t, "")
	_, said := runCode(t, 0, "init", "k8s")
	for _, step := range []string{"prerig doctor ", "prerig explain k8s ", "prerig inject --diff k8s ", "prerig inject -i k8s "} {
		if !strings.Contains(said, "  "+step) {
			t.Errorf("%q is not among the steps:\n%s", step, said)
		}
	}
	if _, err := os.Stat("pipelines"); err == nil {
		t.Error("a pipeline was written that nobody asked for")
	}
	if out, said := runCode(t, 0, "doctor"); strings.Contains(out, "error ") || strings.Contains(out, "warning ") {
		t.Errorf("the doctor is not content:\n%s%s", out, said)
	}
	runCode(t, 1, "inject", "--check", "k8s")
	runCode(t, 0, "inject", "-i", "-q", "k8s")
	if !strings.Contains(readFile(t, "k8s/web.yaml"), "name: istio-proxy") {
		t.Error("nothing was injected")
	}
}

// TestInitNamesSchemas checks that editors find the schema of each file that init writes, and that the schema exists.
func TestInitNamesSchemas(t *testing.T) {
	root, err := moduleroot.Dir()
	must(t, err)
	emptyProject(t, "https://git.example.com/org/shop.git")
	runCode(t, 0, "init", "k8s", "--source", ".")
	for file, schema := range map[string]string{"prerig.yaml": "injectionpolicy_v1alpha1.json", "pipelines/shop.yaml": "renderpipeline_v1alpha1.json"} {
		want := "# yaml-language-server: $schema=https://raw.githubusercontent.com/prerig/prerig/main/schemas/" + schema + "\n"
		if text := readFile(t, file); !strings.HasPrefix(text, want) {
			t.Errorf("%s does not start with the line of its schema:\n%s", file, text)
		}
		if _, err := os.Stat(filepath.Join(root, "schemas", schema)); err != nil {
			t.Error(err)
		}
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	emptyProject(t, "")
	const mine = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mine}\nspec: {istio: {injector: {builtIn: istio}}}\n"
	writeFile(t, "prerig.yaml", mine)
	writeFile(t, "pipelines/shop.yaml", "mine: true\n")
	for _, args := range [][]string{
		{"init"}, {"init", "--from", "built-in"}, {"init", "--namespaces", "shop"},
		{"init", "--source", "https://git.example.com/org/shop.git"}, // the pipeline is there
	} {
		runCode(t, 2, args...)
		if readFile(t, "prerig.yaml") != mine || readFile(t, "pipelines/shop.yaml") != "mine: true\n" {
			t.Fatalf("%q has overwritten something", args)
		}
	}
	// A policy that is there stays for a new pipeline.
	runCode(t, 0, "init", "--source", "https://git.example.com/org/other.git")
	if readFile(t, "prerig.yaml") != mine {
		t.Error("the policy was overwritten")
	}
	runCode(t, 0, "init", "--force", "--namespaces", "shop,till", "--source", "https://git.example.com/org/shop.git")
	if p, err := v1alpha1.Parse([]byte(readFile(t, "prerig.yaml"))); err != nil || len(p.Spec.Namespaces) != 2 || p.Metadata.Name != "istio" {
		t.Errorf("%v, %v", p, err)
	}
	if readFile(t, "pipelines/shop.yaml") == "mine: true\n" {
		t.Error("--force has not written the pipeline")
	}
}

// A pipeline for the repository that it is written in finds manifests and policy where they are, and renders.
func TestInitPipelineOfThisRepository(t *testing.T) {
	emptyProject(t, "https://me:secret-token@git.example.com/org/Shop_App.git")
	_, said := runCode(t, 0, "init", "k8s", "--source", ".", "--publish", "live")
	text := readFile(t, "pipelines/shop-app.yaml")
	if strings.Contains(text+said, "secret-token") {
		t.Errorf("the credentials of the remote were written:\n%s%s", text, said)
	}
	for _, line := range []string{"url: https://git.example.com/org/Shop_App.git", "path: k8s", "- path: prerig.yaml", "branch: live"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing:\n%s", line, text)
		}
	}
	if !strings.Contains(said, "prerig render --source . shop-app ") {
		t.Errorf("the steps do not say how to render:\n%s", said)
	}
	out, _ := runCode(t, 0, "render", "--source", ".", "--cache", t.TempDir(), "shop-app")
	if !strings.Contains(out, "name: istio-proxy") {
		t.Errorf("the pipeline injects nothing:\n%s", out)
	}
}

// TestInitSources tries each kind of source and target; what is written is read as the daemon reads it.
func TestInitSources(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"another repository":    {[]string{"--source", "https://git.example.com/x/apps.git"}, 0, []string{"- file: prerig.yaml", "branch: rendered", "path: ."}},
		"ssh":                   {[]string{"--source", "git@git.example.com:x/apps.git", "--branch", "main"}, 0, []string{"\n      secretRef: {name: git}", "ref: {branch: main}"}},
		"odd characters":        {[]string{"--source", "https://git.example.com/x/a%20b.git", "--branch", "fix: #1"}, 2, nil},
		"branch like a number":  {[]string{"--source", "https://git.example.com/x/apps.git", "--branch", "1.30"}, 0, []string{`branch: "1.30"`}},
		"branch with a comma":   {[]string{"--source", "https://git.example.com/x/apps.git", "--branch", "a,b", "--publish", "r,s"}, 0, []string{`ref: {branch: "a,b"}`, "branch: r,s"}},
		"branch with braces":    {[]string{"--source", "https://git.example.com/x/apps.git", "--branch", "fix-}-{"}, 0, []string{`ref: {branch: "fix-}-{"}`}},
		"branch in HTML":        {[]string{"--source", "https://git.example.com/x/apps.git", "--branch", "a,<&>"}, 0, []string{`ref: {branch: "a,<&>"}`}},
		"artifact":              {[]string{"--source", "oci://registry.example.com/apps", "--publish", "oci://registry.example.com/out"}, 0, []string{"oci:", "tags: [latest]"}},
		"artifact to a branch":  {[]string{"--source", "oci://registry.example.com/apps"}, 2, nil},
		"to another repository": {[]string{"--source", "https://git.example.com/x/apps.git", "--publish", "https://git.example.com/x/live.git#main"}, 0, []string{"url: https://git.example.com/x/live.git", "branch: main"}},
		"to the same branch":    {[]string{"--source", "https://git.example.com/x/apps.git", "--branch", "main", "--publish", "main"}, 2, nil},
		"credentials":           {[]string{"--source", "https://u:p@git.example.com/x/apps.git"}, 2, nil},
		"no remote":             {[]string{"--source", "."}, 2, nil},
		"about no pipeline":     {[]string{"--publish", "live"}, 2, nil},
		"name":                  {[]string{"--source", "https://git.example.com/x/apps.git", "--name", "Nope!"}, 2, nil},
		"cluster's flag":        {[]string{"--from", "built-in", "--context", "x"}, 2, nil},
		"no such chart":         {[]string{"--from", "charts/istiod"}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			emptyProject(t, "")
			runCode(t, tc.code, append([]string{"init"}, tc.args...)...)
			if tc.code != 0 {
				for _, name := range []string{"prerig.yaml", "pipelines"} {
					if _, err := os.Stat(name); err == nil {
						t.Errorf("%s was written although something was wrong", name)
					}
				}
				return
			}
			name := "pipelines/apps.yaml"
			for _, want := range tc.want {
				if !strings.Contains(readFile(t, name), want) {
					t.Errorf("%q is missing:\n%s", want, readFile(t, name))
				}
			}
		})
	}
}

// TestInitQuotesVersions has an odd version named as what it is, and not as a mistake of YAML.
func TestInitQuotesVersions(t *testing.T) {
	for _, version := range []string{`1.3"4`, "1.34 # new", "{1.34}", "1.34\n", "1"} {
		emptyProject(t, "")
		if _, said := runCode(t, 2, "init", "--kubernetes-version", version); !strings.Contains(said, "it must be a version of Kubernetes, such as") {
			t.Errorf("%q: %s", version, said)
		}
		if _, err := os.Stat("prerig.yaml"); err == nil {
			t.Errorf("%q was written", version)
		}
	}
	emptyProject(t, "")
	runCode(t, 0, "init", "--kubernetes-version", "v1.34.2+k3s1")
	if p, err := v1alpha1.Parse([]byte(readFile(t, "prerig.yaml"))); err != nil || p.Spec.Istio.KubernetesVersion != "v1.34.2+k3s1" {
		t.Errorf("%+v, %v", p, err)
	}
}

// writeChart writes a chart like that of istiod, with the ConfigMaps of the policy that comes with Prerig.
func writeChart(t *testing.T) {
	t.Helper()
	text, _ := policies.Get("istio")
	p, err := v1alpha1.Parse(text)
	must(t, err)
	config, err := yaml.Marshal(map[string]any{"config": p.Spec.Istio.Injector.Config, "values": p.Spec.Istio.Injector.Values})
	must(t, err)
	writeFile(t, "istiod/Chart.yaml", "apiVersion: v2\nname: istiod\nversion: 1.31.0\nkubeVersion: '>= 1.30.0-0'\n")
	writeFile(t, "istiod/values.yaml", "mesh: {trustDomain: cluster.local}\n")
	writeFile(t, "istiod/injector.yaml", string(config))
	writeFile(t, "istiod/templates/config.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector, namespace: {{ .Release.Namespace }}}
data:
{{ .Files.Get "injector.yaml" | indent 2 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: {{ .Release.Namespace }}}
data:
  mesh: |
    trustDomain: {{ .Values.mesh.trustDomain }}
`)
}

func TestInitFromChart(t *testing.T) {
	emptyProject(t, "")
	writeChart(t)
	writeFile(t, "values.yaml", "mesh: {trustDomain: example.org}\n")
	runCode(t, 0, "init", "k8s", "--from", "istiod", "--values", "values.yaml", "--istio-version", "1.31.0", "--kubernetes-version", "1.34")
	p, err := v1alpha1.Parse([]byte(readFile(t, "prerig.yaml")))
	if err != nil || !strings.Contains(p.Spec.Istio.MeshConfig, "trustDomain: example.org") || p.Spec.Istio.KubernetesVersion != "1.34" {
		t.Fatalf("%+v, %v", p, err)
	}
	if out, _ := runCode(t, 0, "inject", "-f", "k8s/web.yaml"); !strings.Contains(out, "name: istio-proxy") {
		t.Error("nothing is injected")
	}
	// The same for prerig import; and a version that the chart is not for.
	if out, _ := runCode(t, 0, "import", "istiod", "--values", "values.yaml"); !strings.Contains(out, "trustDomain: example.org") {
		t.Error("prerig import has not read the chart's values")
	}
	if _, said := runCode(t, 2, "import", "istiod", "--kubernetes-version", "1.29"); !strings.Contains(said, "1.29") {
		t.Error(said)
	}
	runCode(t, 2, "import", "k8s", "--values", "values.yaml")
}

// TestInitRefusesFlagsAboutWhatIsNotImported: they would say nothing about the built-in policy.
func TestInitRefusesFlagsAboutWhatIsNotImported(t *testing.T) {
	for _, args := range [][]string{
		{"--values", "nope.yaml"}, {"--revision", "canary"}, {"--istio-version", "1.20"}, {"--istio-namespace", "mesh"},
		{"--from", "built-in", "--revision", "canary"}, {"--from", "istio", "--istio-version", "1.20"},
	} {
		emptyProject(t, "")
		_, said := runCode(t, 2, append([]string{"init", "--yes"}, args...)...)
		wants(t, said, "error: "+args[len(args)-2]+" applies to an import, and the policy is based on the built-in one; set --from cluster")
		if _, err := os.Stat("prerig.yaml"); err == nil {
			t.Errorf("%q: a policy was written", args)
		}
	}
	emptyProject(t, "")
	_, said := runCode(t, 2, "init", "--from", "cluster", "--values", "nope.yaml")
	wants(t, said, "--values requires a chart")
}

// TestInitAsks answers at a terminal.
func TestInitAsks(t *testing.T) {
	emptyProject(t, "git@git.example.com:org/shop.git")
	term := openTerminal(t)
	go func() {
		term.typeAfter("--from [built-in]: ", 1, "no/such/path\n")
		term.typeAfter("--from [built-in]: ", 2, "\n")
		term.typeAfter("--namespaces [all]: ", 1, "Shop\n")
		term.typeAfter("--namespaces [all]: ", 2, "shop, till\n")
		term.typeAfter("--source [none]: ", 1, ".\n")
		term.typeAfter("--publish [rendered]: ", 1, "\n")
	}()
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"init", "k8s"}, term.streams(&out), "v0.0.0-test"); code != 0 {
		t.Fatalf("%d:\n%s", code, term.screen())
	}
	if out.Len() > 0 {
		t.Errorf("questions went to standard output: %s", out.String())
	}
	p, err := v1alpha1.Parse([]byte(readFile(t, "prerig.yaml")))
	if err != nil || len(p.Spec.Namespaces) != 2 || p.Spec.Namespaces[1].Name != "till" {
		t.Errorf("%+v, %v", p, err)
	}
	if !strings.Contains(readFile(t, "pipelines/shop.yaml"), "git@git.example.com:org/shop.git") {
		t.Error(readFile(t, "pipelines/shop.yaml"))
	}
	if n := strings.Count(term.screen(), "]: "); n > 6 {
		t.Errorf("%d questions were asked:\n%s", n, term.screen())
	}
}

// Flags answer questions, --yes answers all, and somebody who goes away leaves nothing behind.
func TestInitAsksLess(t *testing.T) {
	t.Run("flags", func(t *testing.T) {
		emptyProject(t, "")
		term := openTerminal(t)
		go term.typeAfter("--source [none]: ", 1, "\n")
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"init", "--from", "built-in", "--namespaces", "shop"}, term.streams(&out), ""); code != 0 || strings.Count(term.screen(), "]: ") != 1 {
			t.Errorf("%d:\n%s", code, term.screen())
		}
	})
	t.Run("yes", func(t *testing.T) {
		emptyProject(t, "")
		term := openTerminal(t)
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"init", "--yes"}, term.streams(&out), ""); code != 0 {
			t.Errorf("%d:\n%s", code, term.screen())
		}
		if term.typeAfter("Next:", 1, ""); strings.Contains(term.screen(), "]: ") {
			t.Errorf("something was asked:\n%s", term.screen())
		}
	})
	t.Run("end of input", func(t *testing.T) {
		emptyProject(t, "")
		term := openTerminal(t)
		go term.typeAfter("--from [built-in]: ", 1, "\x04")
		var out bytes.Buffer
		if code := Main(t.Context(), []string{"init"}, term.streams(&out), ""); code != 2 {
			t.Errorf("%d:\n%s", code, term.screen())
		}
		if _, err := os.Stat("prerig.yaml"); err == nil {
			t.Error("a policy was written")
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		emptyProject(t, "")
		term := openTerminal(t)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		go func() { term.typeAfter("--from [built-in]: ", 1, ""); cancel() }()
		var out bytes.Buffer
		if code := Main(ctx, []string{"init"}, term.streams(&out), ""); code != 2 {
			t.Errorf("%d:\n%s", code, term.screen())
		}
		term.typeAfter("interrupted; nothing was written", 1, "")
	})
}

// What is wrong with a flag is said of the flag, not of a line of a file that was not written.
func TestInitNamesFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`--kubernetes-version is "abc"; it must be a version of Kubernetes`:    {"--kubernetes-version", "abc"},
		"--publish main is the branch of the source":                           {"--source", "https://git.example.com/x/a.git", "--branch", "main", "--publish", "main"},
		`--from is "charts/istiod"; it must be built-in, cluster, or the path`: {"--from", "charts/istiod"},
	} {
		emptyProject(t, "")
		if _, said := runCode(t, 2, append([]string{"init"}, args...)...); !strings.Contains(said, want) {
			t.Errorf("%q: %s", args, said)
		}
	}
}

// The first doctor that somebody runs must not fail for what the advice has left out.
func TestInitSaysWhereTheDoctorFindsPolicies(t *testing.T) {
	emptyProject(t, "")
	_, said := runCode(t, 0, "init", "k8s", "--source", "https://git.example.com/org/other.git", "--name", "first")
	if !strings.Contains(said, "  prerig doctor --policies . ") {
		t.Fatalf("the doctor is not told of the policies:\n%s", said)
	}
	if out, said := runCode(t, 0, "doctor", "--policies", ".", "--offline"); strings.Contains(out, "error ") {
		t.Errorf("the doctor is not content:\n%s%s", out, said)
	}
}
