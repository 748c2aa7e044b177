// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// podWith is a Deployment whose container has further fields.
func podWith(fields string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    metadata: {labels: {app: web}}\n" +
		"    spec:\n      containers:\n      - name: web\n        image: example.com/web:1\n        " + fields + "\n"
}

// TestValuesOfALaterBuildAreSkipped: a base whose values another tool fills in stops nothing, and each has a line.
func TestValuesOfALaterBuildAreSkipped(t *testing.T) {
	web := arrange(t)
	for fields, value := range map[string]string{
		`resources: {limits: {memory: "${MEM:=1Gi}"}}`:              "resources.limits[memory]: \"${MEM:=1Gi}\"",
		`resources: {limits: {cpu: $(trino_cpu_limit)}}`:            "resources.limits[cpu]: \"$(trino_cpu_limit)\"",
		`resources: {requests: {cpu: <CPU>}}`:                       "resources.requests[cpu]: \"<CPU>\"",
		`ports: [{containerPort: "${PORT}"}]`:                       "ports[0].containerPort: \"${PORT}\"",
		`livenessProbe: {grpc: {port: $PORT}}`:                      "livenessProbe.grpc.port: \"$PORT\"",
		`tty: ${TTY}`:                                               "tty: \"${TTY}\"",
		`env: ${ENV}`:                                               "env: \"${ENV}\"",
		`securityContext: {runAsUser: "@USER@"}`:                    "securityContext.runAsUser: \"@USER@\"",
		`volumeDevices: [{name: a, devicePath: b}, "{{ device }}"]`: "volumeDevices[1]: \"{{ device }}\"",
	} {
		writeFiles(t, map[string]string{"k8s/base.yaml": podWith(fields), "k8s/web.yaml": web})
		code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "k8s")
		want := "warning: k8s/base.yaml:11: spec.template.spec.containers[0]." + value + " is filled in by a later build; skipped"
		if code != 0 || !strings.Contains(stderr, want) || !strings.Contains(readFile(t, "k8s/web.yaml"), "istio-proxy") {
			t.Errorf("%s: exit %d\n%s", fields, code, stderr)
		}
		if got := readFile(t, "k8s/base.yaml"); got != podWith(fields) {
			t.Errorf("%s: it was changed:\n%s", fields, got)
		}
	}
	// Where a text is wanted, it is one.
	writeFiles(t, map[string]string{"k8s/base.yaml": podWith("env: [{name: A, value: \"${A}\"}]"), "k8s/web.yaml": web})
	if code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "k8s"); code != 0 || !strings.Contains(readFile(t, "k8s/base.yaml"), "istio-proxy") {
		t.Errorf("a text: exit %d\n%s", code, stderr)
	}
}

// TestPatchWithoutTemplateIsSkipped: a patch of a kind that has pods is no broken workload.
func TestPatchWithoutTemplateIsSkipped(t *testing.T) {
	web := arrange(t)
	for _, patch := range []string{
		"apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec: {}\n",
		"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {replicas: 2}\n",
	} {
		writeFiles(t, map[string]string{"k8s/patch.yaml": patch, "k8s/web.yaml": web})
		code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "k8s")
		if code != 0 || !strings.Contains(stderr, "1 workload without containers (k8s/patch.yaml) was skipped") {
			t.Errorf("exit %d\n%s", code, stderr)
		}
	}
}

// TestKeepGoingWritesAllOtherFiles: what stops a run otherwise is listed, and all other files are written.
func TestKeepGoingWritesAllOtherFiles(t *testing.T) {
	web := arrange(t)
	for name, broken := range map[string]string{
		"a wrong type":   podWith("env: [{name: A, value: true}]"),
		"a repeated key": podWith("tty: true\n        tty: false"),
		"no YAML":        podWith("env: ["),
	} {
		writeFiles(t, map[string]string{"k8s/broken.yaml": broken, "k8s/web.yaml": web})
		code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "k8s")
		if code != ExitError || !strings.Contains(stderr, "nothing was written; to skip a file, use --exclude PATTERN, and to write all files without an error, --keep-going") {
			t.Errorf("%s: exit %d\n%s", name, code, stderr)
		}
		if got := readFile(t, "k8s/web.yaml"); got != web {
			t.Errorf("%s: a file was written:\n%s", name, got)
		}
		code, _, stderr = command(t, "", "inject", "-p", "tiny.yaml", "-i", "--keep-going", "k8s")
		if code != ExitError || !strings.Contains(stderr, "k8s/broken.yaml:") || !strings.Contains(stderr, "not changed, because of the errors above: k8s/broken.yaml\n") ||
			!strings.Contains(stderr, "1 of 2 files changed") {
			t.Errorf("%s: exit %d\n%s", name, code, stderr)
		}
		if readFile(t, "k8s/broken.yaml") != broken || !strings.Contains(readFile(t, "k8s/web.yaml"), "istio-proxy") {
			t.Errorf("%s: the wrong files were written", name)
		}
		code, _, stderr = command(t, "", "inject", "-p", "tiny.yaml", "--keep-going", "--to", "out/", "k8s")
		if code != ExitError || exists("out/broken.yaml") || !exists("out/web.yaml") {
			t.Errorf("%s: exit %d\n%s", name, code, stderr)
		}
	}
}

// TestKeepGoingLeavesBasesOfPositionsAlone: a base whose overlay would break is left as it is.
func TestKeepGoingLeavesBasesOfPositionsAlone(t *testing.T) {
	web := arrange(t)
	base := podWith("tty: true") + "      volumes: [{name: data, emptyDir: {}}]\n"
	writeFiles(t, map[string]string{
		"k8s/base/web.yaml": base, "k8s/base/kustomization.yaml": "resources: [web.yaml]\n", "k8s/other.yaml": web,
		"k8s/overlay/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - op: replace\n      path: /spec/template/spec/volumes\n      value: []\n",
	})
	tiny := strings.Replace(readFile(t, "tiny.yaml"), "              containers:\n", "              volumes: [{name: extra, emptyDir: {}}]\n              containers:\n", 1)
	put(t, tiny, "tiny.yaml")
	code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "-i", "--keep-going", "k8s")
	if code != ExitError || readFile(t, "k8s/base/web.yaml") != base || !strings.Contains(readFile(t, "k8s/other.yaml"), "istio-proxy") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// TestKeepGoingStopsAtABrokenPolicy: the workloads of a policy that cannot be applied are not written as they were.
func TestKeepGoingStopsAtABrokenPolicy(t *testing.T) {
	broken := policyText("  istio:\n    injector: {builtIn: istio, overrides: {global: {variant: distrolles}}}\n")
	for name, args := range map[string][]string{
		"in the directory": {"inject", "--keep-going", "--to", "out/", "k8s"},
		"beside it":        {"inject", "--keep-going", "-p", "mesh.yaml", "--to", "out/", "k8s"},
		"in place":         {"inject", "--keep-going", "-i", "k8s"},
		"to a stream":      {"inject", "--keep-going", "k8s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			policy := "k8s/prerig.yaml"
			if name == "beside it" {
				policy = "mesh.yaml"
			}
			writeFiles(t, map[string]string{"k8s/web.yaml": initWeb, policy: broken})
			code, out, stderr := command(t, "", args...)
			if code != ExitError || out != "" || !strings.Contains(stderr, policy+":") || !strings.Contains(stderr, "nothing was written") {
				t.Errorf("exit code %d\n%s%s", code, out, stderr)
			}
			if _, err := os.Stat("out/web.yaml"); err == nil {
				t.Error("the workload was written without its sidecar")
			}
		})
	}
}
