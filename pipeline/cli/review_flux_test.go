// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"strings"
	"testing"
)

// fluxReview is a change of a cluster of Flux, and what a review of it shows.
type fluxReview struct {
	files, change map[string]string // files that change to "" are removed
	code          int
	want, without []string
}

const reviewedMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n"

// reviewedCluster is a cluster, as flux bootstrap writes it, with a Kustomization apps.
func reviewedCluster(more map[string]string) map[string]string {
	files := map[string]string{
		"clusters/prod/flux-system/kustomization.yaml": "resources: [gotk-sync.yaml]\n",
		"clusters/prod/flux-system/gotk-sync.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n" +
			"metadata: {name: flux-system, namespace: flux-system}\nspec: {interval: 1m, url: \"https://git.example.com/team/config\"}\n---\n" +
			reviewedPart("flux-system", "./clusters/prod", "prune: true"),
		"clusters/prod/apps.yaml":    reviewedPart("apps", "./apps", "prune: true"),
		"apps/web.yaml":              application("web", "app:1"),
		"apps/settings.yaml":         reviewedMap,
		"clusters/prod/readme.md":    "text",
		"infrastructure/unused.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: unused}\n",
	}
	maps.Copy(files, more)
	return files
}

func reviewedPart(name, path, more string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name +
		", namespace: flux-system}\nspec:\n  interval: 10m\n  path: " + path +
		"\n  sourceRef: {kind: GitRepository, name: flux-system}\n  " + more + "\n"
}

