// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/publish"
)

// partCount is how many parts there are, and brokenPart the one that breaks.
const partCount, brokenPart = 100, 42

// manyParts is a repository of many parts that are deployed on their own.
type manyParts struct {
	// part returns the files of one part, whose output has the value.
	part func(name, value string) map[string]string
	// shared are further files.
	shared map[string]string
	// broken are changes to the files of one part that break it.
	broken map[string]func(name string) map[string]string
	// build is the build of the pipeline, of which %s is a part where each has a pipeline.
	build string
	// names is what messages call a part.
	names string
}

func partName(i int) string { return fmt.Sprintf("p%02d", i) }

// fluxPart is a Kustomization of Flux.
func fluxPart(name, path string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" +
		"metadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec: {interval: 1m, prune: true, path: " + path + ", sourceRef: {kind: GitRepository, name: flux-system}}\n"
}

func settings(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {v: " + value + "}\n"
}

// partChart returns the files of a chart.
func partChart(dir, name, template string) map[string]string {
	return map[string]string{
		dir + "/Chart.yaml":               "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		dir + "/templates/configmap.yaml": template,
	}
}

func joined(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

const partsURL = "https://git.example.com/team/fleet.git"

// releasePart is a HelmRelease with values.
func releasePart(name, values string) map[string]string {
	return map[string]string{"releases/" + name + ".yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n" +
		"metadata: {name: " + name + ", namespace: shop}\nspec:\n  interval: 1m\n  values: " + values + "\n" +
		"  chart: {spec: {chart: charts/" + name + ", sourceRef: {kind: GitRepository, name: fleet}}}\n"}
}

func helmReleasePart(name, value string) map[string]string {
	return joined(partChart("charts/"+name, name, settings("{{ .Release.Name }}", "{{ .Values.v }}")), releasePart(name, "{v: "+value+"}"))
}

var helmReleaseSource = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: shop}\n" +
	"spec: {interval: 1m, url: \"" + partsURL + "\", ref: {branch: main}}\n"

// applicationPart is an Application.
func applicationPart(name, spec string) map[string]string {
	return map[string]string{"argocd/" + name + ".yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n" +
		"metadata: {name: " + name + ", namespace: argocd}\nspec: " + spec + "\n"}
}

func applicationOf(name, dir string) map[string]string {
	return applicationPart(name, "{project: default, destination: {server: \"https://kubernetes.default.svc\", namespace: shop}, "+
		"source: {repoURL: \""+partsURL+"\", path: "+dir+"}}")
}

// brokenFile returns a change that replaces a file of a part, at a path with its name in place of %s.
func brokenFile(at, text string) func(name string) map[string]string {
	return func(name string) map[string]string { return map[string]string{fmt.Sprintf(at, name): text} }
}

const brokenManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"

var brokenHelmReleases = map[string]func(name string) map[string]string{
	"template": brokenFile("charts/%s/templates/configmap.yaml", "{{ fail \"no value\" }}"),
	"output":   brokenFile("charts/%s/templates/configmap.yaml", "a: [\n"),
	"archive":  brokenFile("charts/%s/Chart.yaml", "- no\n"),
	"values":   func(name string) map[string]string { return releasePart(name, "[1]") },
}

