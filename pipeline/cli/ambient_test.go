// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/ambient"
	"github.com/prerig/prerig/pipeline/cli/capture"
)

// meshedShop is a namespace with a policy of layer 7, which needs a waypoint in ambient mode.
const meshedShop = `apiVersion: v1
kind: Namespace
metadata:
  name: shop # ours
  labels: {istio-injection: enabled}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  rules: [{to: [{operation: {methods: [GET]}}]}]
`

// TestAmbientThereAndBack: the files are as before when all steps are taken back, and the record of the steps is removed.
func TestAmbientThereAndBack(t *testing.T) {
	arrange(t)
	before := map[string]string{"k8s/shop.yaml": meshedShop, "k8s/web.yaml": deployment("web", "shop")}
	writeFiles(t, before)
	ok(t, "", "ambient", "plan", "--write", "k8s")
	if text := readFile(t, "k8s/shop.yaml"); !strings.Contains(text, "istio.io/dataplane-mode") || !strings.Contains(text, "# ours") {
		t.Errorf("the namespace is not moved, or a comment is lost:\n%s", text)
	}
	record := filepath.Join("k8s", ambient.RecordName)
	for range ambient.StepNames() {
		if fileExists(record) {
			ok(t, "", "ambient", "plan", "--back", "k8s") // the newest step
		}
	}
	for name, text := range before {
		if got := readFile(t, name); got != text {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
	if fileExists(record) {
		t.Error("the record of the steps is still there")
	}
}

// TestAmbientBackOfAnEmptyStep: a step that changed nothing has no record, and taking it back changes nothing but the steps after it.
func TestAmbientBackOfAnEmptyStep(t *testing.T) {
	arrange(t)
	before := map[string]string{"k8s/shop.yaml": meshedShop, "k8s/web.yaml": deployment("web", "shop")}
	writeFiles(t, before)
	ok(t, "", "ambient", "plan", "--back", "--step", "routes", "k8s")
	ok(t, "", "ambient", "plan", "--write", "--step", "routes,policies", "k8s")
	ok(t, "", "ambient", "plan", "--back", "--step", "cleanup", "k8s")
	if !strings.Contains(readFile(t, "k8s/shop.yaml"), "web-waypoint") {
		t.Error("a step before the empty one is taken back")
	}
	ok(t, "", "ambient", "plan", "--back", "--step", "routes", "k8s")
	for name, text := range before {
		if got := readFile(t, name); got != text {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// TestAmbientStaysInTheDirectory: a record or a link of the author of a repository changes no file outside of it.
func TestAmbientStaysInTheDirectory(t *testing.T) {
	const record = `{"steps":[{"name":"label","files":{"FILE":[{"line":0,"before":["changed\n"],"after":["kept\n"]}]}}]}`
	for name, file := range map[string]string{"a path": "../outside.yaml", "a link": "link.yaml"} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"outside.yaml": "kept\n", "k8s/" + ambient.RecordName: strings.Replace(record, "FILE", file, 1)})
			must(t, os.Symlink("../outside.yaml", "k8s/link.yaml"))
			code, _, stderr := command(t, "", "ambient", "plan", "--back", "k8s")
			if code != ExitError {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			if got := readFile(t, "outside.yaml"); got != "kept\n" {
				t.Errorf("a file outside is changed: %q", got)
			}
		})
	}
}

// TestCaptureStaysInTheDirectory: links below the directory, which come from the author of a repository, lead no write and no removal out of it.
func TestCaptureStaysInTheDirectory(t *testing.T) {
	for name, links := range map[string]map[string]string{
		"a file":       {"clusters/pod.yaml": "../outside/pod.yaml"},
		"a directory":  {"clusters/namespaces": "../outside"},
		"the overview": {"clusters/" + capture.FileName: "../outside/pod.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"outside/pod.yaml": "kept\n", "outside/shop/limitrange.yaml": "kept\n", "clusters/.keep": ""})
			for link, to := range links {
				must(t, os.Symlink(to, link))
			}
			run := captureRun{streams: Streams{Err: os.Stderr}, to: "clusters"}
			content := map[string][]byte{"pod.yaml": []byte("new"), "namespaces/shop/limitrange.yaml": []byte("new"), capture.FileName: []byte("new")}
			if err := run.writeFiles(t.Context(), content, []string{"namespaces/shop/limitrange.yaml"}); err == nil {
				t.Error("no error")
			}
			for _, file := range []string{"outside/pod.yaml", "outside/shop/limitrange.yaml"} {
				if got := readFile(t, file); got != "kept\n" {
					t.Errorf("%s is changed: %q", file, got)
				}
			}
		})
	}
}

