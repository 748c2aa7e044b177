// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

var helms = flag.String("helms", "", "Helm's own programs, as VERSION=PROGRAM, separated by commas; see make helm-post-renderer")

// helm is one Helm with prerig as its post-renderer.
type helm struct {
	t                 *testing.T
	program, dir      string
	env, postRenderer []string
	major             string
}

// eachHelm runs a test with each Helm that is given, in a directory with the files of the example.
func eachHelm(t *testing.T, test func(t *testing.T, h *helm)) {
	t.Helper()
	if *helms == "" {
		t.Skip("no programs are given; see make helm-post-renderer")
	}
	for one := range strings.SplitSeq(*helms, ",") {
		version, program, _ := strings.Cut(one, "=")
		t.Run(version, func(t *testing.T) {
			h := &helm{t: t, program: program, dir: t.TempDir(), major: version[:1], env: []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null"}}
			if err := testbed.Write(h.dir, example(t, "helm-post-renderer")); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(h.dir, "prerig", "post-render"), 0o755); err != nil {
				t.Fatal(err)
			}
			if h.major == "3" {
				h.postRenderer = []string{"--post-renderer", "prerig", "--post-renderer-args", "inject"}
			} else {
				h.postRenderer = []string{"--post-renderer", "prerig"}
				h.must("plugin", "install", "prerig")
			}
			test(t, h)
		})
	}
}

func (h *helm) run(args ...string) (stdout, stderr string, err error) {
	return shell(h.t, h.dir, h.env, append([]string{h.program}, args...)...)
}

func (h *helm) must(args ...string) string {
	h.t.Helper()
	out, errs, err := h.run(args...)
	if err != nil {
		h.t.Fatalf("helm %q: %v\n%s", args, err, errs)
	}
	return out
}

// with returns the arguments of a command with the post-renderer, which gets arguments of its own.
func (h *helm) with(command []string, more ...string) []string {
	args := append(slices.Clone(command), h.postRenderer...)
	for _, one := range more {
		args = append(args, "--post-renderer-args", one)
	}
	return args
}

// pipe is what prerig inject makes of what Helm renders.
func (h *helm) pipe(command []string, args ...string) string {
	h.t.Helper()
	inject := exec.Command(prerig, append([]string{"inject"}, args...)...)
	inject.Dir, inject.Stdin = h.dir, strings.NewReader(h.must(command...))
	out, err := inject.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	return string(out)
}

