// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"strings"
	"testing"
)

// TestRefused checks that functions whose result depends on more than the input fail by their name.
func TestRefused(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	names := []string{"env"}
	for name := range refusedFunctions {
		names = append(names, name)
	}
	for _, name := range names {
		_, err := render("a: b\n{{ "+name+` "HOME" }}`, nil)
		var at *Error
		if !errors.As(err, &at) || at.Line != 2 || !strings.Contains(err.Error(), `function "`+name+`" is refused`) {
			t.Errorf("%s: have the error %v", name, err)
		}
		if Refused(name) != (name != "env") {
			t.Errorf("Refused(%q) is %t", name, Refused(name))
		}
	}
}

// TestOrder checks that nothing comes in the order of a map.
func TestOrder(t *testing.T) {
	for range 20 {
		got, err := render(`{{ $d := dict "c" 1 "a" 2 "b" 3 }}{{ keys $d }}{{ values $d }}`, nil)
		if err != nil || got != "[a b c][2 3 1]" {
			t.Fatalf("have %q, %v", got, err)
		}
	}
}
