// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"fmt"
	"strings"
	"testing"
)

// TestVariablesWithoutValuesAreBounded: an object with 20,000 of them took 100 of the 120 seconds that a render may take.
func TestVariablesWithoutValuesAreBounded(t *testing.T) {
	for _, keep := range []bool{false, true} {
		v := &Variables{active: true, keep: keep, absent: []string{"ConfigMap a/b"}, values: map[string]string{"known": "x"}}
		text := func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "a%d: ${known} ${v%d} ${d%d:=default}\n", i, i, i)
			}
			return b.String()
		}
		_, missing, err := v.evaluate(text(100))
		if err != nil || len(missing) != 100 {
			t.Errorf("keep %v: %d of 100 variables, %v", keep, len(missing), err)
		}
		_, _, err = v.evaluate(text(5000))
		if err == nil || !strings.Contains(err.Error(), "variables have no value, such as v0") {
			t.Errorf("keep %v: %v", keep, err)
		}
	}
}