// objects returns the objects of a stream as indented JSON, by kind and name.
func objects(t *testing.T, stream string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range decode[map[string]any](t, stream) {
		if o == nil {
			continue
		}
		text, err := json.MarshalIndent(o, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		name, _ := o["metadata"].(map[string]any)["name"].(string)
		out[fmt.Sprint(o["kind"], "/", name)] = string(text)
	}
	return out
}

const proxy = `"name": "istio-proxy"`

var templateShop = []string{"template", "web", "chart", "--namespace", "shop", "--include-crds"}

// TestHelmPostRenderer gives what a pipe gives, but that Helm 3 does not show hooks to post-renderers.
func TestHelmPostRenderer(t *testing.T) {
	eachHelm(t, func(t *testing.T, h *helm) {
		want := objects(t, h.pipe(templateShop, "-n", "shop"))
		if len(want) != 3 || !strings.Contains(want["Job/web-migrate"], proxy) || !strings.Contains(want["Deployment/web-web"], proxy) {
			t.Fatalf("the pipe gives %v", want)
		}
		if h.major == "3" {
			want["Job/web-migrate"] = objects(t, h.must(templateShop...))["Job/web-migrate"]
		}
		if diff := cmp.Diff(want, objects(t, h.must(h.with(templateShop, "-n", "shop")...))); diff != "" {
			t.Error(diff)
		}
	})
}

// clusterAnswers are what a cluster without releases says to a Helm that is about to install and only shows what.
var clusterAnswers = map[string]string{
	"/version": `{"major": "1", "minor": "33", "gitVersion": "v1.33.4"}`,
	"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps",
		"versions": [{"groupVersion": "apps/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}}]}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`,
	"/apis/apps/v1": `{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
		{"name": "deployments", "singularName": "deployment", "kind": "Deployment", "namespaced": true, "verbs": ["get"]}]}`,
	"/api/v1/namespaces/shop/secrets": `{"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []}`,
}

// TestHelmPostRendererInstalls renders as install and upgrade do, up to where they would write to a cluster.
func TestHelmPostRendererInstalls(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := clusterAnswers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(cluster.Close)
	eachHelm(t, func(t *testing.T, h *helm) {
		for _, command := range [][]string{{"install", "web"}, {"upgrade", "--install", "web"}} {
			command = append(command, "chart", "--namespace", "shop", "--dry-run=client", "--skip-crds", "--disable-openapi-validation",
				"--kube-apiserver", cluster.URL)
			out := h.must(h.with(command, "-n", "shop")...)
			if n := strings.Count(out, "name: istio-proxy\n"); n != map[string]int{"3": 1, "4": 2}[h.major] {
				t.Errorf("%q: %d pods have a proxy:\n%s", command, n, out)
			}
		}
	})
}

// TestHelmPostRendererPolicies has several policies, which are applied together.
func TestHelmPostRendererPolicies(t *testing.T) {
	eachHelm(t, func(t *testing.T, h *helm) {
		sidecar := strings.Replace(example(t, "other-sidecar")["prerig.yaml"], "name: ", "name: another-", 1)
		web := example(t, "helm-post-renderer")["chart/templates/web.yaml"]
		web = strings.Replace(web, "      labels:\n", "      labels:\n        tier: web\n", 1)
		if err := testbed.Write(h.dir, map[string]string{"cache.yaml": sidecar, "chart/templates/web.yaml": web}); err != nil {
			t.Fatal(err)
		}
		args := []string{"-n", "shop", "-p", "prerig.yaml", "-p", "cache.yaml"}
		want := objects(t, h.pipe(templateShop, args...))
		got := objects(t, h.must(h.with(templateShop, args...)...))
		web = got["Deployment/web-web"]
		diff := cmp.Diff(want["Deployment/web-web"], web)
		if diff != "" || !strings.Contains(web, proxy) || !strings.Contains(web, `"name": "cache"`) {
			t.Errorf("%s\n%s", diff, web)
		}
	})
}

// TestHelmPostRendererFails expects that Helm fails, prints no manifests, and says why.
func TestHelmPostRendererFails(t *testing.T) {
	eachHelm(t, func(t *testing.T, h *helm) {
		typo := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istoi: {}}\n"
		if err := testbed.Write(h.dir, map[string]string{"typo.yaml": typo}); err != nil {
			t.Fatal(err)
		}
		fails := func(want string, args ...string) {
			t.Helper()
			out, errs, err := h.run(args...)
			if err == nil || out != "" || !strings.Contains(errs, want) {
				t.Errorf("helm %q: %v, want %s, got\n%s%s", args, err, want, out, errs)
			}
		}
		fails("istoi", h.with(templateShop, "-p", "typo.yaml")...)
		fails("Deployment web-web spec.template: the workload names no namespace; give it with -n NAMESPACE", h.with(templateShop)...)
		fails("missing.yaml", h.with(templateShop, "-p", "missing.yaml")...)
		fails("--no-such-flag", h.with(templateShop, "--no-such-flag")...)
		if h.major == "3" {
			fails("no command specified; use prerig inject", append(slices.Clone(templateShop), "--post-renderer", "prerig")...)
			flags := []string{"--post-renderer", "prerig", "--post-renderer-args", "-p", "--post-renderer-args", "mesh.yaml"}
			fails("--post-renderer-args inject", append(slices.Clone(templateShop), flags...)...)
		}
	})
}

// TestHelmPostRendererOfNothing has a chart without manifests: Helm takes no empty output of a post-renderer.
func TestHelmPostRendererOfNothing(t *testing.T) {
	eachHelm(t, func(t *testing.T, h *helm) {
		if err := testbed.Write(h.dir, map[string]string{
			"none/Chart.yaml":         "apiVersion: v2\nname: none\nversion: 1.0.0\n",
			"none/templates/web.yaml": "{{ if .Values.enabled }}a: b{{ end }}\n",
		}); err != nil {
			t.Fatal(err)
		}
		out, errs, err := h.run(h.with([]string{"template", "web", "none"})...)
		if err == nil || out != "" || !strings.Contains(errs, "standard input is empty") {
			t.Errorf("%v\n%s%s", err, out, errs)
		}
	})
}

// TestHelmPostRendererOfALargeChart has more than fits into pipes.
func TestHelmPostRendererOfALargeChart(t *testing.T) {
	eachHelm(t, func(t *testing.T, h *helm) {
		web := example(t, "helm-post-renderer")["chart/templates/web.yaml"]
		numbered := strings.NewReplacer("-web\n", "-web-{{ $i }}\n", "{{ .", "{{ $.").Replace(web)
		many := "{{ range $i, $_ := until 1000 }}\n---\n" + numbered + "{{ end }}\n"
		if err := testbed.Write(h.dir, map[string]string{"chart/templates/web.yaml": many}); err != nil {
			t.Fatal(err)
		}
		want := objects(t, h.pipe(templateShop, "-n", "shop"))
		delete(want, "Job/web-migrate")
		got := objects(t, h.must(h.with(templateShop, "-n", "shop")...))
		delete(got, "Job/web-migrate")
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 1001 || !strings.Contains(got["Deployment/web-web-999"], proxy) {
			t.Errorf("%d objects: %.3000s", len(got), diff)
		}
	})
}