// TestAmbientWriteLeavesBrokenFiles: a document that cannot be read keeps its file and its namespaces as they are, and no others. Seen in
// StatCan/aaw-argocd-manifests.
func TestAmbientWriteLeavesBrokenFiles(t *testing.T) {
	arrange(t)
	broken := strings.ReplaceAll(meshedShop, "shop", "bank") + "---\nkind: VirtualService\nmetadata: {name: broken}\n"
	writeFiles(t, map[string]string{"k8s/shop.yaml": meshedShop, "k8s/bank.yaml": broken})
	if _, stdout, _ := command(t, "", "ambient", "plan", "k8s"); !strings.Contains(stdout, "bank: something must change first") || !strings.Contains(stdout, "k8s/bank.yaml: it cannot be read in full") {
		t.Errorf("the plan is\n%s", stdout)
	}
	code, _, stderr := command(t, "", "ambient", "plan", "--write", "k8s")
	if code != ExitOK || !strings.Contains(stderr, "k8s/bank.yaml cannot be read in full, and is left as it is") || !strings.Contains(stderr, "namespace bank, which does not move") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if got := readFile(t, "k8s/bank.yaml"); got != broken {
		t.Errorf("the broken file is changed:\n%s", got)
	}
	if !strings.Contains(readFile(t, "k8s/shop.yaml"), "istio.io/dataplane-mode") {
		t.Error("the other namespace is not moved")
	}
}

// TestAmbientWriteKeepsOtherDocuments: what is no object stays in its file, and a file with a document that cannot be read stays as it is. Each
// was deleted, and not restored by --back. Seen in snisid/snisid.
func TestAmbientWriteKeepsOtherDocuments(t *testing.T) {
	values := "---\n# values of a chart\nglobal:\n  scrapeInterval: 15s\n"
	for name, other := range map[string]string{
		"values": values, "only a kind": "---\nkind: Values\na: 1\n", "a kustomization": "---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
		"a list": "---\n- a\n- b\n", "a scalar": "---\njust text\n", "broken YAML": "---\nkind: A\na:\n    b: 1\n   c: 2\n", "a template": "---\nkind: A\na: {{ .Values.a }}\n",
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			before := map[string]string{"k8s/first.yaml": strings.TrimPrefix(other, "---\n") + "---\n" + meshedShop, "k8s/last.yaml": strings.ReplaceAll(meshedShop, "shop", "bank") + other}
			writeFiles(t, before)
			code, _, stderr := command(t, "", "ambient", "plan", "--write", "k8s")
			for file := range before {
				if text := readFile(t, file); !strings.Contains(text, strings.TrimPrefix(other, "---\n")) {
					t.Errorf("%s (exit code %d) has lost it:\n%s\n%s", file, code, text, stderr)
				}
			}
			if code == ExitOK {
				ok(t, "", "ambient", "plan", "--back", "--step", "network", "k8s")
			} else if !strings.Contains(stderr, "cannot be read in full") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			for file, text := range before {
				if got := readFile(t, file); got != text {
					t.Errorf("%s is not as before:\n%s", file, got)
				}
			}
		})
	}
}

// TestAmbientWriteNeedsNamespaces: policies without a namespace may be those of any, and labels would end them. Seen in
// mathieu-benoit/my-kubernetes-deployments.
func TestAmbientWriteNeedsNamespaces(t *testing.T) {
	arrange(t)
	text := strings.ReplaceAll(meshedShop, ", namespace: shop", "")
	writeFiles(t, map[string]string{"k8s/shop.yaml": text})
	code, _, stderr := command(t, "", "ambient", "plan", "--write", "k8s")
	if code != ExitError || !strings.Contains(stderr, "AuthorizationPolicy web names no namespace") || readFile(t, "k8s/shop.yaml") != text {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestAmbientBackReportsWhatItDid: a step that cannot be taken back leaves all files, and is not reported as done.
func TestAmbientBackReportsWhatItDid(t *testing.T) {
	arrange(t)
	writeFiles(t, map[string]string{"k8s/shop.yaml": meshedShop, "k8s/web.yaml": deployment("web", "shop")})
	ok(t, "", "ambient", "plan", "--write", "k8s")
	moved := strings.Replace(readFile(t, "k8s/shop.yaml"), "use-waypoint: waypoint", "use-waypoint: other", 1)
	writeFiles(t, map[string]string{"k8s/shop.yaml": moved})
	code, _, stderr := command(t, "", "ambient", "plan", "--back", "--step", "network", "k8s")
	if code != ExitError || strings.Contains(stderr, "taken back\n") || readFile(t, "k8s/shop.yaml") != moved {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
