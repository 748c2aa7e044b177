// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// unitsOf returns the objects of each unit as KIND NAME, sorted.
func unitsOf(response *render.Response) map[string]string {
	all := map[string][]string{}
	for _, object := range response.Objects {
		all[object.Unit] = append(all[object.Unit], object.Kind+" "+object.Name)
	}
	out := map[string]string{}
	for unit, names := range all {
		slices.Sort(names)
		out[unit] = strings.Join(names, ", ")
	}
	return out
}

// findingsOf returns the findings of a severity, one a line.
func findingsOf(response *render.Response, severity result.Severity) string {
	var lines []string
	for _, one := range response.Results {
		if one.Severity == severity {
			lines = append(lines, one.Tags[render.TagUnit]+" | "+one.String())
		}
	}
	return strings.Join(lines, "\n")
}

// fluxUnits are trees with what becomes of their units.
var fluxUnits = map[string]struct {
	files            map[string]string
	change           func(*render.Request)
	units            map[string]string // nil for those that are not looked at
	failed           []string
	errors, warnings []string
}{
	"nested, with a Kustomization of its own for the entry": {
		files: map[string]string{
			"clusters/prod/sync.yaml": fluxKustomization("entry", "./clusters/prod", "  commonMetadata: {labels: {cluster: prod}}\n"),
			"clusters/prod/apps.yaml": fluxKustomization("apps", "apps", "  patches:\n  - target: {kind: Kustomization}\n    patch: |\n      - {op: add, path: /spec/targetNamespace, value: patched}\n"),
			"apps/web/ks.yaml":        fluxKustomization("web", "./app", ""), "app/web.yaml": fluxDeployment,
			"clusters/prod/map.yaml": fluxMap("m", "  a: b\n"),
		},
		units: map[string]string{"flux-system/entry": "ConfigMap m", "flux-system/web": "Deployment web"},
	},
	"artifacts of a generator that a later unit has": {
		files: map[string]string{
			"clusters/prod/a.yaml": strings.Replace(fluxKustomization("apps", "web", ""), "{kind: GitRepository, name: flux-system}", "{kind: ExternalArtifact, name: web-app}", 1) +
				strings.Replace(fluxKustomization("far", "web", ""), "{kind: GitRepository, name: flux-system}", "{kind: ExternalArtifact, name: far}", 1) +
				fluxKustomization("generators", "generators", ""),
			"generators/g.yaml": "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\nspec:\n" +
				"  sources: [{alias: repo, kind: GitRepository, name: flux-system}]\n  pathPattern: \"@repo/tenants/{team}\"\n  artifacts:\n  - name: \"{team}-app\"\n    copy:\n" +
				"    - {from: \"@repo/tenants/{team}/**\", to: \"@artifact/{team}/\", exclude: [\"*.md\"]}\n",
			"tenants/web/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: a-\n", "tenants/web/web.yaml": fluxDeployment, "web/wrong.yaml": fluxMap("wrong", "  a: b\n"),
		},
		units:    map[string]string{"flux-system/flux-system": "Kustomization far", "flux-system/generators": "ArtifactGenerator all", "flux-system/apps": "Deployment a-web"},
		warnings: []string{"Kustomization flux-system/far: spec.sourceRef names ExternalArtifact flux-system/far, and no ArtifactGenerator among the objects of the tree makes it; it is left to Flux"},
	},
	"a chart with values of its own in an artifact": {
		change: func(r *render.Request) { r.Releases = releasesRequest("").Releases },
		files: map[string]string{
			"clusters/prod/a.yaml": "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\nspec:\n" +
				"  sources: [{alias: repo, kind: GitRepository, name: flux-system}]\n  artifacts:\n  - name: chart\n    copy:\n    - {from: \"@repo/charts/own/\", to: \"@artifact/\"}\n" +
				"    - {from: \"@repo/prod.yaml\", to: \"@artifact/own/values.yaml\", strategy: Merge}\n---\n" +
				"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system}\nspec: {interval: 1h, chartRef: {kind: ExternalArtifact, name: chart}}\n",
			"charts/own/Chart.yaml": "apiVersion: v2\nname: own\nversion: 1.0.0\n", "charts/own/values.yaml": "name: plain\n", "prod.yaml": "name: merged\n",
			"charts/own/templates/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Values.name }}\"}\n",
		},
		units: map[string]string{"flux-system/flux-system": "ArtifactGenerator all, ConfigMap merged"},
	},
	"variables of a unit that is built later": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("apps", "app", "  dependsOn: [{name: vars}]\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"),
			"clusters/prod/b.yaml": fluxKustomization("vars", "vars", "  targetNamespace: flux-system\n  postBuild: {substitute: {x: \"1\"}}\n"),
			"vars/v.yaml":          fluxMap("vars", "  a: ${x}-value\n"), "app/m.yaml": fluxMap("is-${a}", "  a: b\n"),
		},
		units: map[string]string{"flux-system/vars": "ConfigMap vars", "flux-system/apps": "ConfigMap is-1-value"},
	},
	"variables that only the cluster or a key has, for a comparison": {
		change: func(r *render.Request) { r.Review = true },
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("apps", "app", "  postBuild: {substituteFrom: [{kind: Secret, name: gone}, {kind: Secret, name: locked}]}\n") +
				"---\napiVersion: v1\nkind: Secret\nmetadata: {name: locked, namespace: flux-system}\nstringData: {key: \"ENC[x]\"}\nsops: {version: 3.9.0}\n",
			"app/m.yaml": fluxMap("apps", "  a: ${domain}/${key}\n  b: ${other:=default}\n  c: ${key:=default}\n"),
		},
		units: map[string]string{"flux-system/flux-system": "Kustomization apps, Secret locked", "flux-system/apps": "ConfigMap apps"},
	},
	"one that fails leaves the others": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("a", "a", "") + fluxKustomization("b", "b", "") + fluxKustomization("c", "c", "  postBuild: {substitute: {x: y}}\n"),
			"a/x.yaml":             "a: [\n", "b/x.yaml": fluxMap("b", "  a: b\n"), "c/x.yaml": fluxMap("c", "  a: b${z}\n"),
			"c/ks.yaml": fluxKustomization("d", "b", ""),
		},
		units:  map[string]string{"flux-system/b": "ConfigMap b", "flux-system/d": "ConfigMap b"},
		failed: []string{"flux-system/a", "flux-system/c"},
		errors: []string{
			"flux-system/a | error: clusters/prod/a.yaml:10: Kustomization flux-system/a spec.path: reading a/x.yaml as Kubernetes objects",
			"flux-system/c | error: c/x.yaml:7: ConfigMap c data.a: the variable z of the Kustomization flux-system/c: it has no value and no default; set it under spec.postBuild.substitute, or write ${z:=default}",
		},
	},
	"a value that needs a key": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("a", "a", "  postBuild: {substituteFrom: [{kind: Secret, name: s}]}\n") + fluxKustomization("b", "b", "  postBuild: {substituteFrom: [{kind: Secret, name: s}]}\n"),
			"clusters/prod/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: flux-system}\nstringData: {DOMAIN: \"ENC[AES256_GCM,data:x]\"}\nsops: {mac: x}\n",
			"a/x.yaml":             fluxMap("a", "  host: a.${DOMAIN:=example.com}\n"), "b/x.yaml": fluxMap("b", "  a: b\n"),
		},
		units:  map[string]string{"flux-system/flux-system": "Secret s", "flux-system/b": "ConfigMap b"},
		failed: []string{"flux-system/a"},
		errors: []string{"a/x.yaml:7: ConfigMap a data.host: the variable DOMAIN of the Kustomization flux-system/a: its value is in Secret flux-system/s, which is encrypted, and needs a key, which a render does not have"},
	},
	"an optional object that only the cluster has": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("a", "a", "  postBuild: {substituteFrom: [{kind: Secret, name: s, optional: true}]}\n") + fluxKustomization("b", "b", ""),
			"a/x.yaml":             fluxMap("a", "  a: ${X}\n"), "b/x.yaml": fluxMap("b", "  a: ${X}\n"),
		},
		failed:   []string{"flux-system/a"},
		errors:   []string{"the variable X of the Kustomization flux-system/a: it has no value and no default; Secret flux-system/s, which may set it, is not among the objects of the tree"},
		warnings: []string{"flux-system/a | warning: clusters/prod/a.yaml:12: Kustomization flux-system/a spec.postBuild.substituteFrom: Secret flux-system/s is optional"},
	},
	"dependencies in a circle": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("a", "a", "  dependsOn: [{name: b}]\n") + fluxKustomization("b", "a", "  dependsOn: [{name: c}]\n") +
				fluxKustomization("c", "a", "  dependsOn: [{name: a}]\n") + fluxKustomization("d", "a", "  dependsOn: [{name: a}, {name: gone}]\n"),
			"a/x.yaml": fluxMap("a", "  a: b\n"),
		},
		failed:   []string{"flux-system/a", "flux-system/b", "flux-system/c"},
		errors:   []string{"Kustomization flux-system/a spec.dependsOn[0]: Kustomization flux-system/b waits for this one in turn"},
		warnings: []string{"Kustomization flux-system/d spec.dependsOn[1]: Kustomization flux-system/gone is not in the tree"},
	},
	"one that makes itself under a new name": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("a", "a", "  postBuild: {substitute: {n: x}}\n"),
			"a/ks.yaml":            fluxKustomization("a-${n}", "a", "  postBuild: {substitute: {n: \"${n}x\"}}\n"),
		},
		failed: []string{"flux-system/a-" + strings.Repeat("x", 20)},
		errors: []string{"is made by Kustomizations more than 20 below each other"},
	},
	"what is left to Flux": {
		files: map[string]string{
			"clusters/prod/a.yaml": strings.Replace(fluxKustomization("other", "x", ""), "name: flux-system}", "name: other}", 1) + fluxKustomization("suspended", "x", "  suspend: true\n") +
				fluxKustomization("remote", "x", "  kubeConfig: {secretRef: {name: k}}\n") + strings.Replace(fluxKustomization("oci", "x", ""), "GitRepository, name: flux-system", "OCIRepository, name: o", 1) +
				strings.Replace(fluxKustomization("same", "b", ""), "name: flux-system}", "name: same}", 1) +
				"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\nspec: {url: \"https://git.example.com/team/other\", interval: 1m}\n" +
				"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: same, namespace: flux-system}\nspec: {url: \"ssh://git@git.example.com/team/config\", interval: 1m, ref: {branch: main}}\n" +
				"---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: flux-system}\n" +
				"spec: {inputsFrom: [{name: gone}], resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n",
			"b/x.yaml": fluxMap("b", "  a: b\n"),
		},
		units: map[string]string{
			"flux-system/flux-system": "GitRepository other, GitRepository same, Kustomization oci, Kustomization other, Kustomization remote, Kustomization suspended, ResourceSet set",
			"flux-system/same":        "ConfigMap b",
		},
		warnings: []string{
			"Kustomization flux-system/other: spec.sourceRef names GitRepository flux-system/other: the repository https://git.example.com/team/other is none of the pipeline's sources",
			"Kustomization flux-system/suspended: spec.suspend is true", "Kustomization flux-system/remote: spec.kubeConfig applies it to another cluster",
			"Kustomization flux-system/oci: spec.sourceRef names OCIRepository flux-system/o, which is not this source", "ResourceSet flux-system/set spec.inputsFrom[0]: ResourceSetInputProvider gone is not among the objects",
		},
	},
	"wrong Kustomizations": {
		files: map[string]string{
			"clusters/prod/a.yaml": strings.Replace(fluxKustomization("a", "b", ""), "io/v1\n", "io/v1beta1\n", 1) + strings.Replace(fluxKustomization("b", "b", ""), "  namespace: flux-system\n", "", 1) +
				fluxKustomization("c", "3", "") + fluxKustomization("d", "b", "  pathh: x\n"),
			"b/x.yaml": fluxMap("b", "  a: b\n"),
		},
		units:    map[string]string{"flux-system/d": "ConfigMap b"},
		failed:   []string{"/b", "flux-system/a", "flux-system/c"},
		errors:   []string{"Kustomization flux-system/a apiVersion: version v1beta1 is not read", "Kustomization b metadata.namespace: is missing", "Kustomization flux-system/c spec: cannot be read"},
		warnings: []string{"Kustomization flux-system/d spec.pathh: is no field"},
	},
	"releases": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("web", "web", "  targetNamespace: shop\n  postBuild: {substitute: {REPLICAS: \"3\"}}\n") + fluxKustomization("other", "other", "") + fluxKustomization("sources", "sources", ""),
			"web/hr.yaml":          "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\nspec:\n  interval: 1m\n  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}\n  values:\n    replicas: ${REPLICAS}\n",
			"other/hr.yaml":        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: other, namespace: shop}\nspec:\n  interval: 1m\n  chart: {spec: {chart: o, version: 1.x, sourceRef: {kind: HelmRepository, name: h, namespace: flux-system}}}\n",
			"sources/h.yaml":       "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: h, namespace: flux-system}\nspec: {url: \"https://charts.example.com\"}\n",
		},
		change: func(r *render.Request) {
			r.Releases = releasesRequest("").Releases
			r.Missing = []render.MissingChart{{Chart: render.ChartReference{Repository: "https://charts.example.com/", Name: "o", Range: "1.x"}, Reason: "it is not locked"}}
		},
		units: map[string]string{
			"flux-system/sources": "HelmRepository h",
			"flux-system/web":     "ClusterRole web, ConfigMap web-config, CustomResourceDefinition webs.example.com, Deployment web, Job prepare, Other other, Web custom",
		},
		errors: []string{"flux-system/other | error: other/hr.yaml:6: HelmRelease shop/other spec.chart.spec.chart: it is not locked [not-rendered]"},
	},
	"a release that Flux does not substitute": {
		files: map[string]string{
			"clusters/prod/a.yaml": fluxKustomization("web", "web", ""),
			"web/hr.yaml":          helmRelease(strings.ReplaceAll(chartInGit, "name: config", "name: flux-system, namespace: flux-system") + "  values: {e: \"${REPLICAS:=2}\"}\n"),
		},
		change:   func(r *render.Request) { r.Releases = releasesRequest("").Releases },
		warnings: []string{"web/hr.yaml:9: HelmRelease shop/web spec.values.e: the variable REPLICAS stays as it is, as the Kustomization flux-system/web has no spec.postBuild"},
	},
	"kept originals": {
		files: map[string]string{"clusters/prod/a.yaml": fluxKustomization("a", "a", ""), "a/x.yaml": fluxMap("a", "  a: b\n")},
		change: func(r *render.Request) {
			r.Releases = releasesRequest("").Releases
			r.Releases.Originals = v1alpha1.OriginalsSuspend
		},
		units: map[string]string{"flux-system/flux-system": "Kustomization a", "flux-system/a": "ConfigMap a"},
	},
}

