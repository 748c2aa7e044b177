// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/prerig/prerig/pipeline/review/diff/group"
)

// TestOnlyChangesThatMayBeRejectedNeedValidation: a new image is no reason to name that Kubernetes' own validation is missing.
func TestOnlyChangesThatMayBeRejectedNeedValidation(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		object, at string
		want       bool
	}{
		{"Deployment shop/web", "spec.template.spec.containers[app].image", false},
		{"Deployment shop/web", "spec.replicas", false},
		{"Deployment shop/web", "spec.selector.matchLabels.app", true},
		{"Deployment shop/web", "spec", true},
		{"Deployment shop/web", "", true},
		{"Deployment shop/web", "pod:spec.containers[app].image", false},
		{"Job shop/web", "pod:spec.containers[app].image", true},
		{"StatefulSet shop/db", "spec.volumeClaimTemplates[].metadata.labels", true},
		{"HelmRelease shop/web", "spec.values", false},
	} {
		change := group.Change{Kind: group.Modified, Hunks: []group.Hunk{{At: one.at}}, Objects: []group.Object{{Name: one.object}}}
		if got := mayBeImmutable(change); got != one.want {
			t.Errorf("%s %s: %v", one.object, one.at, got)
		}
	}
	added := group.Change{Kind: group.Added, Objects: []group.Object{{Name: "Job shop/web"}}, Hunks: []group.Hunk{{}}}
	if mayBeImmutable(added) {
		t.Error("a new object is no change")
	}
}
