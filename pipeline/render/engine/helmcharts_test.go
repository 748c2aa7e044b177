// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/charttest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

var helms = flag.String("helms", "", "programs of Helm that kustomize runs, as VERSION=PROGRAM, separated by commas")

// kustomizeChart is a chart with all that an entry of helmCharts has an effect on.
var kustomizeChart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.2.0\n",
	"values.yaml": "a: chart\nb: {c: chart, d: chart}\nlist: [1, 2]\nlarge: 12345678901\n",
	"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-config}\ndata:\n  values: {{ .Values | toJson | quote }}\n  namespace: {{ .Release.Namespace }}\n" +
		"  kube: {{ .Capabilities.KubeVersion.Version }}\n  monitoring: {{ .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" | quote }}\n",
	"templates/named.yaml":  "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: {{ .Release.Namespace }}}\nspec: {selector: {app: web}}\n",
	"templates/deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers: [{name: main, image: x, envFrom: [{configMapRef: {name: settings}}]}]\n",
	"templates/hook.yaml":   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, annotations: {helm.sh/hook: pre-install}}\n",
	"templates/test.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\n",
	"templates/NOTES.txt":   "Thanks for {{ .Chart.Name }}.\n",
	"crds/c.yaml":           "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\n",
}

// withChart returns files with the chart at a directory.
func withChart(at string, files map[string]string) map[string]string {
	out := maps.Clone(files)
	for name, text := range kustomizeChart {
		out[at+"/"+name] = text
	}
	return out
}

const entry = "helmCharts:\n- name: web\n  kubeVersion: 1.33.4\n"

var kustomizations = map[string]map[string]string{
	"plain":            withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry}),
	"named":            withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  releaseName: shop\n  namespace: team\n  apiVersions: [monitoring.coreos.com/v1]\n"}),
	"name template":    withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  nameTemplate: 'x-{{ \"shop\" | upper | lower }}'\n"}),
	"crds":             withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  includeCRDs: true\n  skipTests: true\n"}),
	"no hooks":         withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  skipHooks: true\n"}),
	"chart home":       withChart("app/my/web", map[string]string{"app/kustomization.yaml": "helmGlobals: {chartHome: my}\n" + entry}),
	"pulled":           withChart("app/charts/web-1.2.0/web", map[string]string{"app/kustomization.yaml": entry + "  version: 1.2.0\n  repo: https://charts.example.com\n"}),
	"values file":      withChart("app/charts/web", map[string]string{"app/v.yaml": "a: file\nb: {c: null}\n", "app/kustomization.yaml": entry + "  valuesFile: v.yaml\n"}),
	"more values":      withChart("app/charts/web", map[string]string{"app/v.yaml": "a: one\nb: {c: one}\n", "app/w.yaml": "b: {d: two}\nlist: []\n", "app/kustomization.yaml": entry + "  additionalValuesFiles: [v.yaml, w.yaml]\n"}),
	"inline":           withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  valuesInline: {a: inline, b: {c: inline}, list: [3], n: null, e: 1}\n"}),
	"inline merge":     withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry + "  valuesMerge: merge\n  valuesInline: {a: inline, b: {c: inline, x: new}, list: [3], e: 1}\n"}),
	"inline replace":   withChart("app/charts/web", map[string]string{"app/v.yaml": "a: file\n", "app/kustomization.yaml": entry + "  valuesFile: v.yaml\n  valuesMerge: replace\n  valuesInline: {b: {c: inline}}\n"}),
	"namespace":        withChart("app/charts/web", map[string]string{"app/kustomization.yaml": "namespace: team\nnamePrefix: my-\nlabels: [{pairs: {team: a}}]\n" + entry}),
	"other namespace":  withChart("app/charts/web", map[string]string{"app/kustomization.yaml": "namespace: team\n" + entry + "  namespace: other\n"}),
	"parent namespace": withChart("app/base/charts/web", map[string]string{"app/kustomization.yaml": "namespace: team\nresources: [base]\n", "app/base/kustomization.yaml": entry}),
	"generators": withChart("app/charts/web", map[string]string{"app/r.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: r}\n",
		"app/kustomization.yaml": "resources: [r.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n" + entry + "patches: [{target: {kind: Service}, patch: '[{\"op\": \"add\", \"path\": \"/spec/type\", \"value\": \"NodePort\"}]'}]\n"}),
	"two": withChart("app/charts/web", map[string]string{"app/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "app/charts/db/values.yaml": "x: 1\n",
		"app/charts/db/templates/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\n", "app/kustomization.yaml": entry + "- {name: db, releaseName: db, kubeVersion: 1.33.4}\n"}),
	"generator object": withChart("app/charts/web", map[string]string{"app/g.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: g}\nname: web\nreleaseName: g\nkubeVersion: 1.33.4\n",
		"app/kustomization.yaml": "generators: [g.yaml]\n"}),
	"old field": withChart("app/charts/web", map[string]string{"app/kustomization.yaml": "helmChartInflationGenerator:\n- {chartName: web, releaseName: old}\n"}),
}

// helmChartsRequest renders with what the old field cannot say.
func helmChartsRequest() render.Request {
	r := request("app")
	r.HelmCharts = &v1alpha1.HelmCharts{KubeVersion: "1.33.4", Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse}
	return r
}

