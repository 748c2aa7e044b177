// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"
)

const valid = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop, namespace: apps, finalizers: [x]}
spec:
  source:
    git: {url: https://git.example.com/config.git, ref: {branch: main}, secretRef: {name: git}}
  build: {path: apps/shop}
  policies:
  - path: policies/mesh.yaml
  publish:
  - git: {branch: rendered}
  - oci: {url: oci://registry.example.com/rendered/shop}
`

func TestParse(t *testing.T) {
	pipeline, err := Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	git := pipeline.Spec.Publish[0].Git
	if pipeline.Key() != "apps/shop" || git.URL != pipeline.Spec.Source.Git.URL || git.Path != "shop" ||
		git.SecretRef.Name != "git" || git.Layout != LayoutObjects || pipeline.Spec.Interval.Duration != 10*time.Minute ||
		*pipeline.Spec.Gates.MaxDeleted != 50 || pipeline.Spec.Publish[1].OCI.Tags[0] != "latest" ||
		pipeline.Spec.Build.Type != BuildAuto || pipeline.Spec.DeletionPolicy != DeletionOrphan {
		t.Errorf("defaults: %+v", pipeline.Spec)
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"unknown key":                       {"  build: {path: apps/shop}", "  biuld: {path: apps/shop}", "line 7: spec.biuld: unknown field, did you mean build?"},
		"unknown nested key":                {"ref: {branch: main}", "ref: {brunch: main}", "line 6: spec.source.git.ref.brunch: unknown field, did you mean branch?"},
		"key twice":                         {"  build: {path: apps/shop}", "  build: {path: a}\n  build: {path: b}", "line 8: spec.build: is given twice, first in line 7"},
		"wrong kind":                        {"kind: RenderPipeline", "kind: Pipeline", "expected prerig.dev/v1alpha1 RenderPipeline"},
		"list expected":                     {"  policies:\n  - path: policies/mesh.yaml", "  policies: mesh", `line 8: spec.policies: must be a list, is the text "mesh"`},
		"time without a unit":               {"  build: {path: apps/shop}", "  build: {path: apps/shop}\n  interval: 10", "line 8: spec.interval: must be a time with its unit, such as 5m, is 10"},
		"no time":                           {"  build: {path: apps/shop}", "  build: {path: apps/shop}\n  interval: [soon]", "line 8: spec.interval: must be a time with its unit, such as 5m, is a list"},
		"text for a bool":                   {"  build: {path: apps/shop}", "  build: {path: apps/shop}\n  suspend: maybe", `line 8: spec.suspend: must be true or false, is the text "maybe"`},
		"fraction":                          {"  build: {path: apps/shop}", "  build: {path: apps/shop}\n  gates: {maxDeleted: 0.5}", "line 8: spec.gates.maxDeleted: must be a whole number, is 0.5"},
		"path leaves tree":                  {"path: apps/shop", "path: ../shop", `line 7: spec.build.path: must not leave the tree`},
		"absolute path":                     {"path: apps/shop", "path: /etc", `spec.build.path: must be relative`},
		"credentials in URL":                {"https://git.example.com", "https://u:p@git.example.com", "must not contain credentials"},
		"space in URL":                      {"https://git.example.com/config.git", "https://git.example.com/my config.git", "must not contain a space; remove it, or write it as %20"},
		"label with a space":                {"metadata: {", "metadata: {labels: {cluster: eu west}, ", `metadata.labels.cluster: cluster="eu west" is not a label`},
		"file URL":                          {"https://git.example.com/config.git", "file:///etc", "must start with https://"},
		"branch missing":                    {"git: {branch: rendered}", "git: {path: x}", "line 11: spec.publish[0].git.branch: must be given"},
		"own branch":                        {"git: {branch: rendered}", "git: {branch: main}", "is the source's own branch"},
		"own branch, other URL":             {"git: {branch: rendered}", "git: {url: \"https://git.example.com/config\", branch: main}", "is the source's own branch"},
		"branch twice":                      {"git: {branch: rendered}", "git: {branch: rendered, path: a}\n  - git: {branch: rendered, path: b}", "line 12: spec.publish[1].git.branch: is the branch of spec.publish[0] already"},
		"branch twice, other URL":           {"git: {branch: rendered}", "git: {branch: rendered, path: a}\n  - git: {url: \"https://git.example.com/config/\", branch: rendered, path: b}", "is the branch of spec.publish[0] already"},
		"proposed branch twice":             {"git: {branch: rendered}", "git: {branch: rendered, propose: {}}\n  - git: {branch: rendered-next, path: b}", "is the branch of spec.publish[0] already"},
		"tag twice":                         {"  - oci: {url: oci://registry.example.com/rendered/shop}", "  - oci: {url: oci://registry.example.com/rendered/shop}\n  - oci: {url: oci://registry.example.com/rendered/shop, layout: Single}", "spec.publish[2].oci.tags[0]: is a tag of spec.publish[1] already"},
		"two targets":                       {"- git: {branch: rendered}\n  - oci", "- git: {branch: rendered}\n    oci", "exactly one of externalArtifact, git, oci"},
		"bad branch":                        {"branch: rendered", "branch: a..b", "not a valid name"},
		"below .prerig":                     {"branch: rendered", "branch: rendered, path: .prerig/x", "must not be below .prerig"},
		"anchor":                            {"metadata: {name: shop, namespace: apps, finalizers: [x]}", "metadata: &m {name: shop}", ""},
		"alias":                             {"  build: {path: apps/shop}", "  build: &b {path: apps/shop}\n  gates: *b", "line 8: spec.gates: is an alias"},
		"deletion policy":                   {"  publish:\n", "  deletionPolicy: Prune\n  publish:\n", "line 10: spec.deletionPolicy: must be one of"},
		"remote base without a URL":         {"{path: apps/shop}", "{path: apps/shop, remoteBases: [{}]}", "line 7: spec.build.remoteBases[0].url: must start with"},
		"remote base with a password":       {"{path: apps/shop}", "{path: apps/shop, remoteBases: [{url: \"https://u:p@git.example.com/a/b\"}]}", "must not contain credentials"},
		"remote base of any host":           {"{path: apps/shop}", "{path: apps/shop, remoteBases: [{url: \"https://*/org/*\"}]}", "spec.build.remoteBases[0].url: cannot be allowed"},
		"remote base of a file":             {"{path: apps/shop}", "{path: apps/shop, remoteBases: [{url: \"file:///srv/repo\"}]}", "must start with https://"},
		"remote base twice":                 {"{path: apps/shop}", "{path: apps/shop, remoteBases: [{url: \"https://h/a\"}, {url: \"https://h/a\"}]}", "remoteBases[1].url: is given twice"},
		"no load restrictor with a base":    {"{path: apps/shop}", "{path: apps/shop, loadRestrictor: LoadRestrictionsNone, remoteBases: [{url: \"https://h/a\"}]}", "spec.build.loadRestrictor: None cannot be combined"},
		"load restrictor of plain files":    {"{path: apps/shop}", "{path: apps/shop, type: Plain, loadRestrictor: LoadRestrictionsNone}", "spec.build.loadRestrictor: is for kustomizations"},
		"another load restrictor":           {"{path: apps/shop}", "{path: apps/shop, loadRestrictor: None}", "spec.build.loadRestrictor: must be one of"},
		"remote base of plain files":        {"{path: apps/shop}", "{path: apps/shop, type: Plain, remoteBases: [{url: \"https://h/a\"}]}", "is for kustomizations"},
		"helm with another type":            {"{path: apps/shop}", "{path: apps/shop, type: Plain, helm: {chart: c, namespace: a, kubeVersion: 1.33.4}}", "spec.build.helm: is for type Helm, and type is Plain"},
		"flux with another type":            {"{path: apps/shop}", "{type: Plain, flux: {path: clusters/a}}", "spec.build.flux: is for type Flux, and type is Plain"},
		"flux without a cluster":            {"{path: apps/shop}", "{type: Flux}", "spec.build.flux: must be given with type Flux"},
		"flux with a path beside it":        {"{path: apps/shop}", "{path: apps/shop, flux: {path: clusters/a}}", "spec.build.path: must be omitted with type Flux"},
		"flux without a path":               {"{path: apps/shop}", "{flux: {}}", "spec.build.flux.path: must be given"},
		"flux with a source of no name":     {"{path: apps/shop}", "{flux: {path: clusters/a, source: flux-system}}", "spec.build.flux.source: must be NAMESPACE/NAME"},
		"helm without a release":            {"{path: apps/shop}", "{type: Helm}", "line 7: spec.build.helm: must be given with type Helm"},
		"helm with a path":                  {"{path: apps/shop}", "{path: apps/shop, helm: {chart: c, namespace: a, kubeVersion: 1.33.4}}", "spec.build.path: must be omitted with type Helm"},
		"helm without a chart":              {"{path: apps/shop}", "{helm: {namespace: a, kubeVersion: 1.33.4}}", "spec.build.helm.chart: must be given"},
		"chart outside":                     {"{path: apps/shop}", "{helm: {chart: ../c, namespace: a, kubeVersion: 1.33.4}}", "spec.build.helm.chart: must not leave the tree"},
		"values outside":                    {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, valuesFiles: [/etc/passwd]}}", "spec.build.helm.valuesFiles[0]: must be relative"},
		"helm without a namespace":          {"{path: apps/shop}", "{helm: {chart: c, kubeVersion: 1.33.4}}", "spec.build.helm.namespace: must be the name of a namespace"},
		"helm without a version":            {"{path: apps/shop}", "{helm: {chart: c, namespace: a}}", "spec.build.helm.kubeVersion: must be a version of Kubernetes from 1.16 on, such as 1.33.4"},
		"helm with an old version":          {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.15.0}}", "spec.build.helm.kubeVersion: must be a version of Kubernetes from 1.16 on"},
		"helm's release name":               {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, releaseName: A}}", "spec.build.helm.releaseName: must be at most 53"},
		"helm's hooks":                      {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, hooks: Run}}", "spec.build.helm.hooks: must be one of Keep, Drop, Refuse"},
		"helm's impure functions":           {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, impure: Allow}}", "spec.build.helm.impure: must be one of Refuse, Empty"},
		"captured without a file":           {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, lookup: Captured}}", "spec.build.helm.captured: must be given with lookup: Captured"},
		"a captured file without lookup":    {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, captured: a.yaml}}", "spec.build.helm.captured: is for lookup: Captured, and lookup is Refuse"},
		"a captured file outside":           {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, lookup: Captured, captured: ../a.yaml}}", "spec.build.helm.captured: must not leave the tree"},
		"a captured file of another format": {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, lookup: Captured, captured: a.txt}}", "must be a file of YAML or JSON"},
		"captured functions":                {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, impure: Captured}}", "spec.build.helm.impure: must be one of Refuse, Empty"},
		"derived functions":                 {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, impure: Derived}}", "spec.build.helm.impure: must be one of Refuse, Empty"},
		"functions with a seed":             {"{path: apps/shop}", "{helm: {chart: c, namespace: a, kubeVersion: 1.33.4, derived: {secretRef: {name: s}}}}", "unknown field"},
		"releases that look into no file":   {"{path: apps/shop}", "{path: apps/shop, releases: {kubeVersion: 1.33.4, lookup: Captured}}", "spec.build.releases.captured: must be given with lookup: Captured"},
		"helm with remote bases":            {"{path: apps/shop}", "{remoteBases: [{url: \"https://h/a\"}], helm: {chart: c, namespace: a, kubeVersion: 1.33.4}}", "spec.build.remoteBases: is for kustomizations, and type is Helm"},
		"long name in a path":               {"branch: rendered", "branch: rendered, path: " + strings.Repeat("d", 256), "line 11: spec.publish[0].git.path: must not be longer"},
		"long path":                         {"branch: rendered", "branch: rendered, path: " + strings.Repeat("d/", 600) + "x", "must not be longer than 1024 bytes"},
		"tag in URL":                        {"rendered/shop}", "rendered/shop:v1}", "must have no tag"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, tc.old, tc.new, 1)
			if text == valid {
				t.Fatal("the case changes nothing")
			}
			_, err := Parse([]byte(text))
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = ParseAll(data) })
}

func TestParseTakesTwoPlacesOfOneRepository(t *testing.T) {
	for _, second := range []string{"git: {branch: other}", "git: {branch: rendered, propose: {}}", "git: {url: \"https://git.example.com/other.git\", branch: rendered}"} {
		if _, err := Parse([]byte(strings.Replace(valid, "  - oci", "  - "+second+"\n  - oci", 1))); err != nil {
			t.Errorf("%s: %v", second, err)
		}
	}
}

// TestHelmDefaults checks what a release has that says only what it must.
func TestHelmDefaults(t *testing.T) {
	pipeline, err := Parse([]byte(strings.Replace(valid, "{path: apps/shop}", "{helm: {chart: charts/web, namespace: shop, kubeVersion: v1.33.4+k3s1, values: {port: 80, gone: null}}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	helm := pipeline.Spec.Build.Helm
	if pipeline.Spec.Build.Type != BuildHelm || helm.ReleaseName != "shop" || helm.Hooks != HooksKeep || helm.Lookup != ImpureRefuse ||
		helm.Impure != ImpureRefuse || !*helm.IncludeCRDs {
		t.Errorf("got %s %+v", pipeline.Spec.Build.Type, helm)
	}
	// A null takes a default of the chart away.
	if gone, given := helm.Values["gone"]; !given || gone != nil {
		t.Errorf("got %v", helm.Values)
	}
	if minor, ok := helm.KubeMinor(); minor != 33 || !ok {
		t.Error(minor, ok)
	}
}

// TestFieldsBesideTheSpecAreNamed has fields of spec, and of what is in it, at the top of a pipeline: an error of a person must not
// end a daemon that reads the file.
func TestFieldsBesideTheSpecAreNamed(t *testing.T) {
	for _, key := range []string{"source", "build", "policies", "publish", "interval", "gates", "suspend"} {
		_, err := Parse([]byte(valid + "\n" + key + ": x\n"))
		if err == nil || !strings.Contains(err.Error(), key+": unknown field, did you mean spec."+key+"?") {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
