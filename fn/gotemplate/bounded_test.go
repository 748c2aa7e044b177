// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"strings"
	"testing"
	"text/template"
)

// render renders a text as its callers do.
func render(text string, data any) (string, error) {
	marks := Marks{}
	t, err := template.New("shop").Funcs(Functions(nil)).Parse(text)
	if err != nil {
		return "", err
	}
	marks.Count(t)
	out := NewOutput(1<<20, marks)
	if err := t.Execute(out, data); err != nil {
		return "", ExecuteError("shop", err)
	}
	return out.String(), nil
}

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
			_, err := render("a: b\n"+test.template, nil)
			var te *Error
			if !errors.As(err, &te) || te.Line != 2 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have the error %v, want one of line 2 that says %q", err, test.want)
			}
		})
	}
}

// TestBoundedFunctionsWorkAsBefore checks the results of functions that have limits.
func TestBoundedFunctionsWorkAsBefore(t *testing.T) {
	const template = `{{ repeat 2 "ab" }} {{ repeat 0 "x" }} {{ until 3 }} {{ untilStep 4 0 -2 }} {{ seq 2 }} {{ seq 3 1 }} {{ seq 0 2 4 }} {{ replace "a" "b" "aa" }} {{ join "-" (list 1 "x") }} {{ cat 1 "x" }}` +
		` {{ append (list 1) 2 }} {{ concat (list 1) (list 2) }} {{ $d := dict }}{{ $_ := set $d "k" (dict "v" nil) }}{{ toJson $d }} {{ quote "q" nil 1 }} {{ join "," nil }}{{ 3 | until | len }}`
	got, err := render(template, nil)
	const want = `abab  [0 1 2] [4 2] 1 2 3 2 1 0 2 4 bb 1-x 1 x [1 2] [1 2] {"k":{"v":null}} "q" "1" 3`
	if err != nil || strings.TrimSpace(got) != want {
		t.Errorf("have %q, %v\nwant %q", got, err, want)
	}
}