var fluxReviews = map[string]fluxReview{
	"fields of a Kustomization": {
		files:  reviewedCluster(nil),
		change: map[string]string{"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: true\n  serviceAccountName: admin")},
		code:   1, want: []string{"modified: Kustomization flux-system/apps (clusters/prod)", "+  serviceAccountName: admin", "0 objects added, 1 modified, 0 deleted"},
	},
	"the first Kustomization of a bootstrap": {
		files: reviewedCluster(nil),
		change: map[string]string{"clusters/prod/flux-system/gotk-sync.yaml": strings.Replace(
			reviewedCluster(nil)["clusters/prod/flux-system/gotk-sync.yaml"], "interval: 10m", "interval: 30m", 1)},
		code: 1, want: []string{"modified: Kustomization flux-system/flux-system", "+  interval: 30m"},
	},
	"a suspended Kustomization keeps its objects": {
		files:  reviewedCluster(nil),
		change: map[string]string{"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: true\n  suspend: true")},
		code:   1, want: []string{"Kustomization flux-system/apps is suspended: its 2 objects stay in the cluster", "+  suspend: true", "1 modified, 0 deleted"},
	},
	"objects that leave without prune stay": {
		files:  reviewedCluster(map[string]string{"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: false")}),
		change: map[string]string{"apps/settings.yaml": ""},
		code:   1, want: []string{"left in the cluster: ConfigMap shop/settings", "stays in the cluster: Kustomization flux-system/apps does not prune: its spec.prune is not true"},
		without: []string{"deleted: ConfigMap"},
	},
	"objects that are not pruned stay": {
		files: reviewedCluster(map[string]string{"apps/settings.yaml": strings.Replace(reviewedMap, "namespace: shop",
			"namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}", 1)}),
		change: map[string]string{"apps/settings.yaml": ""},
		code:   1, want: []string{"left in the cluster: ConfigMap shop/settings", "stays in the cluster: metadata.annotations has kustomize.toolkit.fluxcd.io/prune: disabled"},
		without: []string{"deleted: ConfigMap"},
	},
	"a Kustomization that leaves takes its objects along": {
		files:  reviewedCluster(nil),
		change: map[string]string{"clusters/prod/apps.yaml": ""},
		code:   1, want: []string{"deleted: Kustomization flux-system/apps", "deleted: Deployment", "0 modified, 3 deleted"},
	},
	"a Kustomization that leaves without prune leaves its objects": {
		files:  reviewedCluster(map[string]string{"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: false")}),
		change: map[string]string{"clusters/prod/apps.yaml": ""},
		code:   1, want: []string{"deleted: Kustomization flux-system/apps", "Kustomization flux-system/apps is deleted, and leaves its objects: its spec.prune is not true"},
		without: []string{"deleted: Deployment"},
	},
	"a namespace that the parent sets": {
		files: map[string]string{
			"apps/shop/kustomization.yaml":     "namespace: shop\nresources: [web]\n",
			"apps/shop/web/kustomization.yaml": "resources: [ks.yaml]\n",
			"apps/shop/web/ks.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n" +
				"spec:\n  path: ./apps/shop/web/app\n  prune: true\n  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}\n",
			"apps/shop/web/app/web.yaml": application("web", "app:1"),
		},
		change: map[string]string{"apps/shop/web/app/web.yaml": application("web", "app:2")},
		code:   1, want: []string{"(apps/shop)", "+        image: app:2", "1 modified"},
	},
	"the artifact of a part of the repository": {
		files: map[string]string{
			"kubernetes/clusters/prod/instance.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n" +
				"spec:\n  sync: {kind: OCIRepository, url: \"oci://example.com/config\", ref: latest, path: ./clusters/prod}\n",
			"kubernetes/clusters/prod/apps.yaml": strings.Replace(reviewedPart("apps", "./apps", "prune: true"), "GitRepository", "OCIRepository", 1),
			"kubernetes/apps/web.yaml":           application("web", "app:1"),
		},
		change: map[string]string{"kubernetes/apps/web.yaml": application("web", "app:2")},
		code:   1, want: []string{"(kubernetes/clusters/prod)", "+        image: app:2", "0 objects added, 1 modified, 0 deleted"},
	},
	"a remote resource of another version": {
		files: reviewedCluster(map[string]string{"apps/kustomization.yaml": "resources:\n- web.yaml\n- settings.yaml\n- https://example.com/crds/1.0.0/crds.yaml\n" +
			"patches:\n- patch: |\n    {apiVersion: v1, kind: Service, metadata: {name: far}, spec: {type: NodePort}}\n"}),
		change: map[string]string{"apps/kustomization.yaml": "resources:\n- web.yaml\n- settings.yaml\n- https://example.com/crds/1.1.0/crds.yaml\n" +
			"patches:\n- patch: |\n    {apiVersion: v1, kind: Service, metadata: {name: far}, spec: {type: LoadBalancer}}\n", "apps/web.yaml": application("web", "app:2")},
		code: 1, want: []string{"apps/kustomization.yaml: content not compared, as it is not in the source: ", "https://example.com/crds/1.0.0/crds.yaml -> https://example.com/crds/1.1.0/crds.yaml",
			"the patch of Service far is changed", "+        image: app:2", "(clusters/prod)"},
	},
	"a generator that is never run": {
		files: reviewedCluster(map[string]string{
			"apps/kustomization.yaml": "resources: [web.yaml, settings.yaml]\ngenerators: [secrets.yaml]\n",
			"apps/secrets.yaml":       "apiVersion: viaduct.ai/v1\nkind: ksops\nmetadata: {name: secrets}\nfiles: [secret.enc.yaml]\n",
		}),
		change: map[string]string{"apps/web.yaml": application("web", "app:2")},
		code:   1, want: []string{"+        image: app:2"},
	},
	"a remote file of a generator": {
		files:  reviewedCluster(map[string]string{"apps/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator:\n- name: board\n  files: [\"board.json=https://example.com/1/board.json\"]\ngeneratorOptions: {disableNameSuffixHash: true}\n"}),
		change: map[string]string{"apps/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator:\n- name: board\n  files: [\"board.json=https://example.com/2/board.json\"]\ngeneratorOptions: {disableNameSuffixHash: true}\n"},
		code:   1, want: []string{"ConfigMap board", "https://example.com/2/board.json"},
	},
	"an object that is there twice": {
		files:  map[string]string{"manifests/a.yaml": reviewedMap, "manifests/b.yaml": reviewedMap, "manifests/web.yaml": application("web", "app:1")},
		change: map[string]string{"manifests/web.yaml": application("web", "app:2")},
		code:   1, want: []string{"+        image: app:2", "0 objects added, 1 modified, 0 deleted"},
	},
	"a variable without a value": {
		files: reviewedCluster(map[string]string{
			"clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "postBuild: {substitute: {known: a}}"),
			"apps/domain.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: domain, namespace: shop}\ndata: {domain: \"${DOMAIN}\", known: \"${known}\"}\n",
		}),
		change: map[string]string{"apps/web.yaml": application("web", "app:2")},
		code:   1, want: []string{"modified: Deployment shop/web", "+        image: app:2", "1 modified, 0 deleted"}, without: []string{"cannot be rendered"},
	},
	"a failure of another kind than before": {
		files:  reviewedCluster(map[string]string{"apps/kustomization.yaml": "resources: [web.yaml, one.yaml]\n"}),
		change: map[string]string{"apps/kustomization.yaml": "resources: [web.yaml, two.yaml]\n"},
		code:   2, want: []string{"cannot be rendered, for another reason than before: Kustomization flux-system/apps"},
	},
	"a Kustomization that could not be rendered before": {
		files:  reviewedCluster(map[string]string{"apps/kustomization.yaml": "resources: [web.yaml, one.yaml]\n"}),
		change: map[string]string{"apps/kustomization.yaml": "resources: [web.yaml]\n", "clusters/prod/more.yaml": reviewedMap},
		code:   1, want: []string{"added: ConfigMap shop/settings", "info: Kustomization flux-system/apps of clusters/prod can be rendered now, and could not before, so that it is not compared"},
		without: []string{"Deployment"},
	},
	"a failure as before": {
		files:  reviewedCluster(map[string]string{"apps/kustomization.yaml": "resources: [web.yaml, one.yaml]\n"}),
		change: map[string]string{"apps/kustomization.yaml": "# the same\nresources: [web.yaml, one.yaml]\n", "clusters/prod/apps.yaml": reviewedPart("apps", "./apps", "prune: false")},
		code:   1, want: []string{"cannot be rendered, as before: "},
	},
	"a Kustomization that is added and cannot be rendered": {
		files: reviewedCluster(nil),
		change: map[string]string{
			"apps/settings.yaml": "", "clusters/prod/more.yaml": reviewedPart("more", "./more", "prune: true"),
			"more/kustomization.yaml": "resources: [one.yaml]\n",
		},
		code: 2, want: []string{"added, and cannot be rendered: Kustomization flux-system/more", "deleted: ConfigMap shop/settings"},
	},
	"a source of a HelmRelease": {
		files: reviewedCluster(map[string]string{
			"apps/chart.yaml":   "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: chart, namespace: shop}\nspec: {interval: 1h, url: \"oci://example.com/charts/web\", ref: {tag: 1.0.0}}\n",
			"apps/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: chart}}\n",
			"apps/other.yaml":   "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: other, namespace: shop}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: kept}}\n",
			"apps/kept.yaml":    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: kept, namespace: shop}\nspec: {interval: 1h, url: \"oci://example.com/charts/other\", ref: {tag: 1.0.0}}\n",
		}),
		change: map[string]string{"apps/chart.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: chart, namespace: shop}\nspec: {interval: 1h, url: \"oci://example.com/charts/web\", ref: {tag: 1.0.1}}\n"},
		code:   1, want: []string{"OCIRepository shop/chart (tag 1.0.0 -> tag 1.0.1): what HelmRelease shop/web installs of it was not compared"},
		without: []string{"HelmRelease shop/other"},
	},
}

