// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

const repositoryURL = "https://git.example.com/team/config"

// releasesRequest renders releases with the source's own repository.
func releasesRequest(path string) render.Request {
	r := request(path)
	r.Releases = &v1alpha1.Releases{
		KubeVersion: "1.33.4", Originals: v1alpha1.OriginalsDrop, Hooks: v1alpha1.HooksKeep, Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse,
	}
	r.Repositories = []render.Repository{{URL: repositoryURL + ".git", Path: ".", Ref: v1alpha1.GitRef{Branch: "main"}}}
	return r
}

// releaseChart is a chart that shows its values and what it sees of the release.
var releaseChart = map[string]string{
	"charts/web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.2.0\n",
	"charts/web/values.yaml": "a: chart\nb: {c: chart, d: chart}\n",
	"charts/web/prod.yaml":   "a: prod\nb: {d: prod}\n",
	"charts/web/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-config}\ndata:\n" +
		"  values: {{ .Values | toJson | quote }}\n  large: {{ .Values.l }}\n  namespace: {{ .Release.Namespace }}\n  kube: {{ .Capabilities.KubeVersion.Version }}\n",
	"charts/web/templates/role.yaml":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n",
	"charts/web/templates/deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: fixed}\nspec:\n  template:\n    spec:\n      containers: [{name: main, image: example.com/web:1}]\n",
	"charts/web/templates/hook.yaml":   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, annotations: {helm.sh/hook: pre-install}}\n",
	"charts/web/templates/test.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\n",
	"charts/web/crds/c.yaml":           "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\nspec: {group: example.com, names: {kind: Web}, scope: Cluster}\n",
	"charts/web/templates/custom.yaml": "apiVersion: example.com/v1\nkind: Web\nmetadata: {name: custom}\n---\napiVersion: other.example.com/v1\nkind: Other\nmetadata: {name: other}\n",
}

