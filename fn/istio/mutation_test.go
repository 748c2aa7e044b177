// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// plainPod returns the data of a Deployment's pod with the injector's own proxy and mesh config.
func plainPod(in *Injector) *TemplateData {
	data := &TemplateData{
		TypeMeta:       metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		DeploymentMeta: types.NamespacedName{Name: "web", Namespace: "shop"},
		ObjectMeta:     metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:           corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}},
		ProxyUID:       1337,
		ProxyGID:       1337,
		ProxyConfig:    in.Mesh().GetDefaultConfig(),
		MeshConfig:     in.Mesh(),
	}
	if in.plainProxyConfig != nil {
		data.ProxyConfig = in.plainProxyConfig
	}
	return data
}

// renderText returns what a template prints, or its error as text.
func renderText(in *Injector, name string, data *TemplateData) string {
	r, err := in.Render(in.templates[name], data)
	if err != nil {
		return "error: " + err.Error()
	}
	defer in.Release(r)
	return string(r.Bytes())
}

// TestOwnMapsDoNotMutate checks which templates get a copy of the values: those that may change more than maps of their own.
func TestOwnMapsDoNotMutate(t *testing.T) {
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
		in, err := New(Options{Version: "1.31", Config: config(text), Values: `{"a": {"b": "c"}}`, Native: NativeEnabled})
		if err != nil {
			t.Fatal(err)
		}
		if got := in.templates["sidecar"].mutates; got != mutates {
			t.Errorf("%s: mutates is %t, want %t", text, got, mutates)
		}
	}
}

// TestRendersDoNotChangeTheValues renders templates that change maps for one pod after the other. Each pod finds the values as the
// configuration has them.
func TestRendersDoNotChangeTheValues(t *testing.T) {
	const values = `{"a": {"s": "text", "l": [1, 2]}, "m": {"x": "y"}}`
	for i, text := range []string{
		`{{ $m := .Values.m }}{{ $_ := set $m "z" .ObjectMeta.Name }}{{ .Values.m }}{{ $m }}`,
		`{{ $m := .Values.m }}{{ $r := merge (dict "q" "w") $m }}{{ $_ := set $r "z" .ObjectMeta.Name }}{{ .Values.m }}{{ $r }}`,
		`{{ $r := merge (dict "m" .Values.m) (dict "m" (dict "x" "n" "z" .ObjectMeta.Name)) }}{{ .Values.m }}{{ $r }}`,
		`{{ $r := merge (dict) .Values (dict "m" (dict "z" .ObjectMeta.Name)) }}{{ .Values.m }}{{ $r.m }}`,
		`{{ range $k, $v := .Values }}{{ $_ := merge (dict "m" $v) (dict "m" (dict "z" $.ObjectMeta.Name)) }}{{ end }}{{ .Values.m }}`,
		`{{ range $d := list .Values.m }}{{ $_ := set $d "z" $.ObjectMeta.Name }}{{ end }}{{ .Values.m }}`,
		`{{ $d := dict }}{{ $d = .Values.m }}{{ $_ := set $d "z" .ObjectMeta.Name }}{{ .Values.m }}`,
		`{{ $d := dict }}{{ range .Spec.Containers }}{{ $_ := set $d .Name "y" }}{{ end }}{{ $d }}`,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			render := func(in *Injector, name string) string {
				pod := plainPod(in)
				pod.ObjectMeta.Name = name
				return renderText(in, "sidecar", pod)
			}
			o := Options{Version: "1.31", Config: config(text), Values: values, Native: NativeEnabled}
			shared, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"web", "pay", "web"} {
				fresh, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := render(shared, name), render(fresh, name); got != want {
					t.Errorf("pod %s: after other pods it prints %q, alone %q", name, got, want)
				}
			}
		})
	}
}

// TestRendersDoNotChangeTheMesh renders for pods at the same time: all share the mesh's settings, and none changes them for others.
func TestRendersDoNotChangeTheMesh(t *testing.T) {
	const text = `a: {{ .MeshConfig.DefaultServiceExportTo }}, b: {{ join "," (sortAlpha .MeshConfig.DefaultServiceExportTo) }}, c: {{ .ObjectMeta.Name }}`
	in, err := New(Options{
		Version: "1.31",
		Mesh:    "defaultServiceExportTo: [z, a]\n",
		Values:  "{}",
		Native:  NativeEnabled,
		Config:  config(text),
	})
	if err != nil {
		t.Fatal(err)
	}
	var pods sync.WaitGroup
	for range 24 {
		pods.Go(func() {
			const want = "a: [z a], b: a,z, c: web\n"
			if got := renderText(in, "sidecar", plainPod(in)); got != want {
				t.Errorf("it prints %q, want %q", got, want)
			}
		})
	}
	pods.Wait()
}
