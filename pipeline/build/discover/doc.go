// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds the builds of a repository that has no pipelines: the overlays that no other kustomization uses, charts, the
// directories with HelmReleases, Applications and ApplicationSets, and directories of plain manifests. A directory that another build
// reads is no build of its own.
package discover
