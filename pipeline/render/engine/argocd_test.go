// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// applicationOf is an Application of a path with more of its source.
func applicationOf(name, path, more string) string {
	return "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\nspec:\n  destination: {name: in-cluster, namespace: shop}\n" +
		"  source:\n    repoURL: git@git.example.com/team/config\n    path: " + path + "\n" + more
}

// argoTree is a tree with directories of all kinds.
func argoTree(app string) map[string]string {
	configMap := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	return map[string]string{
		"app/app.yaml":                         app,
		"kust/kustomization.yaml":              "resources: [deploy.yaml]\nimages: [{name: other, newTag: \"1\"}]\npatches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/paused\", \"value\": true}]', target: {kind: Deployment}}]\n",
		"kust/deploy.yaml":                     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: example.com/web}]}}}\n",
		"part/kustomization.yaml":              "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cm.yaml]\n",
		"part/cm.yaml":                         configMap("of-component"),
		"plain/a.yaml":                         configMap("a") + "---\n" + configMap("a2"),
		"plain/b.json":                         `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}`,
		"plain/values.yaml":                    "replicas: 2\n",
		"plain/skipped.yaml":                   "# +argocd:skip-file-rendering\n" + configMap("skipped"),
		"plain/sub/c.yml":                      configMap("c"),
		"plain/sub/d.yaml":                     configMap("d"),
		"plain/notes.txt":                      configMap("notes"),
		"charted/kustomization.yaml":           "helmCharts: [{name: web, releaseName: web}]\n",
		"charted/charts/web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"charted/charts/web/templates/cm.yaml": configMap("{{ .Capabilities.KubeVersion.Version }}"),
		"broken/a.yaml":                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n",
		"jsonnet/a.jsonnet":                    "{}",
		"sourced/.argocd-source.yaml":          "path: elsewhere\nkustomize: {nameSuffix: -all}\n",
		"sourced/.argocd-source-own.yaml":      "kustomize: {namePrefix: own-}\n",
		"sourced/kustomization.yaml":           "resources: [cm.yaml]\n",
		"sourced/cm.yaml":                      configMap("sourced"),
		"envs/dev/web/config.yaml":             "team: a\nsize: {replicas: 2}\n",
		"envs/prod/web/config.yaml":            "- {team: b}\n- {team: c}\n",
		"envs/prod/api/config.yaml":            "{team: d}",
		"envs/prod/.hidden/config.yaml":        "{team: e}",
		"envs/prod/web/deploy/values.yaml":     "x: y\n",
	}
}