var artifactReviews = map[string]fluxReview{
	"the move to the artifact of a generator": {
		files: reviewedCluster(nil), change: artifactCluster("flux-system", map[string]string{"apps/web.yaml": application("web", "app:2")}),
		code: 1, want: []string{"modified: Deployment shop/web (clusters/prod)", "by Kustomization flux-system/apps", "+    kind: ExternalArtifact"},
		without: []string{"== deleted", "Namespace wrong (clusters/prod", "moved"},
	},
	"a change of what a generator copies": {
		files: artifactCluster("flux-system", nil), change: map[string]string{"apps/web.yaml": application("web", "app:2"), "apps/settings.yaml": ""},
		code: 1, want: []string{"modified: Deployment shop/web (clusters/prod)", "deleted: ConfigMap shop/settings (clusters/prod)", "0 objects added, 1 modified, 1 deleted"},
		without: []string{"leads to"},
	},
	"the move to the artifact of another source": {
		files: reviewedCluster(nil), change: artifactCluster("other", map[string]string{
			"clusters/prod/other.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\nspec: {interval: 1m, url: \"https://git.example.com/team/other\"}\n",
		}),
		code: 1, want: []string{"Kustomization flux-system/apps is not rendered any more, and what it applies was not compared: spec.sourceRef names ExternalArtifact flux-system/apps, and its ArtifactGenerator all copies from GitRepository flux-system/other"},
		without: []string{"deleted:", "deleted with"},
	},
	"an artifact that nothing makes": {
		files: reviewedCluster(nil), change: map[string]string{"clusters/prod/apps.yaml": externalPart("apps", "./apps")},
		code: 1, want: []string{"Kustomization flux-system/apps is not rendered any more", "no ArtifactGenerator among the objects of the tree makes it"},
		without: []string{"deleted:", "deleted with"},
	},
	"a generator that finds nothing": {
		files: artifactCluster("flux-system", nil), change: map[string]string{"apps/web.yaml": "", "apps/settings.yaml": ""},
		code: 2, want: []string{"not rendered any more: Kustomization flux-system/apps", "copy[0] from @repo/apps/** to @artifact/prod/: no file matches"},
		without: []string{"deleted:"},
	},
}

// artifactCluster is a cluster whose Kustomization apps builds what a generator copies.
func artifactCluster(source string, more map[string]string) map[string]string {
	files := reviewedCluster(map[string]string{
		"clusters/prod/apps.yaml": externalPart("apps", "./prod"),
		"clusters/prod/generator.yaml": "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\n" +
			"spec:\n  sources: [{alias: repo, kind: GitRepository, name: " + source + "}]\n  artifacts:\n  - name: apps\n    copy:\n" +
			"    - {from: \"@repo/apps/**\", to: \"@artifact/prod/\"}\n",
		"prod/wrong.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: wrong}\n",
	})
	maps.Copy(files, more)
	return files
}

