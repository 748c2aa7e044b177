// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

// TestExternalArtifact keeps objects in the namespace of their pipeline, and each with one content.
func TestExternalArtifact(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, publish, want string }{
		"by default":          {"{name: web, namespace: shop}", "[{externalArtifact: {}}]", ""},
		"its own namespace":   {"{name: web, namespace: shop}", "[{externalArtifact: {namespace: shop, name: x}}]", ""},
		"two names":           {"{name: web, namespace: shop}", "[{externalArtifact: {}}, {externalArtifact: {name: x}}]", ""},
		"another's namespace": {"{name: web, namespace: shop}", "[{externalArtifact: {namespace: flux-system}}]", "spec.publish[0].externalArtifact.namespace: must be shop"},
		"no namespace":        {"{name: web}", "[{externalArtifact: {}}]", "spec.publish[0].externalArtifact: needs metadata.namespace"},
		"one name twice":      {"{name: web, namespace: shop}", "[{externalArtifact: {}}, {externalArtifact: {name: web}}]", "is the name of spec.publish[0] already"},
		"a path for a name":   {"{name: web, namespace: shop}", "[{externalArtifact: {name: ../x}}]", "spec.publish[0].externalArtifact.name: must be lower case"},
		"an odd layout":       {"{name: web, namespace: shop}", "[{externalArtifact: {layout: Tar}}]", "spec.publish[0].externalArtifact.layout"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: " + tc.metadata +
				"\nspec:\n  source: {git: {url: 'https://git.example.com/a'}}\n  publish: " + tc.publish + "\n"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err == nil && !strings.HasPrefix(p.Spec.Publish[0].Target(), "ExternalArtifact shop/") {
				t.Errorf("it is called %q", p.Spec.Publish[0].Target())
			}
		})
	}
}
