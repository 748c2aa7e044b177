// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"slices"
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

// TestListsAreNotChanged gives a list to every function of lists, and finds it as it was.
func TestListsAreNotChanged(t *testing.T) {
	for _, call := range []string{
		`sortAlpha .`, `toStrings . | sortAlpha`, `slice . 0 2 | sortAlpha`, `rest .`, `initial .`, `reverse .`, `uniq .`, `compact .`,
		`without . "z"`, `append . "b"`, `prepend . "b"`, `concat . .`, `append (slice . 0 1) "b"`, `chunk 1 .`, `join "," (sortAlpha .)`,
		`append (toStrings .) "b"`, `concat (slice . 0 1) (list "b")`, `mustAppend . "b"`, `push . "b"`, `mustReverse .`, `mustUniq .`,
	} {
		list := []string{"z", "a", "m"}
		if _, err := render(`{{ `+call+` }}`, list); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		if !slices.Equal(list, []string{"z", "a", "m"}) {
			t.Errorf("%s made the list %v", call, list)
		}
	}
}
