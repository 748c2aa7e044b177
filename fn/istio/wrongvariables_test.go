// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/strict"
)

func TestWrongVariablesOfIstiodAreWarnedOf(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"ENABLE_NATIVE_SIDECAR", "true", "has no effect, did you mean ENABLE_NATIVE_SIDECARS?"},
		{"enable_native_sidecars", "true", "did you mean ENABLE_NATIVE_SIDECARS?"},
		{"FOO", "bar", "neither istiod nor its templates read it"},
		{"A B", "x", "is not the name of a variable"},
		{"ENABLE_LEGACY_FSGROUP_INJECTION", "yes", `must be true, false, is "yes": istiod takes its default`},
		{"COMPLIANCE_POLICY", "fips-140-4", "must be fips-140-2 or fips-140-3 or pqc"},
		{"JWT_POLICY", "third-party", "must be third-party-jwt or first-party-jwt"},
		{"ENABLE_NATIVE_SIDECARS", "true", ""},
		{"PILOT_TRACE_SAMPLING", "1", ""},
		{"GOMEMLIMIT", "1G", ""},
		{"ENABLE_LEGACY_FSGROUP_INJECTION", "${FSGROUP}", ""},
		{"NAMED_BY_A_TEMPLATE", "x", ""},
	} {
		in, err := New(Options{
			Version: "1.31", Config: config(`spec: {hostname: '{{ env "NAMED_BY_A_TEMPLATE" "" }}'}`), Values: chartValues,
			KubernetesVersion: "1.34", IstiodEnv: map[string]string{c.name: c.value},
		})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, w := range in.ValueWarnings {
			path, _ := strict.FieldOf(w)
			texts = append(texts, strict.FieldPath(path...)+" "+w.Error())
		}
		have := strings.Join(texts, "\n")
		if c.want == "" && have != "" || !strings.Contains(have, c.want) || c.want != "" && !strings.Contains(have, "istiodEnv") {
			t.Errorf("%s=%s: have %q, want %q", c.name, c.value, have, c.want)
		}
	}
}