var partKinds = map[string]manyParts{
	"Flux Kustomizations": {
		part: func(name, value string) map[string]string {
			return map[string]string{
				"clusters/prod/" + name + ".yaml": fluxPart(name, "apps/"+name),
				"apps/" + name + "/settings.yaml": settings(name, value),
			}
		},
		broken: map[string]func(name string) map[string]string{
			"manifest":      brokenFile("apps/%s/settings.yaml", brokenManifest),
			"kustomization": brokenFile("apps/%s/kustomization.yaml", "resources: [gone.yaml]\n"),
			"path": func(name string) map[string]string {
				return map[string]string{"clusters/prod/" + name + ".yaml": fluxPart(name, "apps/gone")}
			},
			"field": func(name string) map[string]string {
				return map[string]string{"clusters/prod/" + name + ".yaml": fluxPart(name, "[1]")}
			},
		},
		build: "{flux: {path: clusters/prod}}", names: "Kustomization flux-system/%s",
	},
	"HelmReleases of one Flux Kustomization": {
		part:   helmReleasePart,
		shared: map[string]string{"clusters/prod/all.yaml": fluxPart("all", "releases"), "releases/fleet.yaml": helmReleaseSource},
		broken: brokenHelmReleases,
		build:  "{flux: {path: clusters/prod}, releases: {kubeVersion: 1.33.4}}", names: "HelmRelease shop/%s",
	},
	"HelmReleases": {
		part: helmReleasePart, shared: map[string]string{"releases/fleet.yaml": helmReleaseSource}, broken: brokenHelmReleases,
		build: "{path: releases, releases: {kubeVersion: 1.33.4}}", names: "HelmRelease shop/%s",
	},
	"Applications": {
		part: func(name, value string) map[string]string {
			dir := "apps/" + name
			files := joined(applicationOf(name, dir), map[string]string{dir + "/settings.yaml": settings(name, value)})
			switch name[2] % 3 { // of charts, kustomizations and directories
			case 0:
				return joined(applicationOf(name, dir), partChart(dir, name, settings("{{ .Release.Name }}", value)))
			case 1:
				files[dir+"/kustomization.yaml"] = "resources: [settings.yaml]\n"
			}
			return files
		},
		broken: map[string]func(name string) map[string]string{
			"manifest": brokenFile("apps/%s/settings.yaml", brokenManifest),
			"path":     func(name string) map[string]string { return applicationOf(name, "apps/gone") },
			"spec":     func(name string) map[string]string { return applicationPart(name, "[1]") },
		},
		build: "{path: argocd, releases: {kubeVersion: 1.33.4}}", names: "Application argocd/%s",
	},
	"overlays": {
		part: func(name, value string) map[string]string {
			return map[string]string{
				"overlays/" + name + "/kustomization.yaml": "resources: [../../base]\nnameSuffix: -" + name + "\npatches: [{path: patch.yaml}]\n",
				"overlays/" + name + "/patch.yaml":         settings("base", value),
			}
		},
		shared: map[string]string{"base/kustomization.yaml": "resources: [settings.yaml]\n", "base/settings.yaml": settings("base", "none")},
		broken: map[string]func(name string) map[string]string{
			"kustomization": brokenFile("overlays/%s/kustomization.yaml", "resources: [gone]\n"),
		},
		build: "{path: overlays/%s}", names: "%s",
	},
	"charts": {
		part: func(name, value string) map[string]string {
			return partChart("charts/"+name, name, settings("{{ .Release.Name }}", value))
		},
		broken: map[string]func(name string) map[string]string{"template": brokenHelmReleases["template"]},
		build:  "{helm: {chart: charts/%s, namespace: shop, kubeVersion: 1.33.4}}", names: "%s",
	},
}

// write writes the files of all parts, which have a value, and its pipelines.
func (f manyParts) write(t *testing.T, source, pipelines, value string) {
	t.Helper()
	files := maps.Clone(f.shared)
	if files == nil {
		files = map[string]string{}
	}
	for i := range partCount {
		maps.Copy(files, f.part(partName(i), value))
	}
	for name, text := range files {
		put(t, text, source, name)
	}
	pipeline := func(name, build string) {
		put(t, "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: "+name+"}\nspec:\n  source: {git: {url: \""+partsURL+"\", ref: {branch: main}}}\n"+
			"  build: "+build+"\n  publish: [{git: {branch: rendered}}]\n", pipelines, name+".yaml")
	}
	if !strings.Contains(f.build, "%s") {
		pipeline("fleet", f.build)
		return
	}
	for i := range partCount {
		pipeline(partName(i), fmt.Sprintf(f.build, partName(i)))
	}
}

