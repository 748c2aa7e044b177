// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/admission"
)

// TestWithLimits fills in what LimitRanger of Kubernetes 1.36 filled in; fn/internal/cluster compares with it.
func TestWithLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits    []string // the limits of a LimitRange each
		container string
		want      string // the container's resources
	}{
		"defaults": {
			limits:    []string{`[{type: Container, default: {cpu: "3"}, defaultRequest: {cpu: 50m, memory: 1024Mi}}]`},
			container: `{}`,
			want:      `{limits: {cpu: "3"}, requests: {cpu: 50m, memory: 1Gi}}`,
		},
		"the container's own stay, and its requests come from its own limits": {
			limits:    []string{`[{type: Container, default: {cpu: "3", memory: 1Gi}, defaultRequest: {cpu: 50m, memory: 1Mi}}]`},
			container: `{resources: {limits: {cpu: "1"}}}`,
			want:      `{limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1", memory: 1Mi}}`,
		},
		"a limit that is the maximum, a request that is the limit or the minimum": {
			limits:    []string{`[{type: Container, max: {cpu: "4"}, min: {cpu: 1m, memory: 2Mi}}]`},
			container: `{}`,
			want:      `{limits: {cpu: "4"}, requests: {cpu: "4", memory: 2Mi}}`,
		},
		"of pods": {
			limits:    []string{`[{type: Pod, max: {cpu: "4"}}]`},
			container: `{}`,
			want:      `{}`,
		},
		"two": {
			limits:    []string{`[{type: Container, default: {cpu: "1"}}]`, `[{type: Container, default: {cpu: "2", memory: 1Gi}}]`},
			container: `{}`,
			want:      `{limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1", memory: 1Gi}}`,
		},
		"of wrong types": {
			limits:    []string{`[{type: Container, default: [1]}, 7]`, `{}`},
			container: `{resources: {limits: 5}}`,
			want:      `{limits: 5}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ranges []admission.LimitRange
			for _, text := range c.limits {
				ranges = append(ranges, admission.NewLimitRange(map[string]any{"spec": map[string]any{"limits": value(t, text)}}))
			}
			for _, list := range []string{"containers", "initContainers"} {
				container, _ := value(t, c.container).(map[string]any)
				admission.Server{}.WithLimits(ranges).Default(map[string]any{"spec": map[string]any{list: []any{container}}})
				if diff := cmp.Diff(value(t, c.want), container["resources"]); diff != "" {
					t.Errorf("the resources of %s (-want +got):\n%s", list, diff)
				}
			}
		})
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
