// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/istio/release"
)

// config is an injector configuration with one template.
func config(template string) string {
	return "policy: enabled\ntemplates:\n  sidecar: |\n    " + strings.ReplaceAll(template, "\n", "\n    ") + "\n"
}

// render makes an injector and renders its template sidecar.
func render(t *testing.T, o Options, data *TemplateData) (string, error) {
	t.Helper()
	if o.Values == "" {
		o.Values = "{}"
	}
	in, err := New(o)
	if err != nil {
		return "", err
	}
	if data == nil {
		data = &TemplateData{}
	}
	if data.ProxyConfig == nil {
		data.ProxyConfig = in.Mesh().GetDefaultConfig()
	}
	data.MeshConfig = in.Mesh()
	templates, err := in.Select(nil)
	if err != nil {
		return "", err
	}
	r, err := in.Render(templates[0], data)
	if err != nil {
		return "", err
	}
	defer in.Release(r)
	return string(r.Bytes()), nil
}

func TestTemplateErrors(t *testing.T) {
	tests := []struct{ name, version, template, want string }{
		{"newer function", "1.24", "a: 1\nb: {{ omitNil .Values }}",
			`reading template "sidecar", line 2: the function "omitNil" exists in Istio 1.28.6 to 1.28.x, 1.29.1 and later, and the version is 1.24`},
		{"removed function", "1.20", "{{ render \"x\" }}", `the function "render" exists in Istio 1.2 to 1.13, and the version is 1.20`},
		{"unknown function", "1.31", "\n\n{{ openshift }}", `reading template "sidecar", line 3: no version of Istio from 1.0 to 1.32 has the function "openshift"`},
		{"newer field", "1.24", "{{ if true }}\n{{ .NativeSidecars }}{{ end }}",
			`rendering template "sidecar", line 2, at {{.NativeSidecars}}: the field .NativeSidecars exists in Istio 1.27 and later, and the version is 1.24`},
		{"removed field", "1.19", "{{ range until 1 }}{{ $.EstimatedConcurrency }}{{ end }}", `the field .EstimatedConcurrency exists in Istio 1.10.1 to 1.17`},
		{"unknown field", "1.31", "{{ .ProxyIamge }}", `no version of Istio from 1.0 to 1.32 has the field .ProxyIamge`},
		{"syntax", "1.31", "a: 1\n{{ if }}", `reading template "sidecar", line 2: missing value for if`},
		{"not closed", "1.31", "{{ if true }}", `reading template "sidecar"`},
		{"field of text", "1.31", "a:\n  {{ .Revision.proxy }}", `rendering template "sidecar", line 2, at {{.Revision.proxy}}: can't evaluate field proxy in type string`},
		{"unknown nested field", "1.31", "{{ .ObjectMeta.Nothing }}", `can't evaluate field Nothing`},
		{"call of a template", "1.31", `{{ template "none" . }}`, `rendering template "sidecar", line 1, at {{template "none" .}}: template "none" not defined`},
		{"fail", "1.31", `{{ fail "set global.hub" }}`, `rendering template "sidecar", line 1, at {{fail "set global.hub"}}: fail: set global.hub`},
		{"annotation of something else", "1.31", `{{ annotation .Spec "a" "b" }}`, "want the metadata of an object"},
		{"annotation of nothing", "1.31", `{{ annotation .Values.none "a" "b" }}`, "sidecar"},
		{"too long", "1.31", `{{ range until 2000 }}{{ repeat 100000 "x" }}{{ end }}`, "prints more than"},
		{"endless", "1.31", `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, "exceeded maximum template depth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := render(t, Options{Version: tt.version, Config: config(tt.template)}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.40q and the error %v, want one that says %q", got, err, tt.want)
			}
		})
	}
}

func TestNewErrors(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"no config", Options{}, "it is empty"},
		{"not YAML", Options{Config: "a: [", Values: "{}"}, "reading the injector configuration (data.config): "},
		{"a list", Options{Config: "- a", Values: "{}"}, "reading the injector configuration (data.config): "},
		{"no templates", Options{Config: "policy: enabled", Values: "{}"}, "it has neither templates nor template"},
		{"no policy", Options{Config: "templates: {sidecar: x}", Values: "{}"}, `policy is ""; it must be enabled or disabled`},
		{"broken values", Options{Config: config("x"), Values: "{"}, "reading the injector's values (data.values): "},
		{"no values", Options{Config: config("x"), Version: "1.31"}, "reading the injector's values: there are none"},
		{"broken mesh", Options{Config: config("x"), Values: "{}", Version: "1.31", Mesh: "a: ["}, "reading the mesh config"},
		{"bad version", Options{Config: config("x"), Values: "{}", Version: "newest"}, `reading the Istio version "newest"`},
		{"other generation", Options{Config: config("x"), Values: "{}", Version: "1.5"},
			"it has a map of templates, as Istio 1.9 and later has it, but the version is 1.5 (from the policy)"},
		{"bad kubernetes", Options{Config: config("x"), Values: "{}", Version: "1.31", KubernetesVersion: "new"}, `reading kubernetesVersion "new"`},
		{"bad native", Options{Config: config("x"), Values: "{}", Version: "1.31", Native: "Perhaps"}, `reading nativeSidecars: "Perhaps"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	if p, known := ProfileOf(Version{Minor: 99}); known || p.Minor() != NewestMinor {
		t.Errorf("1.99 gives the profile of 1.%d, known %t; want the newest, not known", p.Minor(), known)
	}
	// One name has no two rows for a version.
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		for patch := range release.Newest(minor).Patch + 1 {
			seen := map[string]bool{}
			for _, row := range functionTable {
				if row.Contains(release.Release{Minor: minor, Patch: patch}) {
					if seen[row.Name] {
						t.Errorf("function %s has two behaviours in 1.%d.%d", row.Name, minor, patch)
					}
					seen[row.Name] = true
				}
			}
		}
	}
}

func TestNative(t *testing.T) {
	tests := []struct {
		o           Options
		want        bool
		wantWarning string
	}{
		{Options{Version: "1.18", Native: NativeEnabled}, false, "has no native sidecars"},
		{Options{Version: "1.24"}, false, ""},
		{Options{Version: "1.24", IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": "true"}}, true, ""},
		{Options{Version: "1.24", Native: NativeEnabled}, true, ""},
		{Options{Version: "1.31", KubernetesVersion: "1.32"}, false, ""},
		{Options{Version: "1.31", KubernetesVersion: "v1.34.2+k3s1"}, true, ""},
		{Options{Version: "1.31"}, true, "set kubernetesVersion or nativeSidecars"},
		{Options{Version: "1.31", IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": "false"}}, false, ""},
		{Options{Version: "1.27", KubernetesVersion: "1.34", IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": "true"}}, true, ""},
		{Options{Version: "1.31", KubernetesVersion: "1.34", IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": "auto"}}, true, ""},
		{Options{Version: "1.26", KubernetesVersion: "1.34", IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": "1"}}, true, ""},
		{Options{Version: "1.31", Native: NativeDisabled, KubernetesVersion: "1.34"}, false, ""},
	}
	for _, tt := range tests {
		tt.o.Config, tt.o.Values = config(`{{ env "ENABLE_NATIVE_SIDECARS" "unset" }}`), "{}"
		in, err := New(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if in.NativeSidecars() != tt.want {
			t.Errorf("%+v: native is %t", tt.o, !tt.want)
		}
		warnings := strings.Join(in.Warnings(), "; ")
		if tt.wantWarning == "" && warnings != "" || !strings.Contains(warnings, tt.wantWarning) {
			t.Errorf("%+v: got the warnings %q, want %q", tt.o, warnings, tt.wantWarning)
		}
	}
	// Templates up to 1.26 ask the environment.
	got, err := render(t, Options{Version: "1.24", Native: NativeEnabled, Config: config(`{{ env "ENABLE_NATIVE_SIDECARS" "unset" }}`)}, nil)
	if err != nil || strings.TrimSpace(got) != "true" {
		t.Errorf("the template sees %q, %v", got, err)
	}
}

// TestNear lets a version use what the next one has: it is often in its last patches too.
func TestNear(t *testing.T) {
	got, err := render(t, Options{Version: "1.27", Config: config(`{{ toYaml (omitNil .Values.a) }}{{ .NativeSidecars }}`), Values: `{"a": {"b": null}}`}, nil)
	if want := "null\ntrue"; err != nil || strings.TrimSpace(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestSelect(t *testing.T) {
	text := "policy: enabled\ntemplates: {a: A, b: B, c: C}\naliases: {both: [a, b], nested: [both]}\ndefaultTemplates: [both, c]\n"
	in, err := New(Options{Version: "1.31", Config: text, Values: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ annotation, want, wantError string }{
		{"-", "a b c", ""},
		{"c, a", "c a", ""},
		{"both", "a b", ""},
		{"nested", "", `"both" is not among the templates of the injector's configuration, which are a, b, c`},
		{"d", "", `"d" is not among`},
		{"", "", `"" is not among`},
	}
	for _, tt := range tests {
		annotations := map[string]string{TemplatesAnnotationName: tt.annotation}
		if tt.annotation == "-" {
			annotations = nil
		}
		templates, err := in.Select(annotations)
		var names []string
		for _, t := range templates {
			names = append(names, t.Name())
		}
		if got := strings.Join(names, " "); got != tt.want || tt.wantError == "" && err != nil || tt.wantError != "" && (err == nil || !strings.Contains(err.Error(), tt.wantError)) {
			t.Errorf("%q gives %q and %v, want %q and %q", tt.annotation, got, err, tt.want, tt.wantError)
		}
	}
}

// TestValuesStay renders templates that change the values they are given, and wants them unchanged for the next pod.
func TestValuesStay(t *testing.T) {
	in, err := New(Options{Version: "1.31", Config: config(`{{ $_ := set .Values.global "hub" "changed" }}{{ .Values.global.hub }}`), Values: `{"global": {"hub": "h"}}`})
	if err != nil {
		t.Fatal(err)
	}
	templates, err := in.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := in.Render(templates[0], &TemplateData{ProxyConfig: in.Mesh().GetDefaultConfig()})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(r.Bytes())); got != "changed" {
			t.Errorf("got %q", got)
		}
		in.Release(r)
	}
	if got := in.Values().String("global", "hub"); got != "h" {
		t.Errorf("the values have changed: hub is %q", got)
	}
}

func TestOverrides(t *testing.T) {
	v, err := ParseValues(`{"global": {"hub": "h", "tag": "t"}}`, map[string]any{"global": map[string]any{"tag": "u", "n": 3}})
	if err != nil {
		t.Fatal(err)
	}
	if v.String("global", "hub") != "h" || v.String("global", "tag") != "u" || v.valueAtPath("global", "n") != float64(3) {
		t.Errorf("got %v", v)
	}
}

// TestUnknownOverrides checks that overrides which nothing reads fail with the path of their key.
func TestUnknownOverrides(t *testing.T) {
	const template = `a: {{ .Values.global.proxy.logLevel }}
{{ if $.Values.global.debug.on }}b: {{ toYaml .Values.global.whole }}{{ end }}
{{ with (index .Values "quoted-key" "deep").x }}{{ . }}{{ end }}
{{ define "sub" }}{{ .Values.inDefine }}{{ end }}
{{ range .Spec.Containers }}{{ $.Values.inRange.x }}{{ end }}
{{ $part := .Values.part }}{{ $deep := $part.deep }}{{ $deep.x }}{{ (index $part "quoted-key").y }}
{{ $all := .Values.all }}{{ toYaml $all }}{{ with $part.used }}{{ .any }}{{ end }}`
	values := `{"global": {"hub": "h", "free": {}, "list": [1]}, "scalar": 1}`
	tests := map[string]struct{ overrides, want string }{
		"in the values":        {`{"global": {"hub": "x", "list": [2]}, "scalar": 2}`, ""},
		"in a template":        {`{"global": {"proxy": {"logLevel": "debug"}, "debug": {"on": true}}}`, ""},
		"below what is read":   {`{"global": {"whole": {"any": {"thing": 1}}}}`, ""},
		"below an empty map":   {`{"global": {"free": {"any": 1}}}`, ""},
		"index":                {`{"quoted-key": {"deep": {"x": 1}}}`, ""},
		"define and range":     {`{"inDefine": 1, "inRange": {"x": 1}}`, ""},
		"what the code reads":  {`{"global": {"tag": "1.31.0", "multiCluster": {"clusterName": "c"}}}`, ""},
		"unknown at the top":   {`{"globl": {"hub": "x"}}`, "reading injector.overrides.globl: "},
		"unknown below":        {`{"global": {"proxy": {"loglevel": "debug"}}}`, "reading injector.overrides.global.proxy.loglevel: "},
		"names the keys there": {`{"global": {"proxy": {"loglevel": "debug"}}}`, "the keys below global.proxy are autoInject, holdApplicationUntilProxyStarts, image, logLevel, resources"},
		"unknown in a map":     {`{"inRange": {"y": 1}}`, "injector.overrides.inRange.y"},
		"by variables":         {`{"part": {"deep": {"x": 1}, "quoted-key": {"y": 1}, "used": {"any": 1}}, "all": {"any": 1}}`, ""},
		"unknown in variables": {`{"part": {"dep": {"x": 1}}}`, "reading injector.overrides.part.dep: "},
		"unknown further down": {`{"part": {"deep": {"z": 1}}}`, "reading injector.overrides.part.deep.z: "},
		"a list for one value": {`{"global": {"hub": ["x"]}}`, "reading injector.overrides.global.hub: must be one value"},
		"a value for a list":   {`{"global": {"list": "x"}}`, "reading injector.overrides.global.list: must be a list"},
		"a value for a map":    {`{"global": "x"}`, "reading injector.overrides.global: must be a mapping"},
		"null for anything":    {`{"global": {"hub": null, "list": null, "free": null}}`, ""},
		"unknown in index":     {`{"quoted-key": {"deeper": 1}}`, "injector.overrides.quoted-key.deeper"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			over, err := ParseValues(test.overrides, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = New(Options{Version: "1.31", Config: config(template), Values: values, Overrides: over})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("have the error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := New(Options{Version: "1.31", Config: config("{{ toYaml .Values }}"), Values: values, Overrides: map[string]any{"any": 1}}); err != nil {
		t.Errorf("a template that prints all values: %v", err)
	}
}

func TestEstimateConcurrency(t *testing.T) {
	in, err := New(Options{Version: "1.15", Config: config("x"), Values: `{"global": {"proxy": {"resources": {"limits": {"cpu": "2500m"}}}}}`})
	if err != nil {
		t.Fatal(err)
	}
	n := func(i int32) *mesh.ProxyConfig {
		pc := mesh.DefaultProxyConfig(release.Newest(15))
		pc.Workers = &mesh.Int32Value{Value: i}
		return pc
	}
	none := mesh.DefaultProxyConfig(release.Newest(15))
	none.Workers = nil
	tests := []struct {
		pc          *mesh.ProxyConfig
		annotations map[string]string
		want        int
	}{
		{none, nil, 2}, {n(7), nil, 7}, {n(0), nil, 3},
		{n(0), map[string]string{"sidecar.istio.io/proxyCPULimit": "1100m", "sidecar.istio.io/proxyCPU": "4"}, 2},
		{n(0), map[string]string{"sidecar.istio.io/proxyCPU": "4"}, 4},
		{n(0), map[string]string{"sidecar.istio.io/proxyCPU": "lots"}, 2},
	}
	for _, tt := range tests {
		if got := in.EstimateConcurrency(tt.pc, tt.annotations); got != tt.want {
			t.Errorf("%v %v gives %d, want %d", tt.pc.Workers, tt.annotations, got, tt.want)
		}
	}
}

// TestRevisionOfTheDefaultIsNamed renders what a template shows where no revision is installed: the charts start istiod
// with REVISION=default then.
func TestRevisionOfTheDefaultIsNamed(t *testing.T) {
	for _, c := range []struct{ revision, want string }{{"", "default"}, {"canary", "canary"}} {
		out, err := render(t, Options{Version: "1.31", Config: config("a: {{ .Revision }}"), Values: "{}", Native: NativeDisabled, Revision: c.revision}, &TemplateData{})
		if err != nil || strings.TrimSpace(out) != "a: "+c.want {
			t.Errorf("revision %q: got %q, %v", c.revision, out, err)
		}
	}
}

// TestNativeSidecarsOfTheEnvironment reads ENABLE_NATIVE_SIDECARS as istiod does: from 1.27 on exactly true, false and auto,
// and everything else, also nothing, is false.
func TestNativeSidecarsOfTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		version, asked string
		want           bool
	}{
		{"1.31", "true", true}, {"1.31", "false", false}, {"1.31", "auto", true}, {"1.31", "1", false}, {"1.31", "TRUE", false}, {"1.31", "", false},
		{"1.26", "1", true}, {"1.26", "TRUE", true}, {"1.26", "auto", false},
	} {
		in, err := New(Options{Version: c.version, Config: config("a: b"), Values: "{}", KubernetesVersion: "1.34",
			IstiodEnv: map[string]string{"ENABLE_NATIVE_SIDECARS": c.asked}})
		if err != nil {
			t.Fatal(err)
		}
		if in.NativeSidecars() != c.want {
			t.Errorf("%s with %q: native sidecars are %t", c.version, c.asked, !c.want)
		}
	}
}
