// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/render"
)

// parts are how many Kustomizations, Applications, releases or overlays a repository has.
const parts = 100

// newRenderingWorks is newWorks with the renderer that the daemon starts. A build has %s for the repository's URL.
func newRenderingWorks(t *testing.T, builds map[string]string, layout string) *works {
	t.Helper()
	program, err := testprograms.RendererPath()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := render.NewPool(render.Options{Warm: 2, Command: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := &works{t: t, git: gittest.New(t)}
	w.repository = w.git.Repository(t, "apps")
	texts := map[string]string{}
	for name, build := range builds {
		texts[name] = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + "}\nspec:\n" +
			"  source: {git: {url: " + w.repository.URL + ", ref: {branch: main}}}\n" +
			"  build: " + strings.ReplaceAll(build, "%s", w.repository.URL) + "\n  publish: [{git: {branch: rendered, layout: " + cmp.Or(layout, "Objects") + "}}]\n"
	}
	w.run(texts)
	w.runner.Builder.Renderer, w.runner.Builder.Limits = pool, render.DefaultLimits()
	return w
}

func settingsOf(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {v: " + value + "}\n"
}

// isolationCase is a repository of parts.
type isolationCase struct {
	builds map[string]string
	// part returns the files of a part, and broken those that break it.
	part   func(name, value string) map[string]string
	broken func(name string) map[string]string
	names  string // what a message calls a part
	layout string // Objects by default
}

func isolationCases() map[string]isolationCase {
	chart := func(name, template string) map[string]string {
		return map[string]string{
			"charts/" + name + "/Chart.yaml":              "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			"charts/" + name + "/templates/settings.yaml": template,
		}
	}
	with := func(files map[string]string, name, text string) map[string]string {
		files[name] = text
		return files
	}
	release := func(name string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: shop}\n" +
			"spec: {interval: 1m, chart: {spec: {chart: charts/" + name + ", sourceRef: {kind: GitRepository, name: fleet}}}}\n" +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: shop}\n" +
			"spec: {interval: 1m, url: \"https://git.example.com/fleet.git\"}\n"
	}
	application := func(name string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\n" +
			"spec: {destination: {namespace: shop}, source: {repoURL: \"https://git.example.com/fleet.git\", path: charts/" + name + "}}\n"
	}
	brokenChart := func(name string) map[string]string { return chart(name, "{{ fail \"no value\" }}") }
	releases := "releases: {kubeVersion: 1.33.4, repositories: [{url: \"https://git.example.com/fleet.git\", path: .}]}"
	overlays := map[string]string{}
	for i := range parts {
		overlays[fmt.Sprintf("p%02d", i)] = fmt.Sprintf("{path: overlays/p%02d}", i)
	}
	return map[string]isolationCase{
		"Flux Kustomizations": {
			map[string]string{"fleet": "{flux: {path: clusters/prod}}"},
			func(name, value string) map[string]string {
				return map[string]string{
					"clusters/prod/" + name + ".yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" +
						"metadata: {name: " + name + ", namespace: flux-system}\n" +
						"spec: {interval: 1m, prune: true, path: apps/" + name + ", sourceRef: {kind: GitRepository, name: flux-system}}\n",
					"apps/" + name + "/settings.yaml": settingsOf(name, value),
				}
			},
			func(name string) map[string]string {
				return map[string]string{"apps/" + name + "/settings.yaml": "a: [\n"}
			},
			"Kustomization flux-system/%s", "",
		},
		"HelmReleases, layout Single": {
			map[string]string{"fleet": "{path: releases, " + releases + "}"},
			func(name, value string) map[string]string {
				return with(chart(name, settingsOf("{{ .Release.Name }}", value)), "releases/"+name+".yaml", strings.Replace(release(name), "name: fleet", "name: "+name, 2))
			},
			brokenChart, "HelmRelease shop/%s", "Single",
		},
		"Applications": {
			map[string]string{"fleet": "{path: argocd, " + releases + "}"},
			func(name, value string) map[string]string {
				return with(chart(name, settingsOf("{{ .Release.Name }}", value)), "argocd/"+name+".yaml", application(name))
			},
			brokenChart, "Application argocd/%s", "",
		},
		"overlays": {
			overlays,
			func(name, value string) map[string]string {
				return map[string]string{"overlays/" + name + "/kustomization.yaml": "resources: [settings.yaml]\n", "overlays/" + name + "/settings.yaml": settingsOf(name, value)}
			},
			func(name string) map[string]string {
				return map[string]string{"overlays/" + name + "/kustomization.yaml": "resources: [gone.yaml]\n"}
			},
			"overlays/%s", "",
		},
	}
}

var partOf = regexp.MustCompile(`(?s)name: (p\d\d)\b.*v: (v\d)`)

// TestBrokenPartKeepsItsOutput: the daemon publishes each change of the others, keeps what is published of the broken one, and names it.
func TestBrokenPartKeepsItsOutput(t *testing.T) {
	for kind, c := range isolationCases() {
		t.Run(kind, func(t *testing.T) {
			w := newRenderingWorks(t, c.builds, c.layout)
			const broken = "p42"
			files := func(value string) map[string]string {
				out := map[string]string{}
				for i := range parts {
					maps.Copy(out, c.part(fmt.Sprintf("p%02d", i), value))
				}
				return out
			}
			step := func(subject string, changed map[string]string) (failed []string) {
				t.Helper()
				w.repository.Commit(subject, changed)
				for name := range c.builds {
					_ = w.do(name, subject, 0) // the condition has the error
					if at := w.state(name).Condition(); at == nil || at.Status != "True" {
						failed = append(failed, fmt.Sprintf("%s: %+v", name, at))
					}
				}
				return failed
			}
			published := func(others, ofBroken string) {
				t.Helper()
				values := map[string][]string{}
				all := w.repository.Git("grep", "-h", "-e", "", "rendered", "--", "*.yaml")
				for _, object := range strings.Split(all, "apiVersion: ")[1:] {
					if found := partOf.FindStringSubmatch(object); found != nil {
						values[found[2]] = append(values[found[2]], found[1])
					}
				}
				want := parts
				if others != ofBroken {
					want--
				}
				if len(values[others]) != want || !slices.Contains(values[ofBroken], broken) {
					t.Errorf("got %v, want %d of %s, and %s of the broken one", values, want, others, ofBroken)
				}
			}
			if failed := step("first", files("v1")); len(failed) > 0 {
				t.Fatal(failed)
			}
			published("v1", "v1")
			changed := files("v2")
			maps.Copy(changed, c.broken(broken))
			failed := step("one breaks", changed)
			if named := fmt.Sprintf(c.names, broken); len(failed) != 1 || !strings.Contains(failed[0], named) {
				t.Errorf("%s is not named alone: %q", named, failed)
			}
			published("v2", "v1")
			if failed := step("mended", files("v3")); len(failed) > 0 {
				t.Error(failed)
			}
			published("v3", "v3")
		})
	}
}