// TestBrokenPartLeavesTheOthersAlone renders repositories into a directory: what breaks keeps its output there and is named, and each change of
// the others is written.
func TestBrokenPartLeavesTheOthersAlone(t *testing.T) {
	for kind, f := range partKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			broken := partName(brokenPart)
			source, pipelines, dir, whole := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
			render := func(want int, out string) string {
				t.Helper()
				code, _, stderr := prerig(t, "render", "--to", out, "--pipelines", pipelines, "--source", source, "--cache", t.TempDir())
				if code != want {
					t.Fatalf("exit code %d\n%s", code, stderr)
				}
				return stderr
			}
			f.write(t, source, pipelines, "v1")
			render(ExitOK, dir)
			before := tree(t, dir)
			f.write(t, source, pipelines, "v2")
			render(ExitOK, whole)
			want := tree(t, whole)
			for how, change := range f.broken {
				f.write(t, source, pipelines, "v2")
				for name, text := range change(broken) {
					put(t, text, source, name)
				}
				stderr := render(ExitError, dir)
				if named := fmt.Sprintf(f.names, broken); !strings.Contains(stderr, named) {
					t.Errorf("%s: %s is not named:\n%s", how, named, stderr)
				}
				if n := strings.Count(stderr, "\n"); n > 4 {
					t.Errorf("%s: %d lines for one broken part:\n%s", how, n, stderr)
				}
				got, kept := tree(t, dir), 0
				for name, text := range want {
					if isRecord := strings.HasPrefix(name, publish.MetaDir); isRecord || got[name] == text {
						continue
					}
					kept++
					if !strings.Contains(name, broken) || got[name] != before[name] {
						t.Errorf("%s: %s: got\n%s", how, name, got[name])
					}
				}
				if kept != 1 || len(got) != len(want) {
					t.Errorf("%s: %d files are as before, %d of %d are there", how, kept, len(got), len(want))
				}
			}
		})
	}
}

// TestReviewNamesTheBrokenPartAlone reviews changes of repositories: a part that was broken before is one line, one that the change breaks an
// error, and the changes of all others are shown.
func TestReviewNamesTheBrokenPartAlone(t *testing.T) {
	for kind, f := range partKinds {
		t.Run(kind, func(t *testing.T) {
			dir, git, write := reviewedRepository(t)
			git("init", "--quiet", "--initial-branch=main")
			git("remote", "add", "origin", partsURL)
			f.write(t, dir, t.TempDir(), "v1")
			how := "manifest"
			if f.broken[how] == nil {
				how = slices.Sorted(maps.Keys(f.broken))[0]
			}
			was, breaks := partName(7), partName(brokenPart)
			for name, text := range f.broken[how](was) {
				write(name, text)
			}
			git("add", "-A")
			git("commit", "--quiet", "-m", "first")
			pipelines := t.TempDir()
			f.write(t, dir, pipelines, "v2")
			for _, one := range []string{was, breaks} {
				for name, text := range f.broken[how](one) {
					write(name, text+"\n# changed\n") // what reads no file that differs is not rendered
				}
			}
			code, out, problems := prerig(t, "review", "-C", dir, "--cache", t.TempDir(), "main")
			if changed := fmt.Sprintf("modified: the same in %d ConfigMaps", partCount-2); code != 2 || !strings.Contains(out, changed) {
				t.Errorf("exit code %d, without %q\n%s%s", code, changed, out, problems)
			}
			if strings.Contains(out, "== deleted") {
				t.Errorf("objects of a broken part are shown as deleted:\n%s", out)
			}
			part := path.Base(fmt.Sprintf(f.names, breaks))
			if all := out + problems; !strings.Contains(all, part) || strings.Contains(all, "info: clusters/prod cannot be rendered") {
				t.Errorf("%s is not named:\n%s", part, all)
			}
			if !strings.Contains(problems, path.Base(fmt.Sprintf(f.names, was))) {
				t.Errorf("what was broken before is not named:\n%s", problems)
			}
		})
	}
}