// TestFluxUnits looks at which units there are, and at what is found about them.
func TestFluxUnits(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(fluxUnits)) {
		c := fluxUnits[name]
		t.Run(name, func(t *testing.T) {
			request := fluxRequest()
			files := withReleaseChart(c.files)
			if c.change != nil {
				c.change(&request)
			}
			response, _ := mustRender(t, files, request)
			slices.Sort(response.Failed)
			if !slices.Equal(response.Failed, c.failed) {
				t.Errorf("failed: %q", response.Failed)
			}
			if got := unitsOf(response); c.units != nil && !maps.Equal(got, c.units) {
				t.Errorf("got %q", got)
			}
			for severity, wants := range map[result.Severity][]string{result.Error: c.errors, result.Warning: c.warnings} {
				found := findingsOf(response, severity)
				for _, want := range wants {
					if !strings.Contains(found, want) {
						t.Errorf("%s: got\n%s\nwant %s", severity, found, want)
					}
				}
				if len(wants) == 0 && found != "" {
					t.Errorf("%s: %s", severity, found)
				}
			}
		})
	}
}

// TestKustomizationsAreSuspendedByFlux: with originals: Suspend, Flux leaves a Kustomization alone by spec.suspend, and the Flux Operator a
// ResourceSet by an annotation.
func TestKustomizationsAreSuspendedByFlux(t *testing.T) {
	request := fluxRequest()
	request.Releases = releasesRequest("").Releases
	request.Releases.Originals = v1alpha1.OriginalsSuspend
	response, _ := mustRender(t, map[string]string{
		"clusters/prod/a.yaml": fluxKustomization("a", "a", ""), "a/x.yaml": fluxMap("a", "  a: b\n"),
		"clusters/prod/set.yaml": resourceSetOf("set", "  resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: made}}]\n"),
	}, request)
	got := text(response)
	if strings.Contains(got, "argocd") || !strings.Contains(got, "suspend: true") || !strings.Contains(got, "fluxcd.controlplane.io/reconcile: disabled") {
		t.Error(got)
	}
}

