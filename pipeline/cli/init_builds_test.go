// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/charttest"
)

// initialised is a repository that init writes pipelines for.
type initialised struct {
	files map[string]string
	args  []string
	want  []string // the names of the pipelines
	told  []string
}

// manyOverlays are overlays of bases.
func manyOverlays(bases, overlays int) map[string]string {
	files := map[string]string{}
	for i := range bases {
		files[fmt.Sprintf("base/%d/kustomization.yaml", i)] = "resources: [web.yaml]\n"
		files[fmt.Sprintf("base/%d/web.yaml", i)] = initWeb
	}
	for i := range overlays {
		files[fmt.Sprintf("overlays/%03d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base/%d]\nnamePrefix: o%d-\n", i%bases, i)
	}
	return files
}

// numbered returns names with the numbers below n.
func numbered(format string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

var initialisedRepositories = map[string]initialised{
	"a Flux cluster, and not what is beside it": {
		files: map[string]string{
			"clusters/prod/apps.yaml":      fluxPart("apps", "apps/web"),
			"apps/web/web.yaml":            initWeb,
			"bootstrap/kustomization.yaml": "resources: [../apps/web/web.yaml]\n",
			"talos/values.yaml":            "- a\n- b\n",
		},
		want: []string{"org"}, told: []string{"Flux cluster clusters/prod", "no pipeline for 1 kustomization (bootstrap); --builds all writes one for each"},
	},
	"several Flux clusters": {
		files: map[string]string{
			"clusters/prod/apps.yaml": fluxPart("apps", "apps/web"), "clusters/test/apps.yaml": fluxPart("apps", "apps/web"), "apps/web/web.yaml": initWeb,
		},
		want: []string{"clusters-prod", "clusters-test"},
	},
	"Applications, and not what they render": {
		files: joined(applicationOf("web", "apps/web"), map[string]string{"apps/web/web.yaml": initWeb, "examples/web.yaml": initWeb, "README.yaml": "a: b\n"}),
		want:  []string{"org"}, told: []string{"manifests argocd", "no pipeline for 1 directory of manifests (examples)"},
	},
	"200 overlays, and not their bases": {files: manyOverlays(5, 200), want: numbered("overlays-%03d", 200), told: []string{"wrote 200 pipelines to pipelines: 200 kustomizations"}},
	"charts alone": {
		files: joined(partChart("charts/a", "a", initWeb), partChart("charts/b", "b", initWeb), map[string]string{"charts/b/values.yaml": "a: b\n", ".github/x.yaml": "a\n"}),
		want:  []string{"charts-a", "charts-b"},
	},
	"a root with files of all sorts": {
		files: joined(partChart("charts/a", "a", initWeb), map[string]string{
			"Taskfile.yaml": "version: 3\ntasks: {}\n", "skaffold.yaml": "apiVersion: skaffold/v4\nkind: Config\nmetadata: {name: x}\n", "ansible/x.yaml": "- a\n", "k8s/web.yaml": initWeb, "debug.yaml": initWeb,
		}),
		want: []string{"charts-a", "k8s"}, told: []string{"no pipeline for 1 file of manifests (debug.yaml)"}, // beside others
	},
	"an overlay that cannot be rendered": {
		files: joined(manyOverlays(1, 3), map[string]string{"overlays/001/kustomization.yaml": "resources: [gone.yaml]\n"}),
		want:  []string{"overlays-000", "overlays-002"}, told: []string{"warning: no pipeline for overlays/001 (kustomization): building overlays/001: ", "gone.yaml"},
	},
	"a chart without a value that it requires": {
		files: joined(partChart("charts/a", "a", initWeb), partChart("charts/b", "b", "{{ required \"host is needed\" .Values.host }}")),
		want:  []string{"charts-a"}, told: []string{"warning: no pipeline for charts/b (chart): ", "host is needed"},
	},
	"a Secret that only the cluster has": {
		files: map[string]string{
			"clusters/prod/apps.yaml": fluxPart("apps", "apps/web") + "---\n" +
				strings.Replace(fluxPart("db", "apps/db"), "sourceRef:", "postBuild: {substituteFrom: [{kind: Secret, name: only-there}]}, sourceRef:", 1),
			"apps/web/web.yaml": initWeb, "apps/db/db.yaml": settings("db", "\"${x}\""),
		},
		want: []string{"org"}, told: []string{"Not everything can be rendered yet", "clusters/prod/apps.yaml:9: Kustomization flux-system/db", "Secret flux-system/only-there"},
	},
	"a directory that another build reads": {files: manyOverlays(2, 2), args: []string{"base/1"}, want: []string{"org"}, told: []string{"kustomization base/1"}},
	"a pattern": {
		files: joined(manyOverlays(1, 12), partChart("charts/a", "a", initWeb)), args: []string{"--builds", "overlays/00*"}, want: numbered("overlays-00%d", 10),
	},
	"all": {
		files: map[string]string{
			"clusters/prod/apps.yaml": fluxPart("apps", "apps/web"), "apps/web/web.yaml": initWeb, "bootstrap/web.yaml": initWeb,
		},
		args: []string{"--builds", "all"}, want: []string{"bootstrap", "clusters-prod"},
	},
	"a directory that is named, and cannot be rendered": {
		files: joined(manyOverlays(1, 2), map[string]string{"overlays/001/kustomization.yaml": "resources: [gone.yaml]\n"}), args: []string{"--builds", "overlays/001"},
		want: []string{"org"}, told: []string{"Not everything can be rendered yet", "error: org: "},
	},
}

// TestInitWritesAPipelineForEachRoot: what init writes is rendered at once, or init names what is missing.
func TestInitWritesAPipelineForEachRoot(t *testing.T) {
	for name, c := range initialisedRepositories {
		t.Run(name, func(t *testing.T) {
			emptyProject(t, "https://git.example.com/team/org.git")
			must(t, os.RemoveAll("k8s"))
			for file, text := range c.files {
				put(t, text, file)
			}
			args := append([]string{"init", "--yes", "--source", "."}, c.args...)
			_, told := runCode(t, 0, args...)
			contains(t, told, c.told...)
			var got []string
			for file := range tree(t, "pipelines") {
				got = append(got, strings.TrimSuffix(file, ".yaml"))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q\n%s", got, c.want, told)
			}
			want := 0
			if strings.Contains(told, "Not everything can be rendered yet") {
				want = 2
			}
			runCode(t, want, "render", "--source", ".", "--to", t.TempDir(), "--cache", t.TempDir())
			// A second time adds nothing.
			_, told = runCode(t, 2, args...)
			if !strings.Contains(told, "already exist") {
				t.Error(told)
			}
		})
	}
}

// TestInitWritesNothingThatCannotBeRendered: a root of other files is no source of manifests.
func TestInitWritesNothingThatCannotBeRendered(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"nothing to render in .: it has no kustomizations, charts or manifests":                 {"Taskfile.yaml": "version: 3\n"},
		"nothing was written, as none of 1 directory of manifests can be rendered":              {"web.yaml": initWeb, "broken.yaml": brokenManifest},
		"--builds k9s: nothing in this repository can be rendered there; did you mean k8s?":     {"k8s/web.yaml": initWeb},
		"--name one is for one pipeline, and 2 charts are to get one; choose with DIRECTORY or": joined(partChart("a", "a", ""), partChart("b", "b", "")),
	} {
		emptyProject(t, "https://git.example.com/team/org.git")
		must(t, os.RemoveAll("k8s"))
		for file, text := range files {
			put(t, text, file)
		}
		args := []string{"init", "--yes", "--source", "."}
		switch {
		case strings.HasPrefix(want, "--builds"):
			args = append(args, "--builds", "k9s")
		case strings.HasPrefix(want, "--name"):
			args = append(args, "--name", "one")
		}
		_, told := runCode(t, 2, args...)
		wants(t, told, want)
		if exists("prerig.yaml") || exists("pipelines") {
			t.Errorf("%s: something was written", want)
		}
	}
}

// TestInitAllowsTheChartsOfTheSource: what has to be locked is one command away.
func TestInitAllowsTheChartsOfTheSource(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	emptyProject(t, "https://git.example.com/team/org.git")
	put(t, "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec:\n  interval: 1m\n"+
		"  chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}\n---\n"+
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: shop}\nspec: {url: \""+repository.URL+"\"}\n", "k8s/release.yaml")
	_, told := runCode(t, 0, "init", "--yes", "--source", ".")
	contains(t, told, "Not everything can be rendered yet", "the chart web of "+repository.URL, "  prerig charts lock ")
	runCode(t, 0, "charts", "lock", "--cache", t.TempDir())
	out, _ := runCode(t, 0, "render", "--source", ".", "--cache", t.TempDir())
	contains(t, out, "name: web-web", "name: istio-proxy")
}

// TestInitOffersWhatItHasFound: without a source it is one line, and on a terminal a question.
func TestInitOffersWhatItHasFound(t *testing.T) {
	prepare := func() {
		emptyProject(t, "https://git.example.com/team/org.git")
		must(t, os.RemoveAll("k8s"))
		for file, text := range joined(manyOverlays(1, 3), partChart("charts/a", "a", initWeb)) {
			put(t, text, file)
		}
	}
	prepare()
	_, told := runCode(t, 0, "init", "--yes")
	wants(t, told, "info: found 3 kustomizations, 1 chart; prerig init --source . writes pipelines for them")
	prepare()
	term := openTerminal(t)
	go func() {
		term.typeAfter("--source [none]: ", 1, ".\n")
		term.typeAfter("--builds [usual]: ", 1, "overlay/*\n")
		term.typeAfter("--builds [usual]: ", 2, "overlays/*\n")
	}()
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"init", "--from", "built-in", "--namespaces", "shop", "--publish", "live"}, term.streams(&out), ""); code != 0 {
		t.Fatalf("%d:\n%s", code, term.screen())
	}
	for _, want := range []string{"with 3 kustomizations, 1 chart", "* kustomization  overlays/000", "nothing in this repository can be rendered there"} {
		if !strings.Contains(term.screen(), want) {
			t.Errorf("no %q:\n%s", want, term.screen())
		}
	}
	if files, err := filepath.Glob("pipelines/*"); err != nil || len(files) != 3 {
		t.Errorf("%q, %v", files, err)
	}
}
