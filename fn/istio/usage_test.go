// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/prerig/prerig/fn/gotemplate"
)

const helperValues = `{"a": {"s": "text", "t": true, "f": false}, "m": {"x": "y"}, "global": {"hub": "example.com"}, "Values": {"a": "inner"}}`

// helperTemplates call templates that they define with other things than the data, and have branches that are never taken. istiod, which
// executes them with text/template, renders them all.
var helperTemplates = map[string]string{
	`{{ define "env" }}{name: {{ .name }}, value: {{ .value | quote }}}{{ end }}{{ template "env" (dict "name" "A" "value" .Values.a.s) }}{{ .ObjectMeta.Name }}`:                                       `{name: A, value: "text"}web`,
	`{{ define "n" }}{{ .Name }}{{ end }}{{ range .Spec.Containers }}{{ template "n" . }}{{ end }}`:                                                                                                     "web",
	`{{ block "i" .Values.global }}{{ .hub }}/p{{ end }}`:                                                                                                                                               "example.com/p",
	`{{ define "n" }}{{ $.name }}{{ range list 1 2 }}{{ . }}{{ $.name }}{{ end }}{{ end }}{{ template "n" (dict "name" "A") }}`:                                                                         "A1A2A",
	`{{ define "n" }}{{ .Values.a.s }}{{ $.Values.a.s }}{{ end }}{{ template "n" . }}{{ template "n" (dict "Values" (dict "a" (dict "s" "own"))) }}`:                                                    "texttextownown",
	`{{ define "in" }}{{ .Values.a.s }}{{ .x }}{{ end }}{{ define "out" }}{{ template "in" . }}{{ end }}{{ template "out" (dict "Values" (dict "a" (dict "s" "own")) "x" "y") }}{{ .ObjectMeta.Name }}`: "ownyweb",
	`{{ define "in" }}{{ .Values.a.s }}{{ end }}{{ define "out" }}{{ template "in" . }}{{ template "in" $ }}{{ end }}{{ range .Spec.Containers }}{{ template "out" $ }}{{ .Name }}{{ end }}`:            "texttextweb",
	`{{ define "n" }}{{ $a := .Name }}{{ $a }}{{ end }}{{ $a := .Values.a.s }}{{ template "n" .ObjectMeta }}{{ $a }}`:                                                                                   "webtext",
	`{{ define "n" }}{{ if .t }}{{ .s }}{{ $.s }}{{ else }}no{{ end }}{{ end }}{{ template "n" .Values.a }}{{ with .Values.a }}{{ template "n" . }}{{ end }}{{ template "n" dict }}`:                    "texttexttexttextno",
	`{{ define "n" }}{{ with .Values }}{{ .a.s }}{{ $.ObjectMeta.Name }}{{ end }}{{ end }}{{ template "n" . }}{{ template "n" $ }}`:                                                                     "textwebtextweb",
	`{{ define "n" }}{{ . }}{{ end }}{{ $d := dict "k" .Values.a.s }}{{ template "n" $d.k }}{{ template "n" .Revision }}{{ template "n" }}`:                                                             "textdefault<no value>",
	`{{ define "n" }}{{ $.t }}{{ end }}{{ if .Values.a.t }}{{ template "n" .Values.a }}{{ .ObjectMeta.Name }}{{ end }}`:                                                                                 "trueweb",
	`{{ if .Values.gateway }}{{ .Infrastructure }}{{ $.Infrastructure.Labels }}{{ end }}{{ .ObjectMeta.Name }}`:                                                                                         "web",
	`{{ if or .Values.a.t .Infrastructure }}{{ .ObjectMeta.Name }}{{ end }}{{ range .Values.none }}{{ $.KubeVersion }}{{ end }}`:                                                                        "web",
	`{{ define "never" }}{{ .Infrastructure }}{{ end }}{{ .Values.a.s }}`:                                                                                                                               "text",
	`{{ $ = .Values }}{{ $.a.s }}{{ .ObjectMeta.Name }}`:                                                                                                                                                "textweb",
	`{{ define "n" }}{{ .a.s }}{{ end }}{{ $ = .Values }}{{ template "n" $ }}`:                                                                                                                          "text",
	`{{ $ = .Values }}{{ $.Values.a }}{{ .ObjectMeta.Name }}`:                                                                                                                                           "innerweb",
	`{{ .Values.a.s }}{{ if ne (printf "%T" .) "map[string]interface {}" }}{{ template "sidecar" (dict "Values" (dict "a" (dict "s" "own"))) }}{{ end }}`:                                               "textown\n",
}

