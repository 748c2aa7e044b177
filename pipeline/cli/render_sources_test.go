// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// TestSeveralSources has the commands mount sources as the daemon does, at revisions that are given, in directories that stand for
// them, and with a range of commits of either.
func TestSeveralSources(t *testing.T) {
	server := gittest.New(t)
	apps, platform := server.Repository(t, "apps"), server.Repository(t, "platform")
	image := func(tag string) string {
		return platform.Commit("image "+tag, map[string]string{"web/web.yaml": application("web", "app:"+tag)})
	}
	platform.Commit("base", map[string]string{"web/kustomization.yaml": "resources: [web.yaml]\n", "policy.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}}}\n"})
	first := image("1")
	overlay := "resources: [../../deploy/platform/web]\n"
	begin := apps.Commit("overlay", map[string]string{"apps/web/kustomization.yaml": overlay, "apps/own/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: shop}\n"})
	pipelines := t.TempDir()
	for name, more := range map[string]string{
		"web": "  sources: [{mountPath: deploy/platform, git: {url: " + platform.URL + ", ref: {branch: main}}}]\n  policies: [{path: deploy/platform/policy.yaml}]\n",
		"own": "",
	} {
		text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: %s, ref: {branch: main}}}\n"+
			"  build: {path: apps/%[1]s}\n  publish: [{git: {branch: rendered}}]\n%[3]s", name, apps.URL, more)
		if err := os.WriteFile(filepath.Join(pipelines, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := prerig(t, append(slices.Clone(args), "--pipelines", pipelines, "--cache", t.TempDir())...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
		}
		return out + err
	}
	shows := func(image string, args ...string) {
		t.Helper()
		if out := run(0, append([]string{"render", "web"}, args...)...); !strings.Contains(out, "image: app:"+image) || !strings.Contains(out, "istio-proxy") {
			t.Errorf("%v: rendered:\n%s", args, out)
		}
	}
	shows("1")
	second := image("2")
	shows("2")
	shows("1", "--revision", "deploy/platform="+first)
	shows("1", "--revision", "main@sha1:"+begin, "--revision", "deploy/platform=main@sha1:"+first)
	shows("2", "--revision", begin)
	// A checkout of the other source may be where it is mounted; what stands for it is named on its own.
	if err := os.MkdirAll(filepath.Join(apps.Work, "deploy/platform"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(apps.Work, "deploy/platform/policy.yaml"), []byte("broken: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("2", "--source", apps.Work)
	local := t.TempDir()
	if err := os.CopyFS(local, os.DirFS(platform.Work)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(local, "web/web.yaml"), []byte(application("web", "app:local")), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("local", "--source", platform.URL+"="+local)
	shows("local", "--source", apps.Work, "--source", platform.URL+"="+local)
	for _, tc := range [][]string{
		{"no pipeline in " + pipelines + " mounts a source at deploy/other", "--revision", "deploy/other=main@sha1:" + first},
		{"the revision of that source is set twice", "--revision", "deploy/platform=" + first, "--revision", "deploy/platform=" + second},
		{"the revision of that source is set twice", "--revision", begin, "--revision", begin},
	} {
		if out := run(2, append([]string{"render", "web"}, tc[1:]...)...); !strings.Contains(out, tc[0]) {
			t.Errorf("%v: got %s", tc[1:], out)
		}
	}
	affected := func(of *gittest.Repository, span string) affectedReport {
		t.Helper()
		var found affectedReport
		if err := json.Unmarshal([]byte(run(0, "affected", "-C", of.Work, "--url", of.URL, span)), &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := affected(platform, first+".."+second); len(found.Affected) != 1 || found.Affected[0].Pipeline != "web" || found.LookedAt != 1 ||
		found.NotOfHere != 1 || found.Affected[0].Reason != "deploy/platform/web/web.yaml was changed" {
		t.Errorf("affected: %+v", found)
	}
	beside := platform.Commit("beside", map[string]string{"README.md": "x"})
	if found := affected(platform, second+".."+beside); len(found.Affected) != 0 || found.LookedAt != 1 {
		t.Errorf("affected: %+v", found)
	}
	suffix := apps.Commit("suffix", map[string]string{"apps/web/kustomization.yaml": overlay + "nameSuffix: -x\n"})
	if found := affected(apps, begin+".."+suffix); len(found.Affected) != 1 || found.Affected[0].Pipeline != "web" || found.LookedAt != 2 {
		t.Errorf("affected: %+v", found)
	}
}
