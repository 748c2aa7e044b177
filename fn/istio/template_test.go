// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/gotemplate"
)

// TestTemplatesThatWouldNotEnd checks that templates fail at the line of the loop that goes on for too long, although they
// print nothing.
func TestTemplatesThatWouldNotEnd(t *testing.T) {
	const deep = `{{ define "x" }}{{ if lt (len .) 60 }}{{ template "x" (append . 1) }}{{ template "x" (append . 1) }}{{ end }}{{ end }}`
	tests := map[string]struct {
		template string
		line     int
		want     string
	}{
		"a number":              {`{{ range 1000000000000 }}{{ end }}`, 2, "steps"},
		"a number that assigns": {`{{ $a := 1 }}{{ range 1000000000000 }}{{ $a = . }}{{ end }}`, 2, "steps"},
		"lists in lists":        {"{{ range until 10000 }}\n{{ range until 10000 }}{{ end }}\n{{ end }}", 3, "steps"},
		"calls in a loop":       {"{{ range until 1000 }}\n{{ range until 100 }}{{ $_ := sha256sum (upper (lower \"x\")) }}{{ end }}\n{{ end }}", 3, "steps"},
		"the values":            {"{{ range 1000000 }}\n{{ range 1000000 }}{{ $_ := $.Values.a }}{{ end }}\n{{ end }}", 3, "steps"},
		"skipped at once":       {`{{ range 1000000000000 }}{{ continue }}{{ end }}`, 2, "steps"},
		"templates in two":      {deep + "\n" + `{{ template "x" list }}`, 2, "steps"},
		"a template in itself":  {`{{ define "y" }}{{ template "y" . }}{{ end }}{{ template "y" . }}`, 2, "depth"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, err := New(Options{Version: "1.31", Config: config("a: b\n" + test.template), Values: "a: 1"})
			if err != nil {
				t.Fatal(err)
			}
			templates, err := in.Select(nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = in.Render(templates[0], &TemplateData{})
			var te *gotemplate.Error
			if !errors.As(err, &te) || te.Template != "sidecar" || te.Line != test.line || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one at line %d with %q", err, test.line, test.want)
			}
		})
	}
}

// TestStepsOfOneRenderingOnly checks that steps are not carried over to the next rendering.
func TestStepsOfOneRenderingOnly(t *testing.T) {
	in, err := New(Options{Version: "1.31", Config: config(`{{ range 200000 }}{{ $_ := $.ObjectMeta }}{{ end }}a: b`), Values: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	templates, _ := in.Select(nil)
	for range 3 {
		r, err := in.Render(templates[0], &TemplateData{})
		if err != nil || string(r.Bytes()) != "a: b\n" {
			t.Fatalf("have the error %v", err)
		}
		in.Release(r)
	}
}

// TestNestedTemplatesShareTheSteps checks that render has no steps of its own.
func TestNestedTemplatesShareTheSteps(t *testing.T) {
	const text = "policy: enabled\ntemplate: |\n  a: b\n  {{ range .Values.list }}\n  {{ $_ := render $.Values.text }}\n  {{ end }}\n"
	values := `{"text": "{{ range $.Values.list }}{{ range $.Values.list }}{{ end }}{{ end }}", "list": [` + strings.Repeat("1,", 199) + `1]}`
	_, err := render(t, Options{Version: "1.5", Config: text, Values: values}, nil)
	if err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("have the error %v, want one about steps", err)
	}
}
