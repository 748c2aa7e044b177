// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
)

// Reason describes a reason of a condition for people.
type Reason struct {
	// Name is the reason; Condition and Status are where it occurs.
	Name, Condition, Status string
	// Means describes what happened, and Change what to do about it.
	Means, Change string
}

var reasons = []Reason{
	{
		meta.SucceededReason, "`Ready`", "True",
		"The newest revision of the source was rendered, and its result is published, or was published already.",
		"Nothing.",
	},
	{
		meta.ProgressingReason, "`Ready`", "Unknown",
		"The object has changed, and its run has not ended yet.",
		"Wait. If it stays so, look at the queue on the page or in the metrics: all workers may be busy, or none running.",
	},
	{
		meta.ProgressingWithRetryReason, "`Reconciling`", "True",
		"The last run failed for a reason that may pass, and it is tried again; `Ready` has the cause.",
		"Look at the reason of `Ready`. `prerig daemon reconcile NAME` tries at once.",
	},
	{
		ReasonInvalid, "`Ready`", "False",
		"The pipeline or policy itself is wrong: an unknown field, a missing value, or two pipelines that publish to one path.",
		"Correct the field that the message names. It does not run before that.",
	},
	{
		ReasonSourceFailed, "`Ready`", "False",
		"The source could not be read: the server did not answer, refused the credentials, or has no such branch, tag or artifact.",
		"Check the URL, the ref and the keys of the secret, also its `.hosts`. The daemon tries again by itself.",
	},
	{
		ReasonBuildFailed, "`Ready`", "False",
		"The source was read, but no objects could be made of it: kustomize, Helm, a policy or a workload is wrong, or a limit was reached.",
		"Run `prerig render --source . NAME` in a checkout of the source: it fails in the same way. The daemon continues with the next commit.",
	},
	{
		ReasonGateClosed, "`Ready`", "False",
		"The result was rendered and then refused: it is empty, deletes too much, would delete a CustomResourceDefinition, or has findings.",
		"Read the findings in `prerig daemon status NAME`. Mend the source, or allow it in [`spec.gates`](../render-pipeline.md#specgates) if it is meant.",
	},
	{
		ReasonPublishFailed, "`Ready`", "False",
		"The result could not be written: no right to push, a protected branch, files that no pipeline has written, or a registry that refused it.",
		"Grant the secret the right to write, or set `adopt` to take over existing files. The daemon tries again by itself.",
	},
	{
		ReasonDrifted, "`Ready`", "False",
		"Others have changed what is published, and `spec.drift` only reports it.",
		"Take the change back, bring it into the source, or run `prerig daemon reconcile --force NAME` to write the result again.",
	},
	{
		ReasonSuspended, "`Ready`", "Unknown",
		"The pipeline was suspended before it has ever run, so that it has no published files.",
		"Run `prerig daemon resume NAME`, or `suspend: false` in the object.",
	},
	{
		ReasonRemoving, "`Ready`", "False",
		"The pipeline is being deleted, and what it has published is removed first, as `deletionPolicy: Delete` asks for.",
		"Wait.",
	},
	{
		ReasonRemovalHeld, "`Ready`", "False",
		"The pipeline is being deleted, and its removal waits for a person: too many pipelines were deleted at once, or its files are not known.",
		"Confirm with `prerig daemon remove`, or take the finalizer away to leave the files where they are: [backup](../kubernetes.md).",
	},
	{
		ReasonSnapshotKept, "`Ready`", "True",
		"A policy has `from: Cluster`, and the cluster cannot be read, or no longer lists what it listed before: what was read before stays in use.",
		"Look whether the API server answers and the daemon may list what the message names. It is read again by itself.",
	},
	{
		ReasonClusterUnknown, "`Ready`", "False",
		"A policy has `from: Cluster`, and what it needs of the cluster has never been read.",
		"Bind the daemon to the role of `deploy/components/mesh`, and check that the control plane that the policy names exists.",
	},
}

// Reasons returns all reasons that conditions have, with what to do.
func Reasons() []Reason { return slices.Clone(reasons) }