func externalPart(name, path string) string {
	return strings.Replace(reviewedPart(name, path, "prune: true"), "{kind: GitRepository, name: flux-system}", "{kind: ExternalArtifact, name: "+name+"}", 1)
}

func TestReviewOfFlux(t *testing.T) {
	maps.Copy(fluxReviews, artifactReviews)
	for name, c := range fluxReviews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, problems := reviewChange(t, c.code, c.files, c.change)
			for _, want := range c.want {
				if !strings.Contains(out+problems, want) {
					t.Errorf("there is no %q in\n%s%s", want, out, problems)
				}
			}
			for _, not := range c.without {
				if strings.Contains(out+problems, not) {
					t.Errorf("there is %q in\n%s%s", not, out, problems)
				}
			}
		})
	}
}

// TestReviewOfASourceOfAnotherKind: what a Kustomization installs of a source that is not in the tree was not compared.
func TestReviewOfASourceOfAnotherKind(t *testing.T) {
	of := func(kind, url, tag string) string {
		return "apiVersion: source.toolkit.fluxcd.io/v1\nkind: " + kind + "\nmetadata: {name: kyverno, namespace: flux-system}\n" +
			"spec: {interval: 1h, url: \"" + url + "\", ref: {tag: " + tag + "}}\n---\n" +
			strings.Replace(reviewedPart("kyverno", "./config/release", "prune: true"), "{kind: GitRepository, name: flux-system}", "{kind: "+kind+", name: kyverno}", 1)
	}
	reviewed{
		files:  reviewedCluster(map[string]string{"clusters/prod/kyverno.yaml": of("GitRepository", "https://git.example.com/other/kyverno", "v1.7.3")}),
		change: map[string]string{"clusters/prod/kyverno.yaml": of("OCIRepository", "oci://ghcr.io/other/kyverno", "v1.8.0")}, code: 1,
		wants: []string{"Kustomization flux-system/kyverno has another source (GitRepository flux-system/kyverno tag v1.7.3 -> OCIRepository flux-system/kyverno tag v1.8.0): what it installs was not compared"},
	}.run(t)
}

// pushedCluster is a cluster whose Kustomizations build an artifact that is pushed from deploy/apps.
func pushedCluster(paths ...string) map[string]string {
	text := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: apps-oci, namespace: flux-system}\n" +
		"spec: {interval: 5m, url: \"oci://registry.example.com:5000/apps-sync\", ref: {tag: local}}\n"
	for i, path := range paths {
		part := strings.Replace(reviewedPart("part-"+string(rune('a'+i)), path, "prune: true"), "{kind: GitRepository, name: flux-system}", "{kind: OCIRepository, name: apps-oci}", 1)
		text += "---\n" + part
	}
	return reviewedCluster(map[string]string{"clusters/prod/pushed.yaml": text, "docs/template.yml": "a: b\n",
		"deploy/apps/cm.yaml": namespaceText("one"), "deploy/apps/edge/cm.yaml": namespaceText("two"), "deploy/apps/far/cm.yaml": namespaceText("far")})
}

// TestReviewOfPushedArtifacts: the root of an artifact is the directory that is pushed, and where the files do not tell which, the review
// does not guess.
func TestReviewOfPushedArtifacts(t *testing.T) {
	labelled := strings.Replace(namespaceText("one"), "name: one", "name: one, labels: {a: b}", 1)
	commanded := pushedCluster("./")
	commanded[".github/workflows/push.yaml"] = "jobs:\n  push:\n    steps:\n    - run: flux push artifact oci://ghcr.io/team/apps-sync:local --path=./deploy/apps --source=x\n"
	for name, c := range map[string]reviewed{
		"by the other paths": {files: pushedCluster("./", "./edge", "./far"), change: map[string]string{"deploy/apps/cm.yaml": labelled}, code: 1,
			wants: []string{"modified: Namespace one (clusters/prod)", "by Kustomization flux-system/part-a"}, lacks: []string{"leads to", "docs/template.yml", "cannot be rendered"}},
		"by a command": {files: commanded, change: map[string]string{"deploy/apps/cm.yaml": labelled}, code: 1,
			wants: []string{"modified: Namespace one (clusters/prod)", "by Kustomization flux-system/part-a"}, lacks: []string{"leads to", "docs/template.yml"}},
		"unknown": {files: pushedCluster("./"), change: map[string]string{"deploy/apps/cm.yaml": labelled}, code: 1,
			wants: []string{"modified: Namespace one (deploy/apps)", "info: whether a cluster applies deploy/apps is not known: it may be in the artifact of OCIRepository flux-system/apps-oci, and of which directory that is, the files do not tell"},
			lacks: []string{"leads to", "docs/template.yml", "cannot be rendered"}},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}