// TestHelmChartsOfKustomizations renders every case in the isolated process, twice.
func TestHelmChartsOfKustomizations(t *testing.T) {
	wants := map[string][]string{
		"plain":            {"name: release-name-config", "namespace: default", `"a":"chart"`, "name: check", "name: prepare", "kube: v1.33.4"},
		"named":            {"name: shop-config", "namespace: team", `monitoring: "true"`},
		"name template":    {"name: x-shop-config"},
		"crds":             {"webs.example.com"},
		"values file":      {`"a":"file"`, `"b":{"d":"chart"}`},
		"more values":      {`"a":"one"`, `"c":"one","d":"two"`, `"list":[]`},
		"inline":           {`"a":"inline"`, `"c":"inline","d":"chart"`, `"list":[3]`},
		"inline merge":     {`"a":"chart"`, `"x":"new"`, `"list":[1,2]`},
		"inline replace":   {`"a":"chart"`, `"c":"inline"`},
		"namespace":        {"name: my-web", "namespace: team"},
		"parent namespace": {"namespace: team"},
		"generators":       {"name: settings-", "type: NodePort"},
	}
	for name, files := range kustomizations {
		t.Run(name, func(t *testing.T) {
			response, _ := mustRender(t, files, helmChartsRequest())
			for _, want := range wants[name] {
				if !strings.Contains(text(response), want) {
					t.Errorf("there is no %s in\n%s", want, text(response))
				}
			}
			if again, _ := mustRender(t, files, helmChartsRequest()); again.Digest() != response.Digest() || len(response.Objects) == 0 {
				t.Errorf("another render gives something else, or nothing:\n%s", text(again))
			}
		})
	}
}

// TestHelmChartsAsKustomize compares with kustomize's own code that runs Helm itself. It is skipped without programs: see make
// helm. Objects and their order must be equal.
func TestHelmChartsAsKustomize(t *testing.T) {
	if *helms == "" {
		t.Skip("no programs are given; see make helm")
	}
	for one := range strings.SplitSeq(*helms, ",") {
		version, program, _ := strings.Cut(one, "=")
		for _, name := range slices.Sorted(maps.Keys(kustomizations)) {
			t.Run(version+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				for at, text := range kustomizations[name] {
					at = filepath.Join(dir, at)
					if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				options := krusty.MakeDefaultOptions()
				options.Reorder = krusty.ReorderOptionUnspecified
				options.PluginConfig = types.DisabledPluginConfig()
				options.PluginConfig.HelmConfig = types.HelmConfig{Enabled: true, Command: program, KubeVersion: "1.33.4"}
				theirs, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "app"))
				if err != nil {
					t.Fatal(err)
				}
				var want []any
				for _, object := range theirs.Resources() {
					value, err := object.Map()
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, plain(t, value))
				}
				response, _ := mustRender(t, kustomizations[name], helmChartsRequest())
				var got []any
				for _, object := range response.Objects {
					var value any
					if err := yaml.Unmarshal(object.YAML, &value); err != nil {
						t.Fatal(err)
					}
					got = append(got, value)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-kustomize +prerig):\n%s", diff)
				}
			})
		}
	}
}

// plain returns a value as it is read from YAML.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	content, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.Unmarshal(content, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A chart of a repository that was fetched gives what the same chart gives where kustomize would have put it.
func TestHelmChartsOfRepositories(t *testing.T) {
	r := helmChartsRequest()
	files := map[string]string{"app/kustomization.yaml": entry + "  version: ^1.2\n  repo: https://charts.example.com/\n"}
	found, err := reference.FindCharts(ctx, tree.NewView(build(t, files), tree.Limits{}), r)
	want := []render.ChartReference{{Repository: "https://charts.example.com/", Name: "web", Range: "^1.2", Where: "app/kustomization.yaml:2"}}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	archive := charttest.Package(t, "web", "1.2.0", kustomizeChart)
	locked := v1alpha1.LockedChart{Name: "web", Repository: "https://charts.example.com", Range: "^1.2", Version: "1.2.0", Digest: charttest.Digest(archive)}
	chart, _, _ := render.NewChart(locked)
	r.Charts = []render.Chart{chart}
	files[chart.Path] = string(archive)
	fetched, _ := mustRender(t, files, r)
	local, _ := mustRender(t, kustomizations["plain"], helmChartsRequest())
	if fetched.Digest() != local.Digest() {
		t.Errorf("got\n%s\nwant\n%s", text(fetched), text(local))
	}
	// What is in the tree is not asked for.
	for name, files := range kustomizations {
		if found, err := reference.FindCharts(ctx, tree.NewView(build(t, files), tree.Limits{}), helmChartsRequest()); err != nil || len(found) > 0 {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
}

// Charts that are not functions of their values are refused in kustomizations too, with both places.
func TestHelmChartsAreHermetic(t *testing.T) {
	files := withChart("app/charts/web", map[string]string{"app/kustomization.yaml": entry})
	files["app/charts/web/templates/secret.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: {{ randAlphaNum 20 }}\n"
	_, _, err := renderFiles(t, files, helmChartsRequest())
	for _, want := range []string{"app/kustomization.yaml:2: helmCharts: web: ", "app/charts/web/templates/secret.yaml:5:", "randAlphaNum is random"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("there is no %q in %v", want, err)
		}
	}
	r := helmChartsRequest()
	r.HelmCharts.Impure = v1alpha1.ImpureEmpty
	if _, _, err := renderFiles(t, files, r); err != nil {
		t.Error(err)
	}
}