// TestFluxEntryThatFails is an error of the render: nothing is known of the cluster.
func TestFluxEntryThatFails(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"building clusters/prod: reading clusters/prod/a.yaml as Kubernetes objects": {"clusters/prod/a.yaml": "a: [\n"},
		"spec.build.flux.path: ": {"x.yaml": ""},
		"building clusters/prod: clusters/prod/kustomization.yaml:2: resources: it is not locked": {"clusters/prod/kustomization.yaml": "# note\nresources: [\"https://github.com/a/b?ref=main\"]\n"},
	} {
		request := fluxRequest()
		request.MissingBases = []render.MissingBase{{
			Name: render.NewBase("", "https://github.com/a/b?ref=main").Name, Reason: "clusters/prod/kustomization.yaml:2: resources: it is not locked",
		}}
		if _, _, err := renderFiles(t, files, request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestKeptVariables: the text of a variable without a value stays, unless it has a default that the cluster would use.
func TestKeptVariables(t *testing.T) {
	c := fluxUnits["variables that only the cluster or a key has, for a comparison"]
	r := fluxRequest()
	c.change(&r)
	response, _ := mustRender(t, c.files, r)
	for _, want := range []string{"a: ${domain}/${key}\n", "b: default\n", "c: ${key}\n"} {
		if !strings.Contains(text(response), want) {
			t.Errorf("there is no %q in\n%s", want, text(response))
		}
	}
	if got := findingsOf(response, result.Info); !strings.Contains(got, "data.a: the variable domain ") || !strings.Contains(got, "the variable key ") {
		t.Error(got)
	}
}