const gitRepository = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: config, namespace: shop}\nspec: {url: \"https://git.example.com/team/config\", interval: 1m, ref: {branch: main}}\n"

// helmRelease is a HelmRelease of the chart in the source with more of its spec.
func helmRelease(more string) string {
	return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  interval: 1m\n" + more
}

const chartInGit = "  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: config}}}\n"

// argoApplication is an Application of the chart in the source with more of its source.
func argoApplication(more string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: web\n  namespace: argocd\nspec:\n  destination: {server: \"https://kubernetes.default.svc\", namespace: shop}\n" +
		"  source:\n    repoURL: git@git.example.com:team/config.git\n    path: charts/web\n    targetRevision: HEAD\n" + more
}

// withReleaseChart returns files with the chart.
func withReleaseChart(files map[string]string) map[string]string {
	out := maps.Clone(releaseChart)
	maps.Copy(out, files)
	return out
}

func valuesMap(name, data string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata:\n" + data
}

// releaseErrors renders, and returns what could not be rendered of the releases, one a line.
func releaseErrors(t *testing.T, files map[string]string, r render.Request) string {
	t.Helper()
	response, _ := mustRender(t, files, r)
	var out []string
	for _, one := range response.Results {
		if one.Severity == result.Error && one.Tags[result.TagCode] == render.CodeNotRendered {
			out = append(out, one.String())
		}
	}
	return strings.Join(out, "\n")
}

// TestReleases renders releases in the isolated process.
func TestReleases(t *testing.T) {
	cases := map[string]struct {
		app         string
		change      func(*v1alpha1.Releases)
		wants, nots []string
	}{
		"git": {app: helmRelease(chartInGit) + gitRepository, wants: []string{
			"name: web-config", "namespace: shop", `\"a\":\"chart\"`, "kube: v1.33.4", "name: prepare", "webs.example.com", "kind: GitRepository",
			"metadata: {name: web, namespace: fixed}", "kind: ClusterRole\nmetadata: {name: web}\n", "metadata: {name: custom}\n", "metadata: {name: other, namespace: shop}",
		}, nots: []string{"kind: HelmRelease", "name: check"}},
		"suspended": {app: helmRelease(chartInGit) + gitRepository, change: func(r *v1alpha1.Releases) { r.Originals = v1alpha1.OriginalsSuspend },
			wants: []string{"kind: HelmRelease", "suspend: true", "name: web-config"}},
		"kept": {app: helmRelease(chartInGit) + gitRepository, change: func(r *v1alpha1.Releases) { r.Keep = []v1alpha1.KeptObject{{Kind: "HelmRelease", Name: "w*"}} },
			wants: []string{"kind: HelmRelease"}, nots: []string{"suspend", "web-config"}},
		"target namespace": {app: helmRelease(chartInGit+"  targetNamespace: other\n  install: {createNamespace: true}\n") + gitRepository, wants: []string{
			"metadata: {name: other-web-config, namespace: other}", "kind: Namespace", "kustomize.toolkit.fluxcd.io/prune: disabled",
		}},
		"long name": {app: helmRelease(chartInGit+"  targetNamespace: a-namespace-with-a-long-name-that-goes-on-and-on\n  releaseName: \"\"\n") + gitRepository,
			wants: []string{"name: a-namespace-with-a-long-name-that-goes-on-and-on-web-config"}},
		"text that looks like a variable": {app: strings.Replace(helmRelease(chartInGit+"  values: {e: \"${HOME}\"}\n"), "  namespace: shop\n", "  namespace: shop\n  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n", 1) + gitRepository,
			wants: []string{`\"e\":\"${HOME}\"`}},
		"without crds": {app: helmRelease(chartInGit+"  install: {crds: Skip, disableHooks: true}\n") + gitRepository, nots: []string{"webs.example.com", "prepare"}},
		"values": {app: helmRelease(chartInGit+"  valuesFrom:\n  - {kind: ConfigMap, name: base}\n  - {kind: Secret, name: more, valuesKey: v}\n  - {kind: ConfigMap, name: gone, optional: true}\n"+
			"  - {kind: ConfigMap, name: one, valuesKey: text, targetPath: b.c}\n  values: {a: own, b: {c: own}}\n") + gitRepository +
			valuesMap("base", "  values.yaml: |\n    a: base\n    e: base\n    f: base\n") + valuesMap("one", "  text: path\n") +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: more, namespace: shop}\nstringData: {v: \"f: secret\"}\n",
			wants: []string{`\"a\":\"own\"`, `\"c\":\"path\"`, `\"e\":\"base\"`, `\"f\":\"secret\"`}},
		"values files": {app: helmRelease("  chart: {spec: {chart: ./charts/web, valuesFiles: [charts/web/values.yaml, charts/web/prod.yaml, gone.yaml], ignoreMissingValuesFiles: true, sourceRef: {kind: GitRepository, name: config}}}\n") + gitRepository,
			wants: []string{`{\"a\":\"prod\",\"b\":{\"c\":\"chart\",\"d\":\"prod\"}}`}},
		"only values file": {app: helmRelease("  chart: {spec: {chart: ./charts/web, valuesFiles: [charts/web/prod.yaml], sourceRef: {kind: GitRepository, name: config}}}\n") + gitRepository,
			wants: []string{`{\"a\":\"prod\",\"b\":{\"d\":\"prod\"}}`}},
		"post-renderers": {app: helmRelease(chartInGit+"  commonMetadata: {labels: {team: a}}\n  postRenderers:\n  - kustomize:\n      images: [{name: example.com/web, newTag: \"2\"}]\n      patches: [{target: {kind: Job}, patch: '[{\"op\": \"add\", \"path\": \"/spec\", \"value\": {\"parallelism\": 3}}]'}]\n") + gitRepository,
			wants: []string{"image: example.com/web:2", "parallelism: 3", "team: a"}, nots: []string{"any"}},
		"post-renderers without hooks": {app: helmRelease(chartInGit+"  postRenderStrategy: nohooks\n  postRenderers:\n  - kustomize:\n      patches: [{target: {kind: ConfigMap|Job}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"x\": \"y\"}}]'}]\n") + gitRepository,
			wants: []string{"x: \"y\"", "metadata: {name: prepare, annotations: {helm.sh/hook: pre-install}, namespace: shop}"}},
		"beside": {app: helmRelease(chartInGit), change: func(r *v1alpha1.Releases) { r.Objects = []string{"sources"} }, wants: []string{"name: web-config"}, nots: []string{"GitRepository"}},
		"namespace": {app: strings.Replace(helmRelease(chartInGit), "\n  namespace: shop", "", 1) + strings.Replace(gitRepository, ", namespace: shop", "", 1),
			change: func(r *v1alpha1.Releases) { r.Namespace = "given" }, wants: []string{"namespace: given"}},
		"list":        {app: "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(helmRelease(chartInGit)), "\n", "\n  ") + "\n" + gitRepository, wants: []string{"name: web-config"}},
		"application": {app: argoApplication(""), wants: []string{"name: web-config", "namespace: shop", `\"a\":\"chart\"`, "webs.example.com", "name: prepare"}, nots: []string{"kind: Application"}},
		"application's values": {app: argoApplication("    helm:\n      releaseName: shop\n      kubeVersion: 1.32.1\n      skipCrds: true\n      valueFiles: [prod.yaml, /values/$ARGOCD_APP_NAME.yaml, gone.yaml, /values/many/*.yaml]\n      ignoreMissingValueFiles: true\n" +
			"      valuesObject: {g: object}\n      values: 'g: text'\n      parameters: [{name: h, value: \"true\"}, {name: i, value: \"true\", forceString: true}, {name: j, value: 'x,y'}, {name: l, value: \"123456789012\"}]\n      fileParameters: [{name: k, path: /values/k.txt}]\n"),
			wants: []string{"name: shop-config", `\"a\":\"prod\"`, `\"e\":\"web\"`, `\"f\":\"two\"`, `\"g\":\"object\"`, `\"h\":true`, `\"i\":\"true\"`, `\"j\":\"x,y\"`, `\"k\":\"text\"`, `\"l\":123456789012`, "large: 123456789012", "kube: v1.32.1"}, nots: []string{"webs.example.com"}},
		"application's sources": {app: strings.Replace(argoApplication("    helm: {valueFiles: [$values/values/web.yaml]}\n"), "  source:\n    repoURL", "  sources:\n  - repoURL: https://git.example.com/team/config\n    targetRevision: main\n    ref: values\n  - repoURL", 1),
			wants: []string{`\"e\":\"web\"`}},
		"application's namespace": {app: argoApplication("  syncPolicy: {syncOptions: [CreateNamespace=true], managedNamespaceMetadata: {labels: {istio-injection: enabled}}}\n"), wants: []string{"kind: Namespace", "istio-injection: enabled"}},
		"suspended application":   {app: argoApplication(""), change: func(r *v1alpha1.Releases) { r.Originals = v1alpha1.OriginalsSuspend }, wants: []string{"argocd.argoproj.io/skip-reconcile: \"true\""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := withReleaseChart(map[string]string{
				"app/app.yaml": c.app, "sources/git.yaml": gitRepository, "values/web.yaml": "e: web\n", "values/k.txt": "text",
				"values/many/1.yaml": "f: one\n", "values/many/2.yaml": "f: two\n",
			})
			r := releasesRequest("app")
			if c.change != nil {
				c.change(r.Releases)
			}
			response, _ := mustRender(t, files, r)
			for _, want := range c.wants {
				if !strings.Contains(text(response), want) {
					t.Errorf("there is no %s in\n%s", want, text(response))
				}
			}
			for _, not := range c.nots {
				if strings.Contains(text(response), not) {
					t.Errorf("there is %s in\n%s", not, text(response))
				}
			}
			if again, _ := mustRender(t, files, r); again.Digest() != response.Digest() || len(response.Objects) == 0 {
				t.Errorf("another render gives something else, or nothing:\n%s", text(again))
			}
		})
	}
}

// TestReleasesRefused looks at what cannot be resolved: each is an error with object, field, file and line.
func TestReleasesRefused(t *testing.T) {
	const helmRepository = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: shop}\nspec: {url: \"https://user:secret@charts.example.com\"}\n"
	cases := map[string]struct{ app, want string }{
		"no source":          {helmRelease(chartInGit), "app/app.yaml:8: HelmRelease shop/web spec.chart.spec.sourceRef.name: GitRepository shop/config is not among the objects; put it into the build, or name its file under spec.build.releases.objects"},
		"other branch":       {helmRelease(chartInGit) + strings.Replace(gitRepository, "branch: main", "branch: next", 1), "the pipeline follows the branch main of the repository, and the branch next is asked for"},
		"no reference":       {helmRelease(chartInGit) + strings.Replace(gitRepository, ", ref: {branch: main}", "", 1), "the branch master is asked for"},
		"other repository":   {helmRelease(chartInGit) + strings.Replace(gitRepository, "team/config", "team/other", 1), "the repository https://git.example.com/team/other is none of the pipeline's sources"},
		"range of tags":      {helmRelease(chartInGit) + strings.Replace(gitRepository, "branch: main", "semver: 1.x", 1), "GitRepository shop/config spec.ref.semver: cannot be resolved in the tree"},
		"credentials":        {helmRelease("  chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}\n") + helmRepository, "HelmRepository shop/charts spec.url: must have no credentials"},
		"bucket":             {helmRelease("  chart: {spec: {chart: web, sourceRef: {kind: Bucket, name: charts}}}\n"), "spec.chart.spec.sourceRef.kind: a chart of a Bucket cannot be found in the tree"},
		"external artifact":  {helmRelease("  chartRef: {kind: ExternalArtifact, name: x}\n"), "app/app.yaml:8: HelmRelease shop/web spec.chartRef.kind: a chart of kind ExternalArtifact"},
		"no chart":           {helmRelease(""), "spec.chart: must be given, or spec.chartRef"},
		"values missing":     {helmRelease(chartInGit+"  valuesFrom:\n  - kind: ConfigMap\n    name: gone\n") + gitRepository, "app/app.yaml:11: HelmRelease shop/web spec.valuesFrom[0].name: ConfigMap shop/gone is not among the objects"},
		"key missing":        {helmRelease(chartInGit+"  valuesFrom: [{kind: ConfigMap, name: v}]\n") + gitRepository + valuesMap("v", "  other: x\n"), "ConfigMap shop/v has no key values.yaml"},
		"encrypted":          {helmRelease(chartInGit+"  valuesFrom: [{kind: Secret, name: s}]\n") + gitRepository + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\ndata: {values.yaml: ENC}\nsops: {mac: x}\n", "Secret shop/s is encrypted"},
		"other cluster":      {helmRelease(chartInGit+"  kubeConfig: {secretRef: {name: x}}\n") + gitRepository, "spec.kubeConfig: installs the release in another cluster"},
		"old version":        {strings.Replace(helmRelease(chartInGit), "io/v2", "io/v2beta1", 1), "apiVersion: version v2beta1 is not read; move it to helm.toolkit.fluxcd.io/v2"},
		"wrong type":         {helmRelease(chartInGit+"  releaseName: 3\n") + gitRepository, "cannot be read, and the API server would refuse it"},
		"bad patch":          {helmRelease(chartInGit+"  postRenderers: [{kustomize: {patches: [{target: {kind: Job}, patch: '[{\"op\": \"remove\", \"path\": \"/spec/x\"}]'}]}}]\n") + gitRepository, "spec.postRenderers: "},
		"random":             {helmRelease(chartInGit+"  values: {random: true}\n") + gitRepository, "charts/web/templates/random.yaml:3:20: "},
		"application set":    {"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec:\n  generators: [{git: {}}]\n", "app/app.yaml:5: ApplicationSet argocd/all spec.generators[0].git.repoURL: the repository \"\" is none of the pipeline's sources"},
		"plugin":             {argoApplication("    plugin: {name: x}\n"), "Application argocd/web spec.source.plugin: cannot be rendered"},
		"two kinds":          {argoApplication("    helm: {releaseName: a}\n    kustomize: {namePrefix: b}\n"), "spec.source: has kustomize and helm, and Argo CD accepts one of them only"},
		"gone":               {strings.Replace(argoApplication(""), "path: charts/web", "path: gone", 1), "app/app.yaml:10: Application argocd/web spec.source.path: gone is no directory in the tree"},
		"other URL":          {strings.Replace(argoApplication(""), "team/config", "team/other", 1), "the repository git@git.example.com:team/other.git is none of the pipeline's sources"},
		"other revision":     {strings.Replace(argoApplication(""), "HEAD", "v1.0.0", 1), "the pipeline follows the branch main of the repository, and the branch v1.0.0 is asked for"},
		"values file":        {argoApplication("    helm: {valueFiles: [gone.yaml]}\n"), "spec.source.helm.valueFiles[0]: reading gone.yaml"},
		"values outside":     {argoApplication("    helm: {valueFiles: [../../../x.yaml]}\n"), "leads out of the repository"},
		"values by URL":      {argoApplication("    helm: {valueFiles: ['https://example.com/x.yaml']}\n"), "a render uses no network"},
		"revision":           {argoApplication("    helm: {parameters: [{name: a, value: $ARGOCD_APP_REVISION}]}\n"), "is another one at each commit"},
		"hydrator":           {argoApplication("  sourceHydrator: {}\n"), "spec.sourceHydrator: is for Argo CD's own hydrator"},
		"variable":           {helmRelease(chartInGit+"  values:\n    replicas: ${REPLICAS:=2}\n") + gitRepository, "app/app.yaml:10: HelmRelease shop/web spec.values.replicas: the variable REPLICAS has no value here; build its Kustomization with spec.build.flux"},
		"variable of values": {helmRelease(chartInGit+"  valuesFrom: [{kind: ConfigMap, name: v}]\n") + gitRepository + valuesMap("v", "  values.yaml: \"a: ${A}\"\n"), "spec.valuesFrom[0].name: ConfigMap shop/v, at values.yaml: the variable A has no value here"},
		"two clusters": {argoApplication("") + "---\n" + strings.Replace(strings.Replace(argoApplication(""), "name: web", "name: two", 1), "https://kubernetes.default.svc", "https://other.example.com", 1),
			"Application argocd/two spec.destination: is the cluster https://other.example.com, and that of Application argocd/web is in-cluster"},
		"two errors": {argoApplication("    plugin: {}\n") + "---\n" + helmRelease(""), "spec.chart: must be given"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := withReleaseChart(map[string]string{
				"app/app.yaml": c.app, "sources/git.yaml": gitRepository,
				"charts/web/templates/random.yaml": "{{ if .Values.random }}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ randAlphaNum 5 }}}\n{{ end }}",
			})
			if got := releaseErrors(t, files, releasesRequest("app")); !strings.Contains(got, c.want) {
				t.Errorf("got %v\nwant %s", got, c.want)
			}
		})
	}
}

// TestReleasesOfKustomizations looks at releases that a build makes of several files, with the place of what is wrong.
func TestReleasesOfKustomizations(t *testing.T) {
	files := withReleaseChart(map[string]string{
		"app/kustomization.yaml":  "namespace: shop\nresources: [../base]\npatches: [{path: patch.yaml}]\nconfigMapGenerator: [{name: web-values, files: [values.yaml=v.yaml]}]\nconfigurations: [names.yaml]\n",
		"app/names.yaml":          "nameReference:\n- kind: ConfigMap\n  version: v1\n  fieldSpecs:\n  - {path: spec/valuesFrom/name, kind: HelmRelease}\n",
		"app/v.yaml":              "e: generated\n",
		"app/patch.yaml":          "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: web\nspec:\n  valuesFrom:\n  - kind: ConfigMap\n    name: web-values\n",
		"base/kustomization.yaml": "resources: [web.yaml]\n",
		"base/web.yaml":           strings.Replace(helmRelease(chartInGit), "\n  namespace: shop", "", 1) + gitRepository,
	})
	response, _ := mustRender(t, files, releasesRequest("app"))
	if !strings.Contains(text(response), `\"e\":\"generated\"`) {
		t.Error(text(response))
	}
	files["app/kustomization.yaml"] = "namespace: shop\nresources: [../base]\npatches: [{path: patch.yaml}]\n"
	if got := releaseErrors(t, files, releasesRequest("app")); !strings.Contains(got, "app/patch.yaml:8: HelmRelease shop/web spec.valuesFrom[0].name: ConfigMap shop/web-values is not among the objects") {
		t.Error(got)
	}
	files["base/web.yaml"] = strings.Replace(files["base/web.yaml"], "charts/web", "charts/gone", 1)
	files["app/kustomization.yaml"] = "namespace: shop\nresources: [../base]\n"
	if got := releaseErrors(t, files, releasesRequest("app")); !strings.Contains(got, "base/web.yaml:7: HelmRelease shop/web spec.chart.spec.chart: rendering the chart charts/gone") {
		t.Error(got)
	}
}

// TestReleasesWant asks for the charts that are missing, and renders with those that are there, two below each other.
func TestReleasesWant(t *testing.T) {
	apps := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: apps, namespace: argocd}\nspec:\n  destination: {namespace: argocd}\n  source: {repoURL: registry.example.com/charts, chart: apps, targetRevision: 1.x}\n"
	files := map[string]string{
		"app/a.yaml": apps,
		"app/b.yaml": helmRelease("  chartRef: {kind: OCIRepository, name: web}\n") +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: web, namespace: shop}\nspec: {url: \"oci://registry.example.com/charts/web\", interval: 1m, ref: {tag: 1.0.0_build, digest: \"sha256:x\"}}\n",
	}
	response, _ := mustRender(t, files, releasesRequest("app"))
	if len(response.Objects) > 0 || len(response.Wanted) != 2 {
		t.Fatalf("got %d objects, wanted %v", len(response.Objects), response.Wanted)
	}
	first, second := response.Wanted[0], response.Wanted[1]
	if first.Repository != "oci://registry.example.com/charts" || first.Name != "apps" || first.Range != "1.x" || first.Where != "app/a.yaml:6: Application argocd/apps spec.source.chart" || !first.Needed || first.Named {
		t.Errorf("got %+v", first)
	}
	if second.Repository != "oci://registry.example.com/charts" || second.Name != "web" || second.Range != "1.0.0+build" || second.Where != "app/b.yaml:8: HelmRelease shop/web spec.chartRef" {
		t.Errorf("got %+v", second)
	}
}

// TestReleasesWantDependencies asks for the dependencies of charts in the tree that are not packed, instead of refusing the chart.
func TestReleasesWantDependencies(t *testing.T) {
	files := withReleaseChart(map[string]string{"app/app.yaml": argoApplication("")})
	files["charts/web/Chart.yaml"] += "dependencies:\n- {name: db, version: 2.x, repository: \"https://charts.example.com\"}\n"
	response, _ := mustRender(t, files, releasesRequest("app"))
	if len(response.Wanted) != 1 || response.Wanted[0].Name != "db" || response.Wanted[0].Where != "charts/web/Chart.yaml:5" || !response.Wanted[0].Needed {
		t.Errorf("got %+v", response.Wanted)
	}
}
