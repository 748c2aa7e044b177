// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/corpustest"
)

// foldPods are data of pods that take different ways through a template.
func foldPods(in *Injector) []*TemplateData {
	plain := &TemplateData{
		TypeMeta:       metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		DeploymentMeta: types.NamespacedName{Name: "web", Namespace: "shop"},
		ObjectMeta:     metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:           corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
		ProxyUID:       1337, ProxyGID: 1337,
	}
	annotated := *plain
	annotated.ObjectMeta.Annotations = map[string]string{
		"sidecar.istio.io/proxyCPU": "1", "sidecar.istio.io/nativeSidecar": "true", "sidecar.istio.io/interceptionMode": "TPROXY",
		"traffic.sidecar.istio.io/includeOutboundPorts": "80", "sidecar.istio.io/proxyImage": "example.com/p:1", "status.sidecar.istio.io/port": "0",
	}
	// Others of the classes of the first two, which differ in what is not asked once for all.
	other, otherAnnotated := *plain, annotated
	other.DeploymentMeta = types.NamespacedName{Name: "true", Namespace: "web"}
	other.ObjectMeta.Name, other.ObjectMeta.Labels = "text", map[string]string{"app": "{{ .Values }}", "version": "v\"1"}
	other.Spec.Containers = []corev1.Container{{Name: "istio-proxy"}, {Name: "b", Ports: []corev1.ContainerPort{{ContainerPort: 81}, {ContainerPort: 82}}}}
	otherAnnotated.ObjectMeta.Name, otherAnnotated.Spec = "", corev1.PodSpec{}
	out := []*TemplateData{plain, &annotated, &other, &otherAnnotated}
	for _, d := range out {
		d.ProxyConfig, d.MeshConfig = in.Mesh().GetDefaultConfig(), in.Mesh()
		if in.plainProxyConfig != nil {
			d.ProxyConfig = in.plainProxyConfig
		}
	}
	return out
}

// sameFolded renders every template folded and as it is written, and wants the same text or the same error.
func sameFolded(t *testing.T, o Options) {
	t.Helper()
	folded, err := newInjector(o, false)
	if err != nil {
		t.Fatal(err)
	}
	folded.foldAfter = 0
	for _, name := range folded.TemplateNames() {
		for i := range 2 * len(foldPods(folded)) {
			i %= len(foldPods(folded))
			// One that has rendered nothing yet: what a pod leaves in the values must not be there for the next.
			written, err := newInjector(o, true)
			if err != nil {
				t.Fatal(err)
			}
			got := renderWithSteps(folded, name, foldPods(folded)[i])
			want := renderWithSteps(written, name, foldPods(written)[i])
			if got != want {
				t.Errorf("template %s, pod %d: folded it prints\n%s\nas it is written\n%s", name, i, got, want)
			}
		}
	}
}

