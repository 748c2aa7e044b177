// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
)

// hostile are sources that must be refused, each with a reason that names the place.
var hostile = map[string]struct {
	files map[string]string
	want  []string
}{
	"link out of the tree": {map[string]string{"app/kustomization.yaml": "resources: [x.yaml]\n", "app/x.yaml": "->../../../../etc/passwd"},
		[]string{"app/x.yaml", "leads out of the source tree"}},
	"absolute link": {map[string]string{"app/kustomization.yaml": "resources: [x.yaml]\n", "app/x.yaml": "->/etc/passwd"},
		[]string{"leads out of the source tree"}},
	"kustomization is a link out": {map[string]string{"app/kustomization.yaml": "->../../kustomization.yaml", "app/x": "x"},
		[]string{"leads out of the source tree"}},
	"linked directory": {map[string]string{"app/kustomization.yaml": "resources: [base]\n", "app/base": "->../../.."},
		[]string{"leads out of the source tree"}},
	"dot dot": {map[string]string{"app/kustomization.yaml": "resources: [../../../../../etc/passwd]\n"},
		[]string{"etc/passwd"}},
	"file outside of its root": {map[string]string{"app/kustomization.yaml": "configMapGenerator:\n- {name: x, files: [../secret.txt]}\n", "secret.txt": "s3cr3t"},
		[]string{"secret.txt", "not in or below"}},
	"absolute path": {map[string]string{"app/kustomization.yaml": "resources:\n- a.yaml\n- /etc/passwd\n"},
		[]string{"app/kustomization.yaml:3", "absolute path"}},
	"generator that reads a secret": {map[string]string{"app/kustomization.yaml": "secretGenerator:\n- name: x\n  files:\n  - token=/var/run/secrets/kubernetes.io/serviceaccount/token\n"},
		[]string{"app/kustomization.yaml:4", "absolute path"}},
	"generator with an environment file": {map[string]string{"app/kustomization.yaml": "secretGenerator:\n- name: x\n  envs:\n  - /proc/self/environ\n"},
		[]string{"app/kustomization.yaml:4", "absolute path"}},
	"alias bomb": {map[string]string{"app/kustomization.yaml": "resources: [x.yaml]\n", "app/x.yaml": bomb()},
		[]string{"excessive aliasing"}},
	"alias bomb in a kustomization": {map[string]string{"app/kustomization.yaml": bomb()}, []string{"app/kustomization.yaml", "excessive aliasing"}},
	"alias bomb in a plain file":    {map[string]string{"app/x.yaml": bomb()}, []string{"app/x.yaml"}},
	"exec function": {map[string]string{"app/kustomization.yaml": "resources: [w.yaml]\ntransformers: [x.yaml]\n", "app/w.yaml": deployment,
		"app/x.yaml": "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: ./evil.sh}\"}\n"},
		[]string{"executable ./evil.sh is not Prerig's own function", "never run"}},
	"exec function in a base": {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [w.yaml]\ntransformers: [../fns]\n",
		"base/w.yaml": deployment, "fns/kustomization.yaml": "resources: [x.yaml]\n",
		"fns/x.yaml": "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: ./evil.sh}\"}\n"},
		[]string{"executable ./evil.sh is not Prerig's own function"}},
	"container function": {map[string]string{"app/kustomization.yaml": "resources: [w.yaml]\ntransformers:\n- |-\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n    annotations:\n      config.kubernetes.io/function: |\n        container: {image: \"evil.example.com/fn:1\"}\n", "app/w.yaml": deployment},
		[]string{"image evil.example.com/fn:1 is not Prerig's own function"}},
	"function as a generator": {map[string]string{"app/kustomization.yaml": "generators: [x.yaml]\n",
		"app/x.yaml": "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: \"exec: {path: ./evil.sh}\"}\n"},
		[]string{"external plugins disabled", "never run"}},
	"plugin without a function": {map[string]string{"app/kustomization.yaml": "transformers: [x.yaml]\n", "app/x.yaml": "apiVersion: someteam.example.com/v1\nkind: Evil\nmetadata: {name: x}\n"},
		[]string{"external plugins disabled"}},
	"unknown builtin": {map[string]string{"app/kustomization.yaml": "resources: [w.yaml]\ntransformers: [x.yaml]\n", "app/w.yaml": deployment, "app/x.yaml": "apiVersion: builtin\nkind: Evil\nmetadata: {name: x}\n"},
		[]string{"no builtin transformer of kind Evil"}},
	"function in a Kptfile": {map[string]string{"app/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: x}\npipeline:\n  mutators:\n  - {image: \"evil.example.com/fn:1\"}\n"},
		[]string{"app/Kptfile:6: pipeline.mutators[0]", "evil.example.com/fn:1 is not Prerig's own"}},
	"Helm chart": {map[string]string{"app/kustomization.yaml": "resources: []\nhelmCharts:\n- {name: x, repo: https://charts.example.com}\n"},
		[]string{"app/kustomization.yaml:3: helmCharts: x: kubeVersion must be given"}},
	"Helm chart of a repository": {map[string]string{"app/kustomization.yaml": "helmCharts:\n- {name: x, repo: https://charts.example.com, kubeVersion: 1.33.4}\n"},
		[]string{"app/kustomization.yaml:2: helmCharts: x", "of https://charts.example.com is not locked; run prerig lock"}},
	"Helm chart outside": {map[string]string{"app/kustomization.yaml": "helmGlobals: {chartHome: ../../..}\nhelmCharts:\n- {name: etc, kubeVersion: 1.33.4}\n"},
		[]string{"app/kustomization.yaml:3: helmCharts: etc: there is no chart at"}},
	"Helm values outside": {map[string]string{"app/kustomization.yaml": "helmCharts:\n- {name: x, kubeVersion: 1.33.4, valuesFile: /etc/passwd}\n", "app/charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"},
		[]string{"app/kustomization.yaml:2: helmCharts: x: "}},
	"Helm generator": {map[string]string{"app/kustomization.yaml": "generators: [x.yaml]\n", "app/x.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: x\nrepo: https://charts.example.com\n"},
		[]string{"elm"}},
	"remote base": {map[string]string{"app/kustomization.yaml": "resources:\n- x.yaml\n- https://user:s3cr3t@git.example.com/org/repo//path?ref=main\n"},
		[]string{"app/kustomization.yaml:3", "is remote"}},
	"remote base on GitHub": {map[string]string{"app/kustomization.yaml": "resources: [github.com/org/repo]\n"}, []string{"app/kustomization.yaml:1", "is remote"}},
	"remote base over ssh":  {map[string]string{"app/kustomization.yaml": "bases: [\"git@git.example.com:org/repo\"]\n"}, []string{"is remote"}},
	"remote component":      {map[string]string{"app/kustomization.yaml": "components: [\"ssh://git.example.com/org/repo\"]\n"}, []string{"is remote"}},
	"remote base in a base": {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources:\n- https://git.example.com/x.yaml\n"},
		[]string{"base/kustomization.yaml:2", "is remote"}},
	"remote patch":       {map[string]string{"app/kustomization.yaml": "patches:\n- path: https://git.example.com/x.yaml\n"}, []string{"app/kustomization.yaml:2", "is remote"}},
	"remote file":        {map[string]string{"app/kustomization.yaml": "configMapGenerator:\n- {name: x, files: [\"k=HTTPS://git.example.com/x\"]}\n"}, []string{"app/kustomization.yaml:2", "is remote"}},
	"remote schema":      {map[string]string{"app/kustomization.yaml": "openapi: {path: \"https://git.example.com/x\"}\n"}, []string{"is remote"}},
	"remote crds":        {map[string]string{"app/kustomization.yaml": "crds: [\"https://git.example.com/x\"]\n"}, []string{"is remote"}},
	"local repository":   {map[string]string{"app/kustomization.yaml": "resources: [\"file:///etc\"]\n"}, []string{"is remote"}},
	"cycle":              {map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [../app]\n"}, []string{"cycle"}},
	"nothing there":      {map[string]string{"other/x": "x"}, []string{"app"}},
	"not an object":      {map[string]string{"app/x.yaml": "hello: world\n"}, []string{"app/x.yaml", "apiVersion and kind"}},
	"policy with a typo": {map[string]string{"app/kustomization.yaml": "resources: [w.yaml]\ntransformers: [p.yaml]\n", "app/w.yaml": deployment, "app/p.yaml": strings.Replace(istio, "istio: {", "istoi: {", 1)}, []string{"istoi"}},
}