// TestApplicationsOfDirectories renders Applications of kustomizations and of plain directories. The expectations are what
// repository.GenerateManifests of Argo CD 3.6 makes of them, with the namespace of the destination.
func TestApplicationsOfDirectories(t *testing.T) {
	for name, c := range map[string]struct{ app, want, not string }{
		"kustomization":            {app: applicationOf("web", "kust", ""), want: "name: web\n  namespace: shop\n|paused: true|image: example.com/web\n"},
		"names":                    {app: applicationOf("web", "kust", "    kustomize: {namePrefix: a-, nameSuffix: -z, namespace: own}\n"), want: "name: a-web-z\n  namespace: own\n"},
		"images":                   {app: applicationOf("web", "kust", "    kustomize: {images: ['example.com/web=mirror/web:$ARGOCD_APP_NAME'], replicas: [{name: web, count: 3}]}\n"), want: "image: mirror/web:web\n|replicas: 3\n"},
		"labels":                   {app: applicationOf("web", "kust", "    kustomize: {commonLabels: {l: $ARGOCD_APP_NAME}, commonAnnotations: {note: $ARGOCD_APP_NAME}}\n"), want: "    note: $ARGOCD_APP_NAME\n  labels:|matchLabels:\n      a: b\n      l: web\n"},
		"labels alone":             {app: applicationOf("web", "kust", "    kustomize: {commonLabels: {l: x}, labelWithoutSelector: true, labelIncludeTemplates: true, commonAnnotations: {note: $ARGOCD_APP_NAME}, commonAnnotationsEnvsubst: true}\n"), want: "    note: web\n  labels:|labels:\n        a: b\n        l: x\n|matchLabels:\n      a: b\n  template"},
		"patches":                  {app: applicationOf("web", "kust", "    kustomize: {patches: [{target: {kind: Deployment}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": 7}]'}]}\n"), want: "replicas: 7\n|paused: true"},
		"components":               {app: applicationOf("web", "kust", "    kustomize: {components: [../part, ../gone], ignoreMissingComponents: true}\n"), want: "name: of-component|name: web"},
		"source files":             {app: applicationOf("own", "sourced", ""), want: "name: own-sourced-all"},
		"directory":                {app: applicationOf("web", "plain", ""), want: "metadata: {name: a, namespace: shop}|name: a2|\"name\": \"b\"", not: "name: c|skipped|replicas"},
		"recursive":                {app: applicationOf("web", "plain", "    directory: {recurse: true}\n"), want: "name: a,|name: c,|name: d,"},
		"included":                 {app: applicationOf("web", "plain", "    directory: {recurse: true, include: '{*.json,sub/*}', exclude: '*/d.*'}\n"), want: "\"name\": \"b\"|name: c,", not: "name: a|name: d"},
		"explicit":                 {app: applicationOf("web", "kust", "    directory: {include: deploy.yaml}\n"), want: "name: web, namespace: shop", not: "paused"},
		"chart in a kustomization": {app: applicationOf("web", "charted", ""), want: "name: v1.33.4"},
		"zero options":             {app: applicationOf("web", "kust", "    directory: {recurse: false}\n    helm: {valueFiles: []}\n"), want: "paused: true"},
		"app of apps":              {app: applicationOf("all", "app/nested", ""), want: "name: own-sourced-all"},
		"other sources":            {app: strings.Replace(applicationOf("web", "plain", "  - {repoURL: \"https://git.example.com/team/config\", path: kust}\n  - {repoURL: \"https://git.example.com/team/config\", ref: values}\n"), "  source:\n    repoURL: git@git.example.com/team/config\n    path", "  sources:\n  - repoURL: ssh://git@git.example.com/team/config\n    path", 1), want: "name: a,|paused: true"},
		"twice the same":           {app: strings.Replace(applicationOf("web", "plain", "  - {repoURL: \"https://git.example.com/team/config\", path: plain}\n"), "  source:\n    repoURL: git@git.example.com/team/config\n    path", "  sources:\n  - repoURL: git@git.example.com:team/config\n    path", 1), want: "name: a2,"},
	} {
		t.Run(name, func(t *testing.T) {
			files := argoTree(c.app)
			if name == "app of apps" {
				files["app/nested/own.yaml"] = applicationOf("own", "sourced", "")
			}
			r := releasesRequest("app")
			if name == "app of apps" {
				r.Path = "start"
				files["start/app.yaml"] = c.app
			}
			response, _ := mustRender(t, files, r)
			if response.Results.Worst() == result.Error {
				t.Fatal(response.Results)
			}
			for _, want := range strings.Split(c.want, "|") {
				if strings.Count(text(response), want) != 1 {
					t.Errorf("there is no %q, or more than one, in\n%s", want, text(response))
				}
			}
			for _, not := range strings.Split(c.not, "|") {
				if not != "" && strings.Contains(text(response), not) {
					t.Errorf("there is %q in\n%s", not, text(response))
				}
			}
		})
	}
}

