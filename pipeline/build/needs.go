// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Needs reports whether a pipeline must be rendered for a snapshot of its source, and why. It is not rendered if
// everything that the last render read, or searched for and did not find, is unchanged.
func (b *Builder) Needs(p *v1alpha1.RenderPipeline, state *status.State, snapshot *source.Snapshot) (reason string, needed bool) {
	reason, needed, _ = b.checkNeeds(p, state, snapshot)
	return reason, needed
}

// checkNeeds also returns where in the source a negative answer comes from, see tree.Record.Look.
func (b *Builder) checkNeeds(p *v1alpha1.RenderPipeline, state *status.State, snapshot *source.Snapshot) (reason string, needed bool, at *tree.Footprint) {
	seen := state.Seen
	switch {
	case seen.Outcome == "":
		return "it has never been rendered", true, nil
	case state.Publishing:
		return "a run was cut off while it published", true, nil
	case seen.Request != b.RequestDigest(p):
		return "the pipeline, a policy or Prerig has changed", true, nil
	case b.PolicySource().changedNamespace(p, seen.Namespaces) != "":
		return "namespace " + b.PolicySource().changedNamespace(p, seen.Namespaces) + " of the cluster has changed", true, nil
	case seen.Outcome == status.Failed && (seen.Stage != status.StageBuild && seen.Stage != status.StageGate || state.Retrying()):
		return "the last run did not finish", true, nil
	case anyRecordsRevisions(p) && seen.Revision != snapshot.Revision:
		return "the revision is to be noted for the promoter", true, nil
	}
	return seen.Record.Look(snapshot.Tree)
}

// anyRecordsRevisions reports whether one of a pipeline's places wants to know of each revision of the source.
func anyRecordsRevisions(p *v1alpha1.RenderPipeline) bool {
	return slices.ContainsFunc(p.Spec.Publish, v1alpha1.Publish.NotesRevisions)
}
