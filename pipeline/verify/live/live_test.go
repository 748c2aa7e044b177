// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestTheRightsAreThoseOfTheDocumentation compares what is listed with the ClusterRole that people are told to make. That
// it suffices is asked of an API server in fn/internal/cluster.
func TestTheRightsAreThoseOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := bytes.Cut(page, []byte("<!-- file: prerig-verify.yaml -->\n```yaml\n"))
	text, _, ended := bytes.Cut(text, []byte("```\n"))
	if !found || !ended {
		t.Fatal("docs/verify.md has no prerig-verify.yaml")
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	var given, wanted []string
	for _, rule := range role.Rules {
		if !slices.Equal(rule.Verbs, []string{"list"}) || len(rule.APIGroups) != 1 {
			t.Errorf("a rule gives %v of %v", rule.Verbs, rule.APIGroups)
		}
		for _, resource := range rule.Resources {
			given = append(given, rule.APIGroups[0]+"/"+resource)
		}
	}
	for _, one := range Resources {
		wanted = append(wanted, one.Group+"/"+one.GroupVersionResource.Resource)
	}
	slices.Sort(given)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, given); diff != "" {
		t.Errorf("what is listed (-) and what may be listed (+):\n%s", diff)
	}
}