// TestOneReleaseFails renders what can be rendered, and names what cannot with object, field, file and line.
func TestOneReleaseFails(t *testing.T) {
	app := applicationOf("good", "kust", "") + applicationOf("broken", "broken", "") + applicationOf("jsonnet", "jsonnet", "") +
		applicationOf("plugin", "plain", "    plugin: {name: x}\n") + applicationOf("gone", "kust", "    kustomize: {components: [../gone]}\n") +
		applicationOf("last", "plain", "")
	files := argoTree(app)
	response, _ := mustRender(t, files, releasesRequest("app"))
	for _, want := range []string{"paused: true", "metadata: {name: a, namespace: shop}"} {
		if !strings.Contains(text(response), want) {
			t.Errorf("there is no %s in\n%s", want, text(response))
		}
	}
	got := releaseErrors(t, files, releasesRequest("app"))
	for _, want := range []string{
		"app/app.yaml:18: Application argocd/broken spec.source.path: reading broken/a.yaml: ",
		"app/app.yaml:27: Application argocd/jsonnet spec.source.path: jsonnet/a.jsonnet is Jsonnet, which is not rendered; exclude it",
		"app/app.yaml:37: Application argocd/plugin spec.source.plugin: cannot be rendered, as plugins of Argo CD",
		"app/app.yaml:47: Application argocd/gone spec.source.kustomize.components[0]: ../gone is not in the tree; ignoreMissingComponents leaves it out",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if len(response.PartialUnits()) != 1 || strings.Count(got, "\n") != 3 {
		t.Error(got)
	}
}

// applicationSet is an ApplicationSet of generators, whose Applications are named by a template.
func applicationSet(generators, name, more string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec:\n" + more + "  generators:\n" + generators +
		"  template:\n    metadata: {name: '" + name + "'}\n    spec:\n      destination: {name: in-cluster, namespace: shop}\n      source: {repoURL: \"https://git.example.com/team/config\", path: kust}\n"
}

const (
	gitDirectories = "{git: {repoURL: \"https://git.example.com/team/config\", revision: HEAD, directories: [{path: envs/*/*}, {path: envs/prod/api, exclude: true}]}}\n"
	gitFiles       = "{git: {repoURL: \"https://git.example.com/team/config\", revision: HEAD, files: [{path: \"envs/**/config.yaml\"}]}}\n"
	clusterSecrets = "apiVersion: v1\nkind: Secret\nmetadata: {name: one, labels: {argocd.argoproj.io/secret-type: cluster, env: prod}}\nstringData: {name: Prod_1, server: \"https://one.example.com\"}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: two, labels: {argocd.argoproj.io/secret-type: cluster, env: dev}}\nstringData: {name: dev, server: \"https://two.example.com\"}\n"
)

// TestApplicationSets generates Applications. The expectations are those of the generators of Argo CD 3.6.
func TestApplicationSets(t *testing.T) {
	const goTemplate = "  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n"
	for name, c := range map[string]struct {
		set  string
		want string // the names and values of the label l
	}{
		"list":                {applicationSet("  - list: {elements: [{name: a}, {name: b, values: {x: v}}]}\n", "{{name}}-{{values.x}}", ""), "a-{{values.x}} b-v"},
		"list as text":        {applicationSet("  - list: {elementsYaml: '[{size: 1}, {size: 2.5}]'}\n", "n{{.size}}", goTemplate), "n1 n2.5"},
		"directories":         {applicationSet("  - "+gitDirectories, "{{path.basename}}-{{path[1]}}", ""), "web-dev web-prod"},
		"directories in Go":   {applicationSet("  - "+gitDirectories, "{{index .path.segments 1}}-{{.path.basenameNormalized}}", goTemplate), "dev-web prod-web"},
		"files":               {applicationSet("  - "+gitFiles, "{{team}}-{{path.basename}}-{{path.filenameNormalized}}-{{size.replicas}}", ""), "a-web-config.yaml-2 e-.hidden-config.yaml-{{size.replicas}} d-api-config.yaml-{{size.replicas}} b-web-config.yaml-{{size.replicas}} c-web-config.yaml-{{size.replicas}}"},
		"files in Go":         {applicationSet("  - "+gitFiles, "{{.team}}-{{.path.path | replace \"/\" \"-\" | normalize}}", goTemplate), "a-envs-dev-web e-envs-prod-.hidden d-envs-prod-api b-envs-prod-web c-envs-prod-web"},
		"prefix":              {applicationSet("  - "+strings.Replace(gitDirectories, "git: {", "git: {pathParamPrefix: dir, values: {x: '{{dir.path}}!'}, ", 1), "{{values.x}}", ""), "envs/dev/web! envs/prod/web!"},
		"selector":            {applicationSet("  - "+strings.Replace(gitFiles, "}}\n", "}, selector: {matchExpressions: [{key: team, operator: In, values: [a, d]}]}}\n", 1), "{{team}}", ""), "a d"},
		"matrix":              {applicationSet("  - matrix:\n      generators:\n      - list: {elements: [{env: dev}, {env: prod}]}\n      - git: {repoURL: \"https://git.example.com/team/config\", revision: HEAD, directories: [{path: 'envs/{{env}}/*'}]}\n", "{{env}}-{{path.basename}}", ""), "dev-web prod-api prod-web"},
		"merge":               {applicationSet("  - merge:\n      mergeKeys: [name]\n      generators:\n      - clusters: {values: {size: small}}\n      - list: {elements: [{name: dev, values: {size: large}}, {name: gone, values: {size: none}}]}\n", "{{nameNormalized}}-{{values.size}}", ""), "prod-1-small dev-large in-cluster-small"},
		"clusters":            {applicationSet("  - clusters: {selector: {matchLabels: {env: prod}}, values: {x: '{{.metadata.labels.env}}'}}\n", "{{.nameNormalized}}-{{.values.x}}", goTemplate), "prod-1-prod"},
		"clusters as a list":  {applicationSet("  - clusters: {flatList: true}\n", "{{range .clusters}}{{.name}}.{{end}}", goTemplate), "Prod_1.dev.in-cluster."},
		"slugs":               {applicationSet("  - list: {elements: [{name: 'A_long name.of-Things'}]}\n", "{{.name | slugify}}-{{slugify 8 true .name}}-{{slugify 8 false .name}}-{{normalize .name}}", goTemplate), "a-long-name-of-things-a-long-a-long-n-a-long-name.of-things"},
		"template of its own": {applicationSet("  - list: {elements: [{name: a}], template: {metadata: {name: 'own-{{name}}'}}}\n", "{{name}}", ""), "own-a"},
		"patch":               {applicationSet("  - list: {elements: [{name: a}, {name: b}]}\n", "{{.name}}", goTemplate+"  templatePatch: |\n    {{- if eq .name \"b\" }}\n    metadata: {name: patched}\n    {{- end }}\n"), "a patched"},
	} {
		t.Run(name, func(t *testing.T) {
			files := argoTree(c.set)
			files["clusters.yaml"] = clusterSecrets
			r := releasesRequest("app")
			r.Releases.Objects = []string{"clusters.yaml"}
			r.Releases.Keep = []v1alpha1.KeptObject{{Kind: "Application"}}
			response, _ := mustRender(t, files, r)
			var names []string
			for _, o := range response.Objects {
				names = append(names, o.Name)
			}
			got := strings.Join(names, " ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s\n%v", got, c.want, response.Results)
			}
		})
	}
}

