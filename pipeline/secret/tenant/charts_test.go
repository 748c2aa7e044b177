// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// Chart repositories are read, as sources are.
func TestReachOfCharts(t *testing.T) {
	reach, err := tenant.NewReach([]string{"https://git.example.com/team/*", "https://charts.example.com/team", "oci://registry.example.com/team/*"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(repository, listed string) error {
		p := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{
			Source: v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.example.com/team/config"}},
			Build:  v1alpha1.Build{Helm: &v1alpha1.Helm{Repository: repository}},
		}}
		if listed != "" {
			p.Spec.Build.ChartRepositories = []v1alpha1.ChartRepository{{URL: listed}}
		}
		return reach.Check(p, "the team")
	}
	for _, ok := range [][2]string{{"", ""}, {"https://charts.example.com/team", ""}, {"oci://registry.example.com/team/charts", "oci://registry.example.com/team/charts/*"}} {
		if err := check(ok[0], ok[1]); err != nil {
			t.Errorf("%v: %v", ok, err)
		}
	}
	for _, wrong := range [][3]string{
		{"https://charts.example.com/other", "", "spec.build.helm.repository"},
		{"oci://registry.example.com/other", "", "spec.build.helm.repository"},
		{"", "https://charts.example.com/*", "spec.build.chartRepositories[0].url"},
		{"", "oci://registry.example.com/*", "spec.build.chartRepositories[0].url"},
	} {
		if err := check(wrong[0], wrong[1]); err == nil || !strings.Contains(err.Error(), wrong[2]+": the team may not read it") {
			t.Errorf("%v: got %v", wrong, err)
		}
	}
}
