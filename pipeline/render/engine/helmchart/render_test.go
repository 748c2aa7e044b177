// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

const chartYAML = "apiVersion: v2\nname: shop\nversion: 1.2.3\n"

// sourceOf makes a source of files; a value that starts with "->" is a symbolic link.
func sourceOf(t testing.TB, files map[string]string) *tree.View {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	for name, content := range files {
		mode := tree.File
		if target, ok := strings.CutPrefix(content, "->"); ok {
			mode, content = tree.Link, target
		}
		if err := b.Add(name, mode, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return tree.NewView(b.Build(), tree.Limits{})
}

// chartWith is a chart in apps/shop of templates and other files.
func chartWith(files map[string]string) map[string]string {
	out := map[string]string{"apps/shop/Chart.yaml": chartYAML}
	for name, content := range files {
		out["apps/shop/"+name] = content
	}
	return out
}

func releaseOf(chart string) *v1alpha1.Helm {
	return &v1alpha1.Helm{
		Chart: chart, ReleaseName: "web", Namespace: "shop", KubeVersion: "1.33.4",
		Hooks: v1alpha1.HooksKeep, Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse,
	}
}

// printed is what a render gives, as helm template prints it.
func printed(manifests []Manifest) string {
	var out strings.Builder
	for _, manifest := range manifests {
		fmt.Fprintf(&out, "# %s\n%s\n", manifest.Template, strings.TrimSpace(manifest.YAML))
	}
	return out.String()
}

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {value: " + value + "}\n"
}

// TestRelease renders a chart with everything that a release says, with hooks, tests and custom resource definitions.
func TestRelease(t *testing.T) {
	files := chartWith(map[string]string{
		"values.yaml":              "a: chart\nb: chart\nc: chart\nd: chart\n",
		"templates/a.yaml":         configMap("a", `"{{ .Values.a }} {{ .Values.b }} {{ .Values.c }} {{ .Values.d }}"`),
		"templates/b.yaml":         configMap("b", `"{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.IsInstall }} {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.HelmVersion.Version }}{{ .Capabilities.HelmVersion.GoVersion }}"`),
		"templates/c.yaml":         configMap("c", `"{{ .Capabilities.APIVersions.Has "policy/v1" }} {{ .Capabilities.APIVersions.Has "policy/v1beta1" }} {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}"`),
		"templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
		"templates/hook.yaml":      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n",
		"templates/test.yaml":      "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
		"templates/NOTES.txt":      "{{ now }}",
		"templates/.hidden.yaml":   "{{ fail \"it is left out\" }}",
		"templates/old.yaml":       "{{ fail \"it is ignored\" }}",
		".helmignore":              "old.yaml\n",
		"crds/x.yaml":              "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n",
	})
	files["one.yaml"], files["two.yaml"] = "b: one\nc: one\nd: one\n", "c: two\nd: two\n"
	release := releaseOf("apps/shop")
	release.APIVersions = []string{"monitoring.coreos.com/v1"}
	release.ValuesFiles = []string{"one.yaml", "two.yaml"}
	release.Values = map[string]any{"d": "inline"}
	manifests, err := Render(context.Background(), sourceOf(t, files), release, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "# shop/crds/x.yaml\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n" +
		"# shop/templates/namespace.yaml\napiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n" +
		"# shop/templates/a.yaml\n" + configMap("a", `"chart one two inline"`) +
		"# shop/templates/b.yaml\n" + configMap("b", `"web shop true v1.33.4 33 v4.3.1"`) +
		"# shop/templates/c.yaml\n" + configMap("c", `"true false true"`) +
		"# shop/templates/hook.yaml\napiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n"
	if got := printed(manifests); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	without := false
	release.IncludeCRDs, release.Hooks = &without, v1alpha1.HooksDrop
	manifests, err = Render(context.Background(), sourceOf(t, files), release, Options{})
	if got := printed(manifests); err != nil || strings.Contains(got, "Job") || strings.Contains(got, "crds/") || len(manifests) != 4 {
		t.Errorf("%v, got\n%s", err, got)
	}
	release.Hooks = v1alpha1.HooksRefuse
	if _, err = Render(context.Background(), sourceOf(t, files), release, Options{}); err == nil || !strings.Contains(err.Error(), "apps/shop/templates/hook.yaml: Job h is a hook ([pre-install]), and helm.hooks is Refuse") {
		t.Error(err)
	}
}

// TestFilesThatAreRead checks that what the chart is made of is in the record, also what was looked for and is not there,
// and that nothing else is.
func TestFilesThatAreRead(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": configMap("a", "x")})
	files["values.yaml"], files["apps/other.yaml"] = "a: b\n", "x"
	release := releaseOf("apps/shop")
	release.ValuesFiles = []string{"values.yaml"}
	view := sourceOf(t, files)
	if _, err := Render(context.Background(), view, release, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content  string
		affected bool
	}{
		"apps/other.yaml": {"y", false}, "apps/new.yaml": {"y", false}, "apps/shop/templates/a.yaml": {"y", true}, "apps/shop/README.md": {"y", true},
		"apps/shop/.helmignore": {"*.md", true}, "values.yaml": {"y", true}, "apps/shop/templates/new.yaml": {"y", true},
	} {
		changed := map[string]string{name: test.content}
		for other, content := range files {
			if other != name {
				changed[other] = content
			}
		}
		b := tree.NewBuilder(tree.Limits{})
		for other, content := range changed {
			if err := b.Add(other, tree.File, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if reason, affected := view.Record().Affected(b.Build()); affected != test.affected {
			t.Errorf("%s: affected is %t (%s)", name, affected, reason)
		}
	}
}

// TestImpureFunctions checks that calls that have an effect are refused at their line, and others are not.
func TestImpureFunctions(t *testing.T) {
	for name, call := range map[string]string{
		"now": `now | date "2006"`, "ago": `ago (now)`, "date": `date "2006" "x"`, "dateInZone": `dateInZone "2006" "x" "UTC"`, "htmlDate": `htmlDate "x"`, "durationRound": `durationRound (toDate "2006" "2001")`,
		"randAlphaNum": `randAlphaNum 5`, "randAlpha": `randAlpha 5`, "randAscii": `randAscii 5`, "randNumeric": `randNumeric 5`,
		"randBytes": `randBytes 5 | b64enc`, "randInt": `randInt 1 10`, "shuffle": `shuffle "abc"`, "uuidv4": `uuidv4`, "genPrivateKey": `genPrivateKey "rsa" | sha256sum`,
		"genCA": `(genCA "a" 10).Cert`, "genSelfSignedCert": `(genSelfSignedCert "a" nil nil 10).Key`, "genSignedCert": `(genSignedCert "a" nil nil 10 (genCA "b" 10)).Cert`,
		"htpasswd": `htpasswd "a" "b"`, "bcrypt": `bcrypt "a"`, "encryptAES": `encryptAES "a" "b"`, "getHostByName": `getHostByName "localhost"`,
	} {
		t.Run(name, func(t *testing.T) {
			files := chartWith(map[string]string{
				"templates/a.yaml":    configMap("a", `{{ default (`+call+`) .Values.password | quote }}`),
				"templates/_help.tpl": "{{ define \"value\" }}\n{{- " + call + " }}{{ end }}",
				"templates/b.yaml":    "{{ if .Values.used }}\n" + configMap("b", `{{ include "value" . | quote }}`) + "{{ end }}",
			})
			release := releaseOf("apps/shop")
			release.Values = map[string]any{"password": "given"}
			if manifests, err := Render(context.Background(), sourceOf(t, files), release, Options{}); err != nil || !strings.Contains(printed(manifests), `value: "given"`) {
				t.Errorf("a call without effect: %v, %s", err, printed(manifests))
			}
			release.Values["used"] = true
			_, err := Render(context.Background(), sourceOf(t, files), release, Options{})
			if err == nil || !strings.Contains(err.Error(), "apps/shop/templates/_help.tpl:2:") || !strings.Contains(err.Error(), "apps/shop/templates/b.yaml:5:") ||
				!strings.Contains(err.Error(), "so that each render would have another result") {
				t.Errorf("a call with effect: %v", err)
			}
			release.Impure = v1alpha1.ImpureEmpty
			manifests, err := Render(context.Background(), sourceOf(t, files), release, Options{})
			again, errAgain := Render(context.Background(), sourceOf(t, files), release, Options{})
			if err != nil || errAgain != nil || printed(manifests) != printed(again) {
				t.Errorf("with Empty: %v, %v, %s", err, errAgain, printed(manifests))
			}
		})
	}
}

// TestErrorsOfCharts checks messages about charts and releases that cannot be rendered.
func TestErrorsOfCharts(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		change func(*v1alpha1.Helm)
		want   string
	}{
		"lookup":                   {files: map[string]string{"templates/a.yaml": "\n{{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}"}, want: "apps/shop/templates/a.yaml:2:3: executing \"apps/shop/templates/a.yaml\" at <lookup \"v1\" \"Secret\" \"a\" \"b\">: error calling lookup: lookup asks a cluster, and a render has none; set helm.lookup to Captured to have it find the objects of a file, or to Empty"},
		"env":                      {files: map[string]string{"templates/a.yaml": `{{ env "HOME" }}`}, want: `function "env" not defined`},
		"expandenv":                {files: map[string]string{"templates/a.yaml": `{{ expandenv "$HOME" }}`}, want: `function "expandenv" not defined`},
		"a mistake after now":      {files: map[string]string{"templates/a.yaml": `{{ $x := now }}{{ required "set the port" .Values.port }}`}, want: "rendering the chart apps/shop: execution error at (apps/shop/templates/a.yaml:1:18): set the port"},
		"missing dependency":       {files: map[string]string{"Chart.yaml": chartYAML + "dependencies: [{name: redis, version: 1.x, repository: https://charts.example.com}]\n"}, want: "its dependency redis 1.x (https://charts.example.com) is neither in its charts directory nor locked; run prerig lock, or helm dependency build, and commit what it writes"},
		"another Kubernetes":       {files: map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '>=1.34.0'\n"}, want: "the chart is for Kubernetes >=1.34.0, and helm.kubeVersion is 1.33.4"},
		"a library":                {files: map[string]string{"Chart.yaml": chartYAML + "type: library\n"}, want: "a chart of type library cannot be rendered by itself"},
		"schema":                   {files: map[string]string{"values.schema.json": `{"properties": {"port": {"type": "integer"}}}`, "values.yaml": "port: x\n"}, want: "at '/port': got string, want integer"},
		"schema elsewhere":         {files: map[string]string{"values.schema.json": `{"properties": {"port": {"$ref": "https://example.com/port.json"}}}`}, want: "refers to https://example.com/port.json, and a render uses no network; set helm.skipSchemaValidation to do without"},
		"schema at an address":     {files: map[string]string{"values.schema.json": `{"$id": "http://example.com/a/b.json", "properties": {"port": {"$ref": "c.json"}}}`}, want: "refers to http://example.com/a/c.json, and a render uses no network"},
		"schema of a schema":       {files: map[string]string{"values.schema.json": `{"$schema": "http://example.com/meta"}`}, want: "refers to http://example.com/meta, and"},
		"schema in a file":         {files: map[string]string{"values.schema.json": `{"$ref": "file:/etc/hosts.json"}`}, want: "refers to the file /etc/hosts.json, and a render reads none of the machine"},
		"schema at a path":         {files: map[string]string{"values.schema.json": `{"properties": {"port": {"$ref": "/etc/hosts.json"}}}`}, want: "refers to the file /etc/hosts.json, and"},
		"schema without a target":  {files: map[string]string{"values.schema.json": `{"$ref": "#/definitions/none"}`}, want: "reading values.schema.json of the chart shop: "},
		"no such values":           {change: func(h *v1alpha1.Helm) { h.ValuesFiles = []string{"no.yaml"} }, want: "reading the values: "},
		"no such chart":            {change: func(h *v1alpha1.Helm) { h.Chart = "apps/none" }, want: "rendering the chart apps/none: "},
		"no chart":                 {change: func(h *v1alpha1.Helm) { h.Chart = "apps" }, want: "Chart.yaml file is missing"},
		"no archive":               {change: func(h *v1alpha1.Helm) { h.Chart = "apps/shop/Chart.yaml" }, want: "neither the directory of a chart nor an archive"},
		"links in a circle":        {files: map[string]string{"templates/loop": "->../templates"}, want: "links lead in a circle"},
		"a link out of the source": {files: map[string]string{"templates/out.yaml": "->../../../../etc/passwd"}, want: "etc/passwd"},
		"include without end":      {files: map[string]string{"templates/a.yaml": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`}, want: "nested reference name"},
	} {
		t.Run(name, func(t *testing.T) {
			release := releaseOf("apps/shop")
			if test.change != nil {
				test.change(release)
			}
			manifests, err := Render(context.Background(), sourceOf(t, chartWith(test.files)), release, Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %s", err, printed(manifests))
			}
		})
	}
}

// packed makes an archive; an empty content is a symbolic link.
func packed(t testing.TB, files ...string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		head := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if files[i+1] == "" {
			head.Typeflag, head.Linkname = tar.TypeSymlink, "/etc/passwd"
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestArchives renders packed charts, and refuses those that no helm package made.
func TestArchives(t *testing.T) {
	dependency := packed(t, "redis/Chart.yaml", "apiVersion: v2\nname: redis\nversion: 1.0.0\n", "redis/templates/r.yaml", configMap("r", "{{ .Values.global.x }}{{ .Values.size }}"), "redis/values.yaml", "size: 1\n")
	good := packed(t, "shop/Chart.yaml", chartYAML+"dependencies: [{name: redis, version: 1.0.0, condition: redis.enabled}]\n", "shop/values.yaml", "global: {x: z}\nredis: {size: 2}\n",
		"shop/templates/a.yaml", configMap("a", "x"), "shop/charts/redis-1.0.0.tgz", dependency)
	release := releaseOf("shop-1.2.3.tgz")
	manifests, err := Render(context.Background(), sourceOf(t, map[string]string{"shop-1.2.3.tgz": good}), release, Options{})
	if got := printed(manifests); err != nil || got != "# shop/charts/redis/templates/r.yaml\n"+configMap("r", "z2")+"# shop/templates/a.yaml\n"+configMap("a", "x") {
		t.Errorf("%v, got\n%s", err, got)
	}
	release.Values = map[string]any{"redis": map[string]any{"enabled": false}}
	if manifests, err = Render(context.Background(), sourceOf(t, map[string]string{"shop-1.2.3.tgz": good}), release, Options{}); err != nil || len(manifests) != 1 {
		t.Errorf("%v, got\n%s", err, printed(manifests))
	}
	release.Values = nil
	bomb := packed(t, "shop/Chart.yaml", chartYAML, "shop/zeros", strings.Repeat("0", maxUnpacked))
	many := []string{"shop/Chart.yaml", chartYAML}
	for i := range maxArchiveFiles {
		many = append(many, fmt.Sprintf("shop/%d", i), "x")
	}
	nested := bomb
	for range maxArchiveNested + 1 {
		nested = packed(t, "shop/Chart.yaml", chartYAML, "shop/charts/shop.tgz", nested)
	}
	for name, test := range map[string]struct{ content, want string }{
		"absolute":              {packed(t, "/shop/Chart.yaml", chartYAML), "the path /shop/Chart.yaml in it leads out of the archive"},
		"above":                 {packed(t, "shop/../../Chart.yaml", chartYAML), "leads out of the archive"},
		"with a backslash":      {packed(t, `shop\..\Chart.yaml`, chartYAML), "leads out of the archive"},
		"a drive":               {packed(t, `c:/Chart.yaml`, chartYAML), "leads out of the archive"},
		"link":                  {packed(t, "shop/Chart.yaml", chartYAML, "shop/templates/l.yaml", ""), "shop/templates/l.yaml in it is a link or a device"},
		"large":                 {bomb, "more than 67108864 bytes when it is unpacked"},
		"many":                  {packed(t, many...), "more than 10000 files"},
		"deep":                  {nested, "more than 8 archives inside each other"},
		"link in a dependency":  {packed(t, "shop/Chart.yaml", chartYAML, "shop/charts/a.tgz", packed(t, "a/l", "")), "shop.tgz:charts/a.tgz: a/l in it is a link"},
		"large at another path": {packed(t, "shop/Chart.yaml", chartYAML, "shop/charts//shop.tgz", bomb), "more than 67108864 bytes when it is unpacked"},
		"large at a dot":        {packed(t, "shop/Chart.yaml", chartYAML, "shop/charts/./shop.tgz", bomb), "more than 67108864 bytes when it is unpacked"},
		"large on Windows":      {packed(t, "shop/Chart.yaml", chartYAML, `a/b\charts\shop.tgz`, bomb), "more than 67108864 bytes when it is unpacked"},
		"cut off":               {good[:len(good)-40], "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			release := releaseOf("shop.tgz")
			if _, err := Render(context.Background(), sourceOf(t, map[string]string{"shop.tgz": test.content}), release, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Error(err)
			}
		})
	}
	inDirectory := chartWith(map[string]string{"charts/a.tgz": packed(t, "/a/Chart.yaml", "x")})
	if _, err := Render(context.Background(), sourceOf(t, inDirectory), releaseOf("apps/shop"), Options{}); err == nil || !strings.Contains(err.Error(), "charts/a.tgz: the path /a/Chart.yaml in it leads out") {
		t.Error(err)
	}
}

// TestSameEachTime renders what has the order of Go's maps in Helm itself.
func TestSameEachTime(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": configMap("a", `"{{ keys .Values.m | join "" }} {{ values .Values.m | join "" }} {{ toDate "2006-01-02" "2024-07-01" | date "MST" }} {{ dateInZone "15 MST" 0 "Europe/Berlin" }}"`), "values.yaml": "m: {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}\n"})
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		files["apps/shop/charts/"+name+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"
		files["apps/shop/charts/"+name+"/crds/x.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	}
	var first string
	for i := range 5 {
		manifests, err := Render(context.Background(), sourceOf(t, files), releaseOf("apps/shop"), Options{})
		got := printed(manifests)
		if err != nil || i > 0 && got != first || !strings.Contains(got, `"abcdef 123456 UTC 01 CET"`) {
			t.Fatalf("%v, got\n%s\nfirst\n%s", err, got, first)
		}
		first = got
	}
}

// TestValuesThatTemplatesChange checks that a render does not see what the one before it has set.
func TestValuesThatTemplatesChange(t *testing.T) {
	files := chartWith(map[string]string{
		"values.yaml":      "m: {n: 1}\n",
		"templates/a.yaml": `{{ $_ := now }}{{ if .Values.m.set }}{{ fail "it was set before" }}{{ end }}{{ $_ := set .Values.m "set" true }}` + configMap("a", "{{ .Values.m.set }}"),
	})
	release := releaseOf("apps/shop")
	if _, err := Render(context.Background(), sourceOf(t, files), release, Options{}); err != nil {
		t.Error(err)
	}
}

// TestTypesOfNumbers: what --set gives is an integer to templates, and what files have is not.
func TestTypesOfNumbers(t *testing.T) {
	files := chartWith(map[string]string{
		"values.yaml":      "file: 123456789012\nlist: [1]\n",
		"templates/a.yaml": configMap("a", `"{{ .Values.file }} {{ .Values.set }} {{ index .Values.list 0 }} {{ eq .Values.set 123456789012 }}"`),
	})
	release := releaseOf("apps/shop")
	release.Values = map[string]any{}
	if err := strvals.ParseInto("set=123456789012,list[0]=9007199254740993", release.Values); err != nil {
		t.Fatal(err)
	}
	manifests, err := Render(context.Background(), sourceOf(t, files), release, Options{})
	if got := printed(manifests); err != nil || !strings.Contains(got, `value: "1.23456789012e+11 123456789012 9007199254740993 true"`) {
		t.Errorf("%v, got\n%s", err, got)
	}
}

// TestTemplatesThatCallThemselves: the error says so, and does not only name the thousand calls before it.
func TestTemplatesThatCallThemselves(t *testing.T) {
	for name, template := range map[string]string{
		"itself": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"two":    `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
	} {
		source := sourceOf(t, chartWith(map[string]string{"templates/x.yaml": template}))
		_, err := Render(context.Background(), source, releaseOf("apps/shop"), Options{})
		if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "apps/shop/templates/x.yaml:1:") ||
			!strings.Contains(err.Error(), "more calls) … ") || !strings.Contains(err.Error(), `nested reference name: a`) {
			t.Errorf("%s: %.3000v", name, err)
		}
	}
}