// bomb is a document that would have 10^9 elements.
func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestHostileSources(t *testing.T) {
	t.Setenv("PRERIG_SECRET", "s3cr3t-of-the-daemon")
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			response, _, err := renderFiles(t, tc.files, request("app"))
			if err == nil {
				t.Fatalf("it was rendered: %s", text(response))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), ".prerig-render") || len(err.Error()) > 4000 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadLimits(t *testing.T) {
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("app/f%d.yaml", i)] = strings.Replace(configMap, "NAME", fmt.Sprint(i), 1)
	}
	large := map[string]string{"app/kustomization.yaml": "resources: [x.yaml]\n", "app/x.yaml": strings.Repeat("# filler\n", 10_000)}
	copied := map[string]string{"app/big.txt": strings.Repeat("filler ", 10_000), "app/kustomization.yaml": "configMapGenerator:\n"}
	for i := range 30 {
		copied["app/kustomization.yaml"] += fmt.Sprintf("- {name: g%d, files: [big.txt]}\n", i)
	}
	for want, tc := range map[string]struct {
		files map[string]string
		set   func(*render.Limits)
	}{
		"each as often as it is":   {copied, func(l *render.Limits) { l.Output = 500_000 }},
		"number of files in the":   {many, func(l *render.Limits) { l.Read.Entries = 200 }},
		"number of files that the": {many, func(l *render.Limits) { l.Read.Files = 200 }},
		"sum of the bytes":         {many, func(l *render.Limits) { l.Read.TotalBytes = 2000 }},
		"size of app/x.yaml in":    {large, func(l *render.Limits) { l.Read.FileBytes = 5000 }},
		"size of the result in":    {many, func(l *render.Limits) { l.Output = 5000 }},
	} {
		r := request("app")
		tc.set(&r.Limits)
		_, _, err := renderFiles(t, tc.files, r)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "limit") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cNAME}\n"
