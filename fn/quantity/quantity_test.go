// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestExponentsAreBounded(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "100m": true, "128Mi": true, "1E": true, "1Ei": true, "1e3": true, "1E3": true, "-2e-9": true, "1e+0000000000003": true, "1e9999": true,
		"1e99999": false, "1e-999999999": false, "1E999999999": false, "0.5e-2147483648": false, "1e+00099999": false,
	} {
		got, err := Parse(text)
		if (err == nil) != want {
			t.Errorf("%s: got %v", text, err)
		}
		if want && err == nil && got.Cmp(resource.MustParse(text)) != 0 {
			t.Errorf("%s: got %s", text, got.String())
		}
	}
	for _, text := range []string{"", "e", "east", "1e", "1e9x", "1ee5", "version"} {
		if !IsBounded(text) {
			t.Errorf("%q is no number, and was refused for its exponent", text)
		}
	}
}