// TestHelpers renders templates with helpers several times and compares with the expected text.
func TestHelpers(t *testing.T) {
	for _, text := range slices.Sorted(maps.Keys(helperTemplates)) {
		t.Run(text, func(t *testing.T) {
			o := Options{Version: "1.31", Config: config(text), Values: helperValues, Native: NativeEnabled}
			in, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := strings.TrimSuffix(renderText(in, "sidecar", plainPod(in)), "\n"); got != helperTemplates[text] {
					t.Errorf("it prints %q, want %q", got, helperTemplates[text])
				}
			}
		})
	}
}

// TestAbsentFields checks that a field which the version does not have fails where it is read, at its line, and nowhere else.
func TestAbsentFields(t *testing.T) {
	for text, want := range map[string]string{
		"a: {{ .Values.a.s }}\n{{ if .Values.a.t }}{{ .NativeSidecars }}{{ end }}":                                                                                    "{{.NativeSidecars}}",
		"a\n{{ range .Spec.Containers }}{{ $.NativeSidecars.x }}{{ end }}":                                                                                            "{{$.NativeSidecars.x}}",
		"{{ define `n` }}\n{{ .NativeSidecars }}{{ end }}{{ template `n` . }}":                                                                                        "{{.NativeSidecars}}",
		"{{ define `n` }}{{ template `m` $ }}{{ end }}{{ define `m` }}\n{{ not $.NativeSidecars }}{{ end }}{{ range .Spec.Containers }}{{ template `n` $ }}{{ end }}": "{{$.NativeSidecars}}",
		"a\n{{ with (.NativeSidecars) }}b{{ end }}":                                                                                                                   "{{.NativeSidecars}}",
		"a\n{{ $x := .NativeSidecars | default false }}":                                                                                                              "{{.NativeSidecars}}",
		"a\n{{ template `n` .NativeSidecars }}{{ define `n` }}{{ end }}":                                                                                              "{{.NativeSidecars}}",
		"{{ if and .Values.a.f .NativeSidecars }}{{ end }}":                                                                                                           "",
		"{{ if .Values.a.f }}{{ .NativeSidecars }}{{ end }}":                                                                                                          "",
		"{{ define `n` }}{{ .NativeSidecars }}{{ end }}{{ template `n` (dict `NativeSidecars` 1) }}":                                                                  "",
	} {
		t.Run(text, func(t *testing.T) {
			o := Options{Version: "1.24", Config: config(text), Values: helperValues, Native: NativeEnabled}
			in, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				_, err := in.Render(in.templates["sidecar"], plainPod(in))
				var at *gotemplate.Error
				switch {
				case want == "" && err != nil:
					t.Errorf("it fails: %v", err)
				case want == "":
				case !errors.As(err, &at) || at.Template != "sidecar" || at.Line != 2 || "{{"+at.At+"}}" != want || !strings.Contains(err.Error(), "exists in Istio 1.27 and later"):
					t.Errorf("the error is %v, want one of line 2 at %s", err, want)
				}
			}
		})
	}
}

// TestUsageOfHelpers checks which fields of the data the versions are told from.
func TestUsageOfHelpers(t *testing.T) {
	for text, want := range map[string]string{
		`{{ define "n" }}{{ .Name }}{{ $.Name }}{{ end }}{{ template "n" .ObjectMeta }}`:                                  "ObjectMeta",
		`{{ define "n" }}{{ .Name }}{{ end }}{{ template "n" . }}{{ template "n" .ObjectMeta }}`:                          "ObjectMeta",
		`{{ define "n" }}{{ .ProxyUID }}{{ $.Spec }}{{ end }}{{ template "n" . }}`:                                        "ProxyUID Spec",
		`{{ define "n" }}{{ .ProxyUID }}{{ end }}{{ define "m" }}{{ template "n" . }}{{ end }}{{ template "m" . }}`:       "ProxyUID",
		`{{ define "n" }}{{ .ProxyUID }}{{ end }}{{ range .Spec.Containers }}{{ template "n" . }}{{ end }}`:               "Spec",
		`{{ define "n" }}{{ .ProxyUID }}{{ end }}{{ range .Spec.Containers }}{{ template "n" $ }}{{ end }}`:               "ProxyUID Spec",
		`{{ define "n" }}{{ .ProxyUID }}{{ end }}{{ define "m" }}{{ template "n" . }}{{ end }}{{ template "m" .Values }}`: "Values",
		`{{ $ = .Values }}{{ $.ProxyUID }}`: "Values",
	} {
		u := usageOf(template.Must(template.New("sidecar").Parse(text)))
		if got := strings.Join(slices.Sorted(maps.Keys(u.fields)), " "); got != want {
			t.Errorf("%s reads the fields %q, want %q", text, got, want)
		}
	}
}
