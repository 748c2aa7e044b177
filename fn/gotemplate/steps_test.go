// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"strings"
	"testing"
)

// TestLoops checks that a loop which goes on for too long fails at its line, although it prints nothing.
func TestLoops(t *testing.T) {
	const deep = `{{ define "x" }}{{ if lt (len .) 60 }}{{ template "x" (append . 1) }}{{ template "x" (append . 1) }}{{ end }}{{ end }}`
	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"a number":             {"\n{{ range 1000000000000 }}{{ end }}", 2, "steps"},
		"lists in lists":       {"{{ range until 10000 }}\n{{ range until 10000 }}{{ end }}\n{{ end }}", 2, "steps"},
		"calls in a loop":      {"{{ range until 1000 }}\n{{ range until 100 }}{{ $_ := sha256sum (upper (lower \"x\")) }}{{ end }}\n{{ end }}", 2, "steps"},
		"skipped at once":      {`{{ range 1000000000000 }}{{ continue }}{{ end }}`, 1, "steps"},
		"templates in two":     {deep + "\n" + `{{ template "x" list }}`, 1, "steps"},
		"a template in itself": {`{{ define "y" }}{{ template "y" . }}{{ end }}{{ template "y" . }}`, 1, "depth"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(test.text, nil)
			var at *Error
			if !errors.As(err, &at) || at.Template != "shop" || at.Line != test.line || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have the error %v, want one of line %d that says %q", err, test.line, test.want)
			}
		})
	}
}

// TestEmptyTextsAreNoSteps checks that what a template prints as nothing does not count, whatever stood in the memory that
// fmt uses for it before.
func TestEmptyTextsAreNoSteps(t *testing.T) {
	const text = `{{ range until 9000 }}{{ print "99999999:1:shop" | len | printf "%s" | trunc 0 }}{{ "" }}{{ $.Name }}{{ end }}a: b`
	for range 3 {
		if _, err := render(text, map[string]string{"Name": ""}); err != nil {
			t.Fatal(err)
		}
	}
}