// TestFinalizersOfGeneratedApplications: Argo CD adds its finalizer to those without any, unless their objects are to stay.
func TestFinalizersOfGeneratedApplications(t *testing.T) {
	const finalizer = "- resources-finalizer.argocd.argoproj.io"
	for more, want := range map[string]bool{"": true, "  syncPolicy: {preserveResourcesOnDeletion: true}\n": false} {
		r := releasesRequest("app")
		r.Releases.Keep = []v1alpha1.KeptObject{{Kind: "Application"}}
		response, _ := mustRender(t, argoTree(applicationSet("  - list: {elements: [{name: a}]}\n", "{{name}}", more)), r)
		if got := strings.Contains(text(response), finalizer); got != want {
			t.Errorf("%q: %v in\n%s", more, got, text(response))
		}
	}
}

// TestApplicationSetsAreRendered renders the Applications of ApplicationSets like others, with the place of the template.
func TestApplicationSetsAreRendered(t *testing.T) {
	set := strings.Replace(applicationSet("  - list: {elements: [{name: a, path: kust}, {name: b, path: gone}, {name: c, path: plain}]}\n", "{{name}}", ""), "path: kust}\n", "path: '{{path}}'}\n", 1)
	files := argoTree(set)
	response, _ := mustRender(t, files, releasesRequest("app"))
	if got := text(response); !strings.Contains(got, "paused: true") || !strings.Contains(got, "name: a2, namespace: shop") || strings.Contains(got, "argoproj.io") {
		t.Error(got)
	}
	if got := releaseErrors(t, files, releasesRequest("app")); !strings.Contains(got, "error: app/app.yaml:11: Application argocd/b spec.source.path: gone is no directory in the tree") {
		t.Error(got)
	}
	r := releasesRequest("app")
	r.Releases.Originals = v1alpha1.OriginalsSuspend
	response, _ = mustRender(t, files, r)
	if got := text(response); strings.Count(got, "argoproj.io/v1alpha1") != 1 || !strings.Contains(got, "argocd.argoproj.io/skip-reconcile: \"true\"") {
		t.Errorf("the Applications of a suspended ApplicationSet are in the cluster only:\n%s", got)
	}
}

// TestApplicationsOfOneCluster leaves out the Applications of other clusters than the pipeline's.
func TestApplicationsOfOneCluster(t *testing.T) {
	set := strings.Replace(applicationSet("  - clusters: {}\n", "{{nameNormalized}}", ""), "destination: {name: in-cluster, namespace: shop}", "destination: {server: '{{server}}', namespace: '{{nameNormalized}}'}", 1)
	files := argoTree(set)
	files["clusters.yaml"] = clusterSecrets
	r := releasesRequest("app")
	r.Releases.Objects, r.Releases.Destination = []string{"clusters.yaml"}, "dev"
	response, _ := mustRender(t, files, r)
	if len(response.Objects) != 1 || response.Objects[0].Namespace != "dev" || response.Results.Worst() == result.Error {
		t.Errorf("%s\n%v", text(response), response.Results)
	}
	r.Releases.Destination = ""
	if got := releaseErrors(t, files, r); strings.Count(got, "spec.destination: is the cluster") != 2 || !strings.Contains(got, "spec.build.releases.destination") {
		t.Error(got)
	}
}

