// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
)

// describe returns what a reader of a change has to know of an Application: where it deploys to, and what it deletes. known are the
// clusters of Argo CD.
//
// Source: Argo CD 3.5, docs/user-guide/auto_sync.md, sync-options.md and app_deletion.md.
func describe(app *application, o *Object, known []cluster) *render.Unit {
	unit := &render.Unit{Kind: o.Ref().Kind, Cluster: clusterOf(app, known).String()}
	policy := app.Spec.SyncPolicy
	automated := policy.Automated
	unit.Manual = automated == nil || automated.Enabled != nil && !*automated.Enabled
	switch {
	case slices.Contains(policy.SyncOptions, "Prune=false"):
		unit.Keeps = "its syncOptions have Prune=false"
	case unit.Manual:
		unit.Keeps = "it is synced by hand, and pruned only if that is asked for"
	case !automated.Prune:
		unit.Keeps = "its syncPolicy.automated has no prune: true"
	}
	metadata := mapAt(o.Value, "metadata")
	finalizers, _ := metadata["finalizers"].([]any)
	cascades := slices.ContainsFunc(finalizers, func(one any) bool {
		name, _ := one.(string)
		return strings.HasPrefix(name, "resources-finalizer.argocd.argoproj.io") ||
			name == "foreground-finalizer.argocd.argoproj.io"
	})
	if !cascades {
		unit.Outlived = "it has no finalizer that deletes what it deploys"
	}
	return unit
}
