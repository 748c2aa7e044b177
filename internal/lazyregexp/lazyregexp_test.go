// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lazyregexp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRegexp(t *testing.T) {
	r := New(`a(\d+)`)
	if !r.MatchString("xa1") || r.MatchString("a") {
		t.Error("MatchString does not match like the expression")
	}
	if got := r.FindString("xa12 a3"); got != "a12" {
		t.Errorf("FindString returned %q, want a12", got)
	}
	if diff := cmp.Diff([]string{"a12", "12"}, r.FindStringSubmatch("xa12 a3")); diff != "" {
		t.Errorf("FindStringSubmatch: %s", diff)
	}
	if diff := cmp.Diff([][]string{{"a12", "12"}, {"a3", "3"}}, r.FindAllStringSubmatch("xa12 a3", -1)); diff != "" {
		t.Errorf("FindAllStringSubmatch: %s", diff)
	}
}

func TestNewCompilesLate(t *testing.T) {
	r := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression did not panic when it was used")
		}
	}()
	r.MatchString("")
}