// TestApplicationSetsRefused names the generator, what it needs, and the field.
func TestApplicationSetsRefused(t *testing.T) {
	for name, c := range map[string]struct{ set, want string }{
		"pull requests":  {applicationSet("  - list: {elements: []}\n  - pullRequest: {}\n", "a", ""), "app/app.yaml:7: ApplicationSet argocd/all spec.generators[1].pullRequest: asks the API of a Git host for pull requests, which is not in the tree"},
		"nested":         {applicationSet("  - matrix: {generators: [{list: {elements: [{}]}}, {scmProvider: {}}]}\n", "a", ""), "spec.generators[0].matrix.generators[1].scmProvider: asks the API"},
		"plugin":         {applicationSet("  - plugin: {}\n", "a", ""), "spec.generators[0].plugin: asks a service"},
		"decision":       {applicationSet("  - clusterDecisionResource: {}\n", "a", ""), "spec.generators[0].clusterDecisionResource: reads the status"},
		"no clusters":    {applicationSet("  - clusters: {}\n", "a", ""), "spec.generators[0].clusters: needs Argo CD's clusters, and none are among the objects"},
		"missing key":    {applicationSet("  - list: {elements: [{a: b}]}\n", "{{.gone}}", "  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n"), "spec.template.metadata.name: filling in the template \"{{.gone}}\": "},
		"option":         {applicationSet("  - list: {elements: [{a: b}]}\n", "{{.a}}", "  goTemplate: true\n  goTemplateOptions: [nonsense]\n"), "reading goTemplateOptions: "},
		"environment":    {applicationSet("  - list: {elements: [{a: b}]}\n", "{{env \"HOME\"}}", "  goTemplate: true\n"), "its result depends on the environment"},
		"same names":     {applicationSet("  - list: {elements: [{a: b}, {a: c}]}\n", "x", ""), "spec.template.metadata.name: must be another one for each Application, found \"x\""},
		"number":         {applicationSet("  - list: {elements: [{a: 1}]}\n", "x", ""), "spec.generators[0].list.elements[0]: a must be a text"},
		"merge keys":     {applicationSet("  - merge: {generators: [{list: {elements: [{a: b}, {a: b}]}}, {list: {elements: []}}], mergeKeys: [a]}\n", "x", ""), "spec.generators[0].merge.generators[0]: has two sets of parameters with {\"a\":\"b\"}"},
		"matrix of one":  {applicationSet("  - matrix: {generators: [{list: {elements: []}}]}\n", "x", ""), "spec.generators[0].matrix.generators: must be two, found 1"},
		"no generator":   {applicationSet("  - lists: {}\n", "x", ""), "spec.generators[0]: must have a generator"},
		"outside":        {applicationSet("  - git: {repoURL: \"https://git.example.com/team/config\", files: [{path: ../x}]}\n", "x", ""), "spec.generators[0].git.files[0].path: leads out of the repository"},
		"broken file":    {applicationSet("  - git: {repoURL: \"https://git.example.com/team/config\", files: [{path: broken/*}]}\n", "x", ""), "spec.generators[0].git.files: reading broken/a.yaml: "},
		"nested matrix":  {applicationSet("  - matrix:\n      generators:\n      - list: {elements: [{a: x}]}\n      - matrix: {generators: [{list: {elements: [{b: '{{.a}}1'}]}}, {list: {elements: [{c: '{{.b}}2'}]}}]}\n", "x", "  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n"), "spec.generators[0].matrix.generators[1].matrix.generators[1].list.elements[0].c: filling in the template"},
		"values of both": {applicationSet("  - merge: {mergeKeys: [name], generators: [{clusters: {values: {a: b}}}, {list: {elements: [{name: dev, values: {a: c}}]}}]}\n", "x", "  goTemplate: true\n"), "its parameters cannot be merged, by Argo CD neither"},
	} {
		t.Run(name, func(t *testing.T) {
			files := argoTree(c.set)
			r := releasesRequest("app")
			if name == "values of both" {
				files["clusters.yaml"] = clusterSecrets
				r.Releases.Objects = []string{"clusters.yaml"}
			}
			if got := releaseErrors(t, files, r); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