// The built-in templates change maps of their own only: they are folded, and share the values.
func TestOwnMapsAreFolded(t *testing.T) {
	for text, mutates := range map[string]bool{
		`{{ $d := dict }}{{ $_ := set $d "a" .Values }}`:                                                                      false,
		`{{ range $k, $v := .Values }}{{ merge (dict "name" $k) $v }}{{ end }}{{ range $x, $k := .Values }}{{ $k }}{{ end }}`: false,
		`{{ merge (fromJSON "{}") .Values }}`:                                                                                 false,
		`{{ merge (dict) .Values .Values }}`:                                                                                  true,
		`{{ merge (dict "a" .Values) .Values }}`:                                                                              true,
		`{{ set .Values "a" 1 }}`:                                                                                             true,
		`{{ $d := .Values }}{{ $_ := set $d "a" 1 }}`:                                                                         true,
		`{{ dict | merge .Values }}`:                                                                                          true,
		`{{ range $k, $v := .Values }}{{ $_ := unset $v "a" }}{{ end }}`:                                                      true,
	} {
		in, err := newInjector(Options{Version: "1.31", Config: config(text), Values: `{"a": {"b": "c"}}`, Native: NativeEnabled}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.templates["sidecar"].mutates; got != mutates {
			t.Errorf("%s: mutates is %t, want %t", text, got, mutates)
		}
	}
}

// TestRendersDoNotChangeTheMesh renders for pods at the same time, before and after the template is folded: all share the mesh's
// settings, and each finds them as they were.
func TestRendersDoNotChangeTheMesh(t *testing.T) {
	o := Options{
		Version: "1.31", Mesh: "defaultServiceExportTo: [z, a]\n", Values: "{}", Native: NativeEnabled,
		Config: config(`a: {{ .MeshConfig.DefaultServiceExportTo }}, b: {{ join "," (sortAlpha .MeshConfig.DefaultServiceExportTo) }}, c: {{ .ObjectMeta.Name }}`),
	}
	for _, unfolded := range []bool{true, false} {
		in, err := newInjector(o, unfolded)
		if err != nil {
			t.Fatal(err)
		}
		in.foldAfter = 8
		var pods sync.WaitGroup
		for range 24 {
			pods.Go(func() {
				const want = "a: [z a], b: a,z, c: web\n"
				if got := renderText(in, "sidecar", foldPods(in)[0]); got != want {
					t.Errorf("unfolded %t: it prints %q, want %q", unfolded, got, want)
				}
			})
		}
		pods.Wait()
	}
}

// renderWithSteps gives what a template prints and how many steps it takes, or its error.
func renderWithSteps(in *Injector, name string, data *TemplateData) string {
	r, err := in.Render(in.templates[name], data)
	if err != nil {
		return "error: " + err.Error()
	}
	defer in.Release(r)
	return fmt.Sprintf("%s\nin %d steps", r.Bytes(), *r.out.Spent)
}

func renderText(in *Injector, name string, data *TemplateData) string {
	r, err := in.Render(in.templates[name], data)
	if err != nil {
		return "error: " + err.Error()
	}
	defer in.Release(r)
	return string(r.Bytes())
}

func TestFold(t *testing.T) {
	values := `{"a": {"s": "text", "t": true, "f": false, "n": 15020, "e": "", "l": [1, 2]}, "m": {"x": "y"}}`
	templates := []string{
		`{{ .Values.a.s }}{{ .Values.a.n }}{{ .Values.a.e }}{{ .Values.none }}`,
		`{{ if .Values.a.t }}yes{{ else }}no{{ end }}{{ if .Values.a.f }}yes{{ else }}no{{ end }}{{ if .Values.none }}yes{{ end }}.`,
		`{{ if .Values.a.t }}{{ if .ObjectMeta.Name }}{{ .ObjectMeta.Name }}{{ else }}{{ .Values.a.s }}{{ end }}{{ end }}`,
		`{{ $x := "outer" }}{{ if .Values.a.t }}{{ $x := "inner" }}{{ $x }}{{ end }}{{ $x }}`,
		`{{ $x := "outer" }}{{ if .Values.a.t }}{{ $x = "set" }}{{ end }}{{ $x }}`,
		`{{ $x := .Values.a.s }}{{ with $x }}{{ . }}{{ end }}{{ if $x }}x{{ end }}`,
		`{{ with .Values.a }}{{ .s }}{{ with .none }}a{{ else }}b{{ .s }}{{ end }}{{ end }}{{ with .Values.none }}a{{ else }}{{ .Values.a.s }}{{ end }}`,
		`{{ range .Values.a.l }}{{ . }}{{ $.Values.a.s }}{{ if $.Values.a.t }}!{{ end }}{{ else }}none{{ end }}`,
		`{{ range $k, $v := .Values.m }}{{ $k }}={{ $v }}{{ end }}{{ range .Spec.Containers }}{{ if eq .Name "web" }}{{ continue }}{{ end }}{{ .Name }}{{ end }}`,
		`{{ define "d" }}{{ .Values.a.s }}{{ if .Values.a.t }}T{{ end }}{{ end }}{{ template "d" . }}{{ template "d" (dict "Values" (dict "a" (dict "s" "other"))) }}`,
		`{{ define "d" }}{{ .Values.a.s }}{{ end }}{{ define "e" }}{{ template "d" . }}{{ end }}{{ template "e" . }}`,
		`{{ define "d" }}{{ .Values.a.s }}{{ end }}{{ template "d" . }}`,
		`{{ annotation .ObjectMeta "x" .Values.a.n }} {{ annotation .ObjectMeta "x" .Values.a.s }} {{ annotation .ObjectMeta "x" .Values.a.t | quote }}`,
		`{{ valueOrDefault .MeshConfig.TrustDomain .Values.a.s }} {{ .Revision | default "default" | quote }} {{ (.Values.a).s }} {{ .MeshConfig.RootNamespace }}`,
		`{{ printf "%v %v" .Values.a.t .ObjectMeta.Name }} {{ eq (annotation .ObjectMeta "x" .Values.a.t) "true" }} {{ ne .Values.a.s .ObjectMeta.Name }}`,
		`{{ .Values.a.s.deeper }}`,
		`{{ if .Values.a.t }}{{ .Values.a.s.deeper }}{{ end }}`,
		`{{ if false }}{{ now }}{{ end }}ok{{ env "X" "y" }}`,
		`{{ now }}`,
		`{{ .NativeSidecars }} {{ .InboundTrafficPolicyMode }} {{ toYaml .Values.a }} {{ .Values.a.n | int }} {{ add .Values.a.n 1 }}`,
		`{{ $a := .Values.a }}{{ $t := $a.t }}{{ if $t }}{{ $a.s }}{{ end }}{{ range .Spec.Containers }}{{ .Name }}{{ $a.n }}{{ end }}{{ with $a.l }}{{ . }}{{ end }}`,
		`{{ $a := .Values.a.s }}{{ range $a, $b := .Values.m }}{{ $a }}{{ $b }}{{ end }}{{ $a }}{{ range $i, $c := .Spec.Containers }}{{ $c.Name }}{{ end }}`,
		`{{ $d := dict }}{{ range $k, $v := .Values.m }}{{ $_ := set $d $k $v }}{{ end }}{{ $d }}{{ if $d }}some{{ end }}`,
		`{{ $d := dict "m" .Values.m }}{{ $_ := set $d "n" .Values.a }}{{ $_ := set $d "m" .ObjectMeta.Name }}{{ $d }}{{ .Values.m }}`,
		`{{ $d := dict }}{{ $e := list $d }}{{ if $e }}{{ $_ := set $d "x" .ObjectMeta.Name }}{{ end }}{{ $e }}`,
		`{{ $m := .Values.m }}{{ $_ := set $m "z" .ObjectMeta.Name }}{{ .Values.m }}{{ $m }}`,
		`{{ $m := .Values.m }}{{ $r := merge (dict "q" "w") $m }}{{ $_ := set $r "z" .ObjectMeta.Name }}{{ .Values.m }}{{ $r }}`,
		`{{ $r := merge (dict "m" .Values.m) (dict "m" (dict "x" "n" "z" .ObjectMeta.Name)) }}{{ .Values.m }}{{ $r }}`,
		`{{ $r := merge (dict) .Values (dict "m" (dict "z" .ObjectMeta.Name)) }}{{ .Values.m }}{{ $r.m }}`,
		`{{ range $k, $v := .Values }}{{ $_ := merge (dict "m" $v) (dict "m" (dict "z" $.ObjectMeta.Name)) }}{{ end }}{{ .Values.m }}`,
		`{{ range $k, $v := .Values }}{{ range list 1 2 }}{{ $_ := merge (dict "m" $k) (dict "m" (dict "z" $.ObjectMeta.Name)) }}{{ $k = $v }}{{ end }}{{ end }}{{ .Values.m }}`,
		`{{ range $k, $v := .Values.m }}{{ $_ := merge (dict "m" $k) (dict "n" $.ObjectMeta.Name) }}{{ $_ }}{{ end }}{{ if .Values.m }}{{ $k := .Values.m }}{{ merge (dict "m" $k) (dict "m" (dict "z" $.ObjectMeta.Name)) }}{{ end }}{{ .Values.m }}`,
		`{{ range $d := list .Values.m }}{{ $_ := set $d "z" $.ObjectMeta.Name }}{{ end }}{{ .Values.m }}`,
		`{{ $d := dict }}{{ $d = .Values.m }}{{ $_ := set $d "z" .ObjectMeta.Name }}{{ .Values.m }}`,
		`{{ $r := merge (fromJSON "{\"m\": {\"x\": \"1\"}}") .Values }}{{ $r.m }}{{ .Values.m }}{{ .Values.m | toJson }}`,
		`{{ $x := .Values.a.s.deeper }}{{ .ObjectMeta.Name }}{{ $x }}`,
		`{{ define "d" }}{{ $a := .Name }}{{ $a }}{{ end }}{{ $a := .Values.a.s }}{{ template "d" .ObjectMeta }}{{ $a }}`,
		// What pods have in common with others, and what they have not.
		`{{ $n := .ObjectMeta.Annotations }}{{ $d := dict }}{{ $e := $d }}{{ if isset $n "sidecar.istio.io/proxyCPU" }}{{ $_ := set $e "x" "y" }}{{ end }}{{ range .Spec.Containers }}{{ .Name }}{{ $d }}{{ end }}`,
		`{{ $d := dict }}{{ $e := dict }}{{ with $d }}no{{ end }}{{ $_ := set $e "d" $d }}{{ $_ := set $d "x" "y" }}{{ .ObjectMeta.Name }}{{ range .Spec.Containers }}{{ .Name }}{{ $e }}{{ end }}`,
		`{{ $d := dict }}{{ range .Spec.Containers }}{{ $_ := set $d .Name "y" }}{{ end }}{{ $d }}{{ annotation .ObjectMeta "a" "b" }}`,
		`{{ $i := "a" }}{{ if annotation .ObjectMeta "sidecar.istio.io/proxyCPU" "" }}{{ $i = "b" }}{{ .ObjectMeta.Name }}{{ end }}{{ $i }}{{ range .Spec.Containers }}{{ $i }}{{ $i = .Name }}{{ end }}{{ $i }}`,
		`{{ $i := annotation $.ObjectMeta "sidecar.istio.io/proxyCPU" "c" }}{{ if eq $i "c" }}{{ $i = "d" }}{{ end }}{{ range .Spec.Containers }}{{ .Name }}{{ $i }}{{ end }}{{ $i }}`,
		`{{ $x := "a" }}{{ if .NativeSidecars }}{{ $x := "b" }}{{ .ObjectMeta.Name }}{{ $x }}{{ end }}{{ $x }}{{ if .ProxyUID }}{{ $x := "c" }}{{ $x }}{{ end }}{{ $x }}`,
		`{{ $m := .ObjectMeta }}{{ $o := $m }}{{ $m.Name }}{{ $m.Annotations }}{{ $o.Annotations }}{{ annotation $m "status.sidecar.istio.io/port" 1 }}{{ annotation $o "status.sidecar.istio.io/port" 1 }}`,
		`{{ $m := .ObjectMeta }}{{ annotation $m "x" 1 }}{{ $m = (dict "Annotations" "other") }}{{ $m.Annotations }}{{ .ObjectMeta.Labels }}`,
		`{{ range $k, $v := .ObjectMeta.Annotations }}{{ $k }}={{ $v }}{{ if eq $v "1" }}{{ break }}{{ end }}{{ end }}{{ range $k, $v := .ObjectMeta.Labels }}{{ $k }}={{ $v }}{{ end }}`,
		`{{ with .ObjectMeta.Annotations }}{{ index . "sidecar.istio.io/proxyCPU" }}{{ $.ObjectMeta.Name }}{{ end }}{{ with .ProxyUID }}{{ . }}{{ else }}{{ .ObjectMeta.Name }}{{ end }}`,
		`{{ if isset .ObjectMeta.Annotations "sidecar.istio.io/proxyCPU" }}{{ .TypeMeta.Kind }}{{ .ObjectMeta.Name.deeper }}{{ end }}{{ .DeploymentMeta.Name }}{{ .ProxyImage }}`,
		`{{ .ObjectMeta.Annotations.x.y }}{{ .ObjectMeta.Name }}`,
		`{{ fail (annotation .ObjectMeta "x" "y") }}`,
		`{{ define "d" }}{{ $n := .Name }}{{ $n }}{{ end }}{{ $n := annotation .ObjectMeta "a" "b" }}{{ template "d" .ObjectMeta }}{{ $n }}{{ toYaml . | len }}{{ $.ObjectMeta.Name }}`,
		`{{ $p := .ProxyConfig }}{{ $p.ConcurrencyTypo }}`,
		"a:\n{{- if .Values.a.t }}\n  b: {{ .Values.a.s }}\n{{- end }}\n  c: {{ .ObjectMeta.Name }}\n",
	}
	for i, template := range templates {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			sameFolded(t, Options{Version: "1.31", Config: config(template), Values: values, Native: NativeEnabled, Revision: "canary"})
		})
	}
}

// TestFoldStockOfTheCorpus folds the stock templates of the corpus.
func TestFoldStockOfTheCorpus(t *testing.T) {
	lists, err := filepath.Glob(filepath.Join(corpustest.Dir(t), "*", "cases.yaml"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("the corpus has no cases: %v", err)
	}
	for _, list := range lists {
		var cases []struct{ Config, Values, Mesh string }
		base := filepath.Dir(list)
		read := func(path string) string {
			if path == "" {
				return ""
			}
			text, err := os.ReadFile(filepath.Join(base, path))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if err := yaml.Unmarshal([]byte(read("cases.yaml")), &cases); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(base), func(t *testing.T) {
			done := map[string]bool{}
			for _, c := range cases {
				if key := c.Config + c.Values + c.Mesh; !done[key] {
					done[key] = true
					sameFolded(t, Options{Version: filepath.Base(base), Config: read(c.Config), Values: read(c.Values), Mesh: read(c.Mesh), Native: NativeDisabled})
				}
			}
		})
	}
}
