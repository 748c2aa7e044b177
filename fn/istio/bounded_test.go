// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestTemplatesThatWouldFillTheMemory checks that templates fail at their line where they would make something huge out of
// a short input, before it is made.
func TestTemplatesThatWouldFillTheMemory(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"repeat":           {`{{ repeat 1000000000 "x" }}`, "bytes"},
		"repeat of repeat": {`{{ repeat 100000 (repeat 100000 "x") | len }}`, "bytes"},
		"indent":           {`{{ indent 2000000000 "a" }}`, "bytes"},
		"nindent":          {`{{ nindent 2000000000 "a" }}`, "bytes"},
		"until":            {`{{ until 1000000000 | len }}`, "elements"},
		"untilStep":        {`{{ untilStep 0 1000000000 1 | len }}`, "elements"},
		"untilStep down":   {`{{ untilStep 0 -1000000000 -1 | len }}`, "elements"},
		"seq":              {`{{ seq 1 1000000000 | len }}`, "elements"},
		"replace":          {`{{ $a := repeat 20000 "x" }}{{ replace "x" $a $a | len }}`, "bytes"},
		"regexReplaceAll":  {`{{ $a := repeat 20000 "x" }}{{ regexReplaceAll "x" $a $a | len }}`, "bytes"},
		"join":             {`{{ join (repeat 100000 "y") (until 10000) | len }}`, "bytes"},
		"doubled text":     {`{{ $a := "xx" }}{{ range until 60 }}{{ $a = cat $a $a }}{{ end }}{{ len $a }}`, "bytes"},
		"doubled list":     {`{{ $l := until 10 }}{{ range until 60 }}{{ $l = concat $l $l }}{{ end }}{{ len $l }}`, "elements"},
		"text in one list": {`{{ $a := repeat 1000000 "x" }}{{ toJson (list $a $a $a) | len }}`, "bytes"},
		"text given twice": {`{{ $a := repeat 1000000 "x" }}{{ print $a $a | len }}`, "bytes"},
		"joined text":      {`{{ $a := repeat 600000 "x" }}{{ join "" (list $a) | cat $a | len }}`, "bytes"},
		"lists in lists":   {`{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $l | toJson | len }}`, "elements"},
		"maps in maps":     {`{{ $d := dict "a" 1 }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}`, "elements"},
		"printf's widths":  {`{{ printf "%999999d%999999d" 1 2 | len }}`, "bytes"},
		"printf's stars":   {`{{ printf "` + strings.Repeat("%*d", 200) + `" 999999 1 | len }}`, "bytes"},
		"a map in itself":  {`{{ $d := dict "a" 1 }}{{ $_ := set $d "self" (list 1 (dict "d" $d)) }}{{ $d }}`, "into itself"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, Options{Version: "1.31", Config: config("a: b\n" + test.template)}, nil)
			var te *TemplateError
			if !errors.As(err, &te) || te.Line != 2 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have the error %v, want one of line 2 that says %q", err, test.want)
			}
		})
	}
}

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
		for _, unfolded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/unfolded=%t", name, unfolded), func(t *testing.T) {
				in, err := newInjector(Options{Version: "1.31", Config: config("a: b\n" + test.template), Values: "a: 1"}, unfolded)
				if err != nil {
					t.Fatal(err)
				}
				templates, err := in.Select(nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = in.Render(templates[0], &TemplateData{})
				var te *TemplateError
				if !errors.As(err, &te) || te.Template != "sidecar" || te.Line != test.line || !strings.Contains(err.Error(), test.want) {
					t.Errorf("have the error %v, want one of line %d that says %q", err, test.line, test.want)
				}
			})
		}
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

// TestEmptyTextsAreNoSteps checks that what a template prints as nothing does not count, whatever stood in the memory that
// fmt uses for it before.
func TestEmptyTextsAreNoSteps(t *testing.T) {
	const template = `{{ range until 9000 }}{{ print "99999999:1:sidecar" | len | printf "%s" | trunc 0 }}{{ "" }}{{ $.ObjectMeta.Name }}{{ end }}a: b`
	for range 3 {
		if _, err := render(t, Options{Version: "1.31", Config: config(template)}, nil); err != nil {
			t.Fatal(err)
		}
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

// TestBoundedFunctionsWorkAsBefore checks the results of functions that have limits.
func TestBoundedFunctionsWorkAsBefore(t *testing.T) {
	const template = `{{ repeat 2 "ab" }} {{ repeat 0 "x" }} {{ until 3 }} {{ untilStep 4 0 -2 }} {{ seq 2 }} {{ seq 3 1 }} {{ seq 0 2 4 }} {{ replace "a" "b" "aa" }} {{ join "-" (list 1 "x") }} {{ cat 1 "x" }}` +
		` {{ append (list 1) 2 }} {{ concat (list 1) (list 2) }} {{ $d := dict }}{{ $_ := set $d "k" (dict "v" nil) }}{{ toJson $d }} {{ quote "q" nil 1 }} {{ join "," nil }}{{ 3 | until | len }}`
	got, err := render(t, Options{Version: "1.31", Config: config(template)}, nil)
	const want = `abab  [0 1 2] [4 2] 1 2 3 2 1 0 2 4 bb 1-x 1 x [1 2] [1 2] {"k":{"v":null}} "q" "1" 3`
	if err != nil || strings.TrimSpace(got) != want {
		t.Errorf("have %q, %v\nwant %q", got, err, want)
	}
}
